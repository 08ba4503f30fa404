#include "coordinator/log_tree/batch_report.h"

#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <map>
#include <optional>

#include "base/escape.h"
#include "base/time.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kHeader[] =
    "Mini-batch Id,Picked Count,Process,Process Start Time(UTC),Total,Succeeded,Failed,Elapsed "
    "Seconds,"
    "Process Seconds,Run Method Seconds,Status,Error Category,Error Message,Mini-batch "
    "Detail(JSON)\n";
constexpr char kSumHeader[] =
    "Processed Mini-batches,Failed Attempts,Total,Succeeded,Failed,Elapsed Seconds,Process Seconds,"
    "Run Method Seconds\n";

struct Sum {
  uint64_t attempts = 0;
  uint64_t failed_attempts = 0;
  uint64_t items = 0;
  uint64_t succeeded = 0;
  uint64_t failed = 0;
  double elapsed = 0;
  double cpu = 0;
  double run = 0;
};

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

const char* StatusOf(job::Cause cause) {
  switch (cause) {
    case job::Cause::kRun: return "RUN_EXCEPTION";
    case job::Cause::kRunTimeout: return "RUN_TIMEOUT";
    case job::Cause::kProcessEnded: return "PROCESS_ENDED";
    case job::Cause::kOverheadTimeout: return "LOAD_TIMEOUT";
    case job::Cause::kInput:
    case job::Cause::kMisfit: return "LOAD_FAILED";
  }
  return "FAILED";
}

// Keys of the detail, its quotes doubled as within a field.
std::string OutputText(const job::OutputRanges& o) {
  if (!o.known()) return "";
  return fmt::format(",\"\"stdout\"\":[{},{}],\"\"stderr\"\":[{},{}]", o.stdout_begin, o.stdout_end,
                     o.stderr_begin, o.stderr_end);
}

// Likewise, of what was measured.
std::string SpentText(const job::AttemptResult& result) {
  std::string text;
  job::EachAmount(result, [&](const job::Amount& amount, const std::optional<uint64_t>& ns) {
    if (ns) text += fmt::format(",\"\"{}Seconds\"\":{:.6f}", amount.name, Seconds(*ns));
  });
  return text;
}

// One attempt, whatever became of it.
struct Attempt : job::AttemptResult {
  job::BatchId id = 0;
  uint32_t node = 0;
  uint32_t process = 0;
  std::string_view status;
  std::string_view kind;
  std::string_view message;
  job::OutputRanges output{};
};

class Report {
 public:
  Report(const job::JobState& state, const job::FailureRules& rules, const LogFolder& folder)
      : state_(state),
        rules_(rules),
        folder_(folder),
        batches_(folder, Name("processed_mini-batches.csv")) {
    batches_.Add(kHeader);
  }

  Status Visit(const job::Record& record) {
    if (const auto* settings = std::get_if<job::SettingsRecord>(&record)) {
      generation_ = settings->generation;
    } else if (const auto* r = std::get_if<job::ResultRecord>(&record)) {
      Add({WithUsage(*r), r->id, r->node, r->process, "RUN_DONE", "", "", {}});
    } else if (const auto* f = std::get_if<job::FailedRecord>(&record)) {
      Add({WithUsage(*f), f->id, f->node, f->process, StatusOf(f->cause), f->kind, f->message,
           f->output});
    } else if (const auto* beside = std::get_if<job::UnknownRecord>(&record)) {
      if (beside->type == job::kUsageType) usage_ = beside->body;
    }
    return {};
  }

  Status Finish() {
    Flush();
    if (Status written = batches_.Publish(); !written.ok()) return written;
    std::string nodes = std::string("Node,") + kSumHeader;
    for (const auto& [node, sum] : nodes_) nodes += fmt::format("{},{}", node, Line(sum));
    if (Status written = folder_.Publish(Name("node_summary.csv"), nodes); !written.ok()) {
      return written;
    }
    std::string processes = std::string("Node,Process,") + kSumHeader;
    for (const auto& [process, sum] : processes_) {
      processes += fmt::format("{},process{:03},{}", process.first, process.second, Line(sum));
    }
    if (Status written = folder_.Publish(Name("process_summary.csv"), processes); !written.ok()) {
      return written;
    }
    // The names that they once had, where the volume knows links.
    folder_.Link("processed_mini-batches.csv", Name("processed_tasks.csv"));
    folder_.Link("job_report", "sys/report");
    return {};
  }

 private:
  // With what the usage in front of it says, if it is that of this attempt.
  template <typename Recorded>
  job::AttemptResult WithUsage(const Recorded& recorded) const {
    job::AttemptResult with = recorded.result();
    const auto name = job::DecodeUsage(usage_, with);
    const bool its_own = name == job::UsageName{recorded.id, recorded.fence};
    return its_own ? with : recorded.result();
  }

  void Add(const Attempt& a) {
    const job::MiniBatch batch = state_.known(a.id) ? state_.batch(a.id) : job::MiniBatch();
    const uint32_t items = batch.items;
    const uint32_t picked = ++picked_[a.id];
    if (a.kind.empty()) picked_.erase(a.id);  // settled: no further attempt follows
    const uint32_t failed =
        a.kind.empty() ? rules_.FailedOf(batch.items_missing, batch.items_skipped) : items;
    const int64_t start_us = a.finished_us - static_cast<int64_t>(a.elapsed_ns / 1000);
    if (start_us / 1'000'000 != start_second_) {
      start_second_ = start_us / 1'000'000;
      start_text_ = Rfc3339(WallTime(Duration(start_us)));
    }
    fmt::format_to(std::back_inserter(lines_),
                   "{},{},process{:03},{},{},{},{},{:.6f},{:.6f},{:.6f},{},{},{},\"{{\"\"node\"\":{"
                   "},\"\"generation\"\":{},"
                   "\"\"rows\"\":{}{}{}}}\"\n",
                   job::MiniBatchText(a.id), picked, a.process, start_text_, items,
                   a.items_succeeded, failed, Seconds(a.elapsed_ns), Seconds(a.cpu_ns),
                   Seconds(a.run_ns), a.status, CsvField(Printable(a.kind, 100)),
                   CsvField(Printable(a.message, 500)), a.node, generation_, a.row_count,
                   SpentText(a), OutputText(a.output));
    if (lines_.size() > kLogBlock) Flush();
    for (Sum* sum : {&nodes_[a.node], &processes_[{a.node, a.process}]}) {
      ++sum->attempts;
      sum->failed_attempts += a.kind.empty() ? 0 : 1;
      sum->items += items;
      sum->succeeded += a.items_succeeded;
      sum->failed += failed;
      sum->elapsed += Seconds(a.elapsed_ns);
      sum->cpu += Seconds(a.cpu_ns);
      sum->run += Seconds(a.run_ns);
    }
  }

  void Flush() {
    batches_.Add(lines_);
    lines_.clear();
  }

  static std::string Name(const std::string& file) { return "sys/job_report/" + file; }

  static std::string Line(const Sum& s) {
    return fmt::format("{},{},{},{},{},{:.6f},{:.6f},{:.6f}\n", s.attempts, s.failed_attempts,
                       s.items, s.succeeded, s.failed, s.elapsed, s.cpu, s.run);
  }

  const job::JobState& state_;
  const job::FailureRules& rules_;
  const LogFolder folder_;
  NewLogFile batches_;
  std::string lines_;  // not added yet
  int64_t start_second_ = -1;
  std::string start_text_;  // of start_second_
  uint32_t generation_ = 0;
  std::string usage_;                        // the last one
  std::map<job::BatchId, uint32_t> picked_;  // of mini-batches with failed attempts
  std::map<uint32_t, Sum> nodes_;
  std::map<std::pair<uint32_t, uint32_t>, Sum> processes_;
};

}  // namespace

std::string CsvField(std::string_view text) {
  std::string field(text);
  if (!field.empty() &&
      std::string_view("=+-@\t\r").find(field.front()) != std::string_view::npos) {
    field.insert(0, 1, '\'');
  }
  if (field.find_first_of(",\"\n\r") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    quoted += c;
    if (c == '"') quoted += '"';
  }
  return quoted + '"';
}

Status WriteBatchReports(const ledger::Ledger& ledger, const job::JobState& state,
                         const job::FailureRules& rules, const LogFolder& folder) {
  Report report(state, rules, folder);
  const Result<uint64_t> read =
      ledger.Replay([&](const job::Record& record, const job::Place&, const job::Place&) {
        return report.Visit(record);
      });
  if (!read.ok()) return read.error();
  return report.Finish();
}

}  // namespace parallelrun::coordinator
