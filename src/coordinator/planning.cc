#include "coordinator/planning.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string_view>
#include <utility>

#include "job/record_codec.h"
#include "plan/columns/parquet_types.h"
#include "plan/columns/types_json.h"
#include "plan/manifest_pin.h"
#include "plan/source.h"

namespace parallelrun::coordinator {
namespace {

// Bounds what the planner may be ahead of the disk: appended chunks wait in memory for their sync,
// for as long as the disk is slow or full.
constexpr size_t kMostOnTheWay = 8;
constexpr size_t kColumnsLine = 2000;   // bytes of what is told of an input's columns
constexpr size_t kWarnedColumns = 500;  // bytes of the names in a warning of them

std::string LineOfColumns(const std::string& types, const plan::PlanInput& input) {
  if (!input.manifest.path.empty()) return "";
  if (input.kind == plan::PlanKind::kParquet) {
    return plan::ParquetColumnsLine(types, kColumnsLine) +
           plan::ParquetNullsWarning(types, kWarnedColumns);
  }
  const Result<plan::TypedTable> table = plan::TypesFromJson(types);
  return table.ok() ? plan::ColumnsLine(*table, input, kColumnsLine) : "";
}

// The columns that the files must have that are not planned yet, or the manifest that names them.
Status KeepTypes(std::string_view types, plan::PlanInput& input) {
  input.decide_types = false;
  if (!input.manifest.path.empty()) return plan::KeepManifest(types, input.manifest);
  if (input.kind == plan::PlanKind::kParquet) return {};
  const Result<plan::TypedTable> table = plan::TypesFromJson(types);
  if (!table.ok()) return table.error();
  for (const plan::TypedColumn& column : table->columns) input.columns.push_back(column.name);
  return {};
}

}  // namespace

Planning::Planning(const Of& of, std::vector<plan::PlanInput> inputs, plan::OpenStore open,
                   std::function<void()> after_event)
    : of_(of),
      inputs_(std::move(inputs)),
      open_(std::move(open)),
      after_event_(std::move(after_event)) {}

Planning::~Planning() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void Planning::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  stop_.request_stop();
  wake_.notify_all();
}

bool Planning::Finish(Duration limit) {
  Stop();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void Planning::Start() {
  TellTypes();
  Coordinator& coordinator = of_.coordinator;
  if (of_.state.plan_ended() || coordinator.phase() != Coordinator::Phase::kRunning) return;
  std::vector<plan::PlanInput> inputs = inputs_;
  for (plan::PlanInput& input : inputs) input.stop = stop_.get_token();
  for (const auto& [index, types] : of_.state.types()) {
    if (const Status kept = KeepTypes(types, inputs[index]); !kept.ok()) {
      return coordinator.FailPlan(kept.error(), of_.clock.Now());
    }
  }
  std::optional<job::Place> last;
  if (!of_.state.chunks().empty()) last = of_.state.chunks().back().place;
  thread_ = Thread("planner", [this, inputs = std::move(inputs), last]() mutable {
    Run(std::move(inputs), last);
  });
}

void Planning::Run(std::vector<plan::PlanInput> inputs, std::optional<job::Place> last) {
  const auto fail = [this](const Error& error) { of_.loop.Post([this, error] { Fail(error); }); };
  plan::PlanCursor cursor;
  if (last) {
    const Result<std::string> chunk = of_.ledger.Read(*last);
    if (stop_.stop_requested()) return;
    std::string_view bytes = chunk.ok() ? std::string_view(*chunk) : std::string_view();
    const Result<job::DecodedRecord> decoded = job::DecodeRecord(bytes);
    if (!decoded.ok()) return fail(decoded.error());
    cursor = plan::CursorAfter(std::get<job::PlanChunkRecord>(decoded->record), inputs);
  }
  plan::Planner planner(std::move(inputs), open_, cursor);
  for (;;) {
    Result<std::optional<std::string>> next = planner.Next();
    if (stop_.stop_requested()) return;
    if (!next.ok()) return fail(next.error());
    if (std::vector<std::string> notes = planner.TakeNotes(); !notes.empty()) {
      of_.loop.Post([this, notes = std::move(notes)] { TellNotes(notes); });
    }
    if (!*next) break;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ends_ || on_the_way_ < kMostOnTheWay; });
    if (ends_) return;
    ++on_the_way_;
    lock.unlock();
    of_.loop.Post([this, chunk = std::move(**next)] { Add(chunk); });
  }
  of_.loop.Post([this] {
    of_.coordinator.EndPlan(of_.clock.Now());
    after_event_();
  });
}

void Planning::Add(const std::string& chunk) {
  const Instant now = of_.clock.Now();
  if (const Status added = of_.coordinator.AddChunk(chunk, now); !added.ok()) {
    of_.coordinator.FailPlan(added.error(), now);
  }
  TellTypes();
  undurable_.push_back(of_.ledger.appended());
  after_event_();
}

void Planning::Fail(const Error& error) {
  of_.coordinator.FailPlan(error, of_.clock.Now());
  after_event_();
}

void Planning::Durable() {
  size_t arrived = 0;
  for (; !undurable_.empty() && undurable_.front() <= of_.ledger.durable(); ++arrived) {
    undurable_.pop_front();
  }
  if (arrived == 0) return;
  {
    const std::lock_guard lock(mutex_);
    on_the_way_ -= arrived;
  }
  wake_.notify_all();
}

// --- what people are told

// Once for each input, however often this is asked for.
void Planning::TellTypes() {
  for (const auto& [index, types] : of_.state.types()) {
    if (index >= inputs_.size() || columns_.contains(index)) continue;
    const plan::PlanInput& input = inputs_[index];
    std::string line = LineOfColumns(types, input);
    if (line.empty()) continue;  // who reads a mini-batch with it says so
    if (inputs_.size() > 1) line = fmt::format("{}: {}", plan::PlaceOf(input), line);
    spdlog::info("{}", line);
    columns_[index] = std::move(line);
  }
}

void Planning::TellNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    spdlog::info("{}", note);
    left_out_.push_back(note);
  }
}

}  // namespace parallelrun::coordinator
