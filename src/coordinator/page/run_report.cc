#include "coordinator/page/run_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/escape.h"
#include "coordinator/item_names.h"
#include "coordinator/log_tree/error_logs.h"
#include "coordinator/page/page_data.h"
#include "coordinator/page/report_page.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kReport[] = "report.html";
constexpr size_t kMostTracebacks = 20;
constexpr size_t kTracebackBytes = size_t{16} << 10;
constexpr size_t kItemBytes = 300;

// Reads the ledger once.
class Reader {
 public:
  Reader(const job::JobState& state, std::vector<job::DistinctError> errors) : state_(state) {
    for (job::DistinctError& error : errors) {
      firsts_.emplace(error.batch,
                      First{job::ErrorKey(error.kind, error.message), error.log, 0, false});
      errors_.push_back(std::move(error));
    }
  }

  Status Visit(const job::Record& record) {
    if (std::holds_alternative<job::SealRecord>(record)) {
      figures_.NewEpoch();
    } else if (const auto* settings = std::get_if<job::SettingsRecord>(&record)) {
      if (settings->generation != generation_) {
        for (auto& [batch, first] : firsts_) first.attempts = 0;
      }
      generation_ = settings->generation;
    } else if (const auto* r = std::get_if<job::ResultRecord>(&record)) {
      figures_.Add({r->result(), r->id, r->node, r->process, ItemsOf(r->id), true});
    } else if (const auto* f = std::get_if<job::FailedRecord>(&record)) {
      figures_.Add({f->result(), f->id, f->node, f->process, ItemsOf(f->id), false});
      Count(*f);
    }
    return {};
  }

  const Figures& figures() const { return figures_; }

  std::vector<ErrorShown> Errors(plan::PlanStore& plan, const LogFolder& folder) {
    ErrorLogs logs(folder);
    std::vector<ErrorShown> shown;
    for (const job::DistinctError& error : errors_) {
      ErrorShown one{error, NameOf(state_, plan, error.batch), ""};
      const std::string key = job::ErrorKey(error.kind, error.message);
      const auto [begin, end] = firsts_.equal_range(error.batch);
      const auto first =
          std::find_if(begin, end, [&](const auto& entry) { return entry.second.key == key; });
      if (shown.size() < kMostTracebacks && first != end) {
        one.traceback =
            Front(logs.Traceback(error.log, error.batch, first->second.attempts), kTracebackBytes);
      }
      shown.push_back(std::move(one));
    }
    return shown;
  }

  std::vector<SlowAttempt> Slowest(plan::PlanStore& plan) const {
    std::vector<SlowAttempt> slow;
    for (const Figures::Attempt& attempt : figures_.slowest()) {
      slow.push_back({attempt, NameOf(state_, plan, attempt.id)});
    }
    return slow;
  }

 private:
  // Where an error was first: the attempt of its mini-batch is what its log is searched for.
  struct First {
    std::string key;
    std::string log;
    uint32_t attempts = 0;  // that failed so far, in this generation
    bool found = false;
  };

  static std::string NameOf(const job::JobState& state, plan::PlanStore& plan, job::BatchId id) {
    return Printable(ItemsOfMiniBatch(state, plan, id), kItemBytes);
  }

  uint32_t ItemsOf(job::BatchId id) const { return state_.known(id) ? state_.batch(id).items : 0; }

  void Count(const job::FailedRecord& failed) {
    const auto [begin, end] = firsts_.equal_range(failed.id);
    if (begin == end) return;
    const std::string key = job::ErrorKey(failed.kind, failed.message);
    for (auto it = begin; it != end; ++it) {
      First& first = it->second;
      const bool current = state_.settings() && generation_ == state_.settings()->generation;
      if (first.found) continue;
      ++first.attempts;
      first.found = current && first.key == key;
    }
  }

  const job::JobState& state_;
  std::vector<job::DistinctError> errors_;
  std::multimap<job::BatchId, First> firsts_;
  Figures figures_;
  uint32_t generation_ = 0;
};

}  // namespace

Status WriteRunReport(const ledger::Ledger& ledger, const job::JobState& state,
                      const job::FailureRules& rules, plan::PlanStore& plan,
                      const LogFolder& folder, const std::optional<Waits::Times>& waits,
                      WallTime now) {
  Reader reader(state, state.errors().Top(job::DistinctErrors::kLimit));
  const Result<uint64_t> read =
      ledger.Replay([&](const job::Record& record, const job::Place&, const job::Place&) {
        return reader.Visit(record);
      });
  if (!read.ok()) return read.error();
  const BatchMap map = MapOf(state);
  const PageFacts facts{state,
                        rules,
                        reader.figures(),
                        map,
                        reader.Errors(plan, folder),
                        reader.Slowest(plan),
                        waits,
                        now,
                        folder.path(),
                        std::nullopt};
  return folder.Publish(kReport, ReportPage(PageData(facts)));
}

}  // namespace parallelrun::coordinator
