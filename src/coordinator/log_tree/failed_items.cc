#include "coordinator/log_tree/failed_items.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "coordinator/log_tree/error_logs.h"
#include "job/failure_text.h"
#include "reasons/reason.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr char kFailures[] = "failures.jsonl";
constexpr char kDeadLetters[] = "dead-letter.jsonl";

// A file of lines, which is there only if there are any.
class Lines {
 public:
  Lines(LogFolder folder, const char* name) : folder_(std::move(folder)), name_(name) {}

  // With one more member, as JSON: a path is bytes, which a json value cannot give back.
  void Add(const json& line, const std::string& member) {
    if (!file_) file_.emplace(folder_, name_);
    std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace);
    if (!member.empty()) text.replace(text.size() - 1, 1, "," + member + "}");
    file_->Add(text + "\n");
  }

  Status Publish() {
    if (file_) return file_->Publish();
    folder_.RemoveAll(name_);  // of an earlier generation
    return {};
  }

 private:
  const LogFolder folder_;
  const char* const name_;
  std::optional<NewLogFile> file_;
};

class FailedItems {
 public:
  FailedItems(const job::JobState& state, const job::FailureRules& rules, plan::PlanStore& plan,
              const LogFolder& folder, bool dead_letters)
      : state_(state),
        rules_(rules),
        plan_(plan),
        logs_(folder),
        failures_(folder, kFailures),
        letters_(folder, kDeadLetters),
        dead_letters_(dead_letters) {}

  Status Visit(const job::Record& record) {
    if (const auto* settings = std::get_if<job::SettingsRecord>(&record)) {
      generation_ = settings->generation;
    }
    if (const auto* result = std::get_if<job::ResultRecord>(&record)) return VisitResult(*result);
    const auto* failed = std::get_if<job::FailedRecord>(&record);
    const bool counts = failed != nullptr && state_.settings() &&
                        generation_ == state_.settings()->generation && state_.known(failed->id);
    return counts ? VisitFailed(*failed) : Status();
  }

  Status Publish() {
    const Status failures = failures_.Publish();
    const Status letters = letters_.Publish();
    return failures.ok() ? letters : failures;
  }

 private:
  // A line for what was skipped, and one for what is without an element.
  Status VisitResult(const job::ResultRecord& result) {
    if (!state_.known(result.id)) return {};
    const job::MiniBatch batch = state_.batch(result.id);
    const uint32_t items = batch.items;
    const uint32_t skipped = batch.items_skipped;
    const uint32_t failed = rules_.FailedOf(batch.items_missing, skipped);
    if (failed == 0) return {};
    const Result<std::vector<plan::PlannedItem>> planned = plan_.Items(state_, result.id);
    if (!planned.ok()) return planned.error();
    if (skipped > 0) {
      const std::string log =
          fmt::format("user/files/{}/skipped_rows.process{:03}.txt", result.node, result.process);
      AddOfResult(result, *planned, "skipped", skipped,
                  {{"kind", reasons::Reason("SkippedRows").word()},
                   {"message", fmt::format("{} of {} left out for not fitting the columns; "
                                           "see {}",
                                           skipped, CountOf(items, "row", "was", "were"), log)},
                   {"log", log}});
    }
    if (failed > skipped) {
      // Which items these are, only run() knows.
      AddOfResult(result, *planned, "withoutElement", failed - skipped,
                  {{"kind", reasons::Reason("ShortReturn").word()},
                   {"message", fmt::format("run() returned {} for {}",
                                           CountOf(result.items_succeeded, "element"),
                                           CountOf(items - skipped, "item"))}});
    }
    return {};
  }

  // `lost` items of the mini-batch: how many they are is under `key` among the dead letters.
  void AddOfResult(const job::ResultRecord& result, const std::vector<plan::PlannedItem>& planned,
                   const char* key, uint32_t lost, json line) {
    line["miniBatch"] = job::WholeOf(result.id);
    line["node"] = result.node;
    line["process"] = fmt::format("process{:03}", result.process);
    if (!planned.empty()) line["firstItem"] = planned.front().first_item;
    std::string paths;
    for (const plan::PlannedItem& item : planned) {
      if (!item.path.empty()) paths += (paths.empty() ? "" : ",") + JsonText(item.path);
    }
    const std::string member = paths.empty() ? "" : "\"paths\":[" + paths + "]";
    if (dead_letters_) {
      json letter = line;
      letter[key] = lost;
      letter["items"] = state_.batch(result.id).items;
      letters_.Add(letter, member);
    }
    line["items"] = lost;
    line["type"] = line["kind"];
    failures_.Add(line, member);
  }

  // The last attempt of what has not succeeded: it failed, or the job ended before it was tried
  // again. What was split has pieces, which have lines of their own.
  Status VisitFailed(const job::FailedRecord& failed) {
    const job::MiniBatch batch = state_.batch(failed.id);
    const bool stands =
        batch.fence == failed.fence && (batch.state == job::MiniBatch::State::kFailed ||
                                        batch.state == job::MiniBatch::State::kPending);
    if (!stands) return {};
    const Result<std::vector<plan::PlannedItem>> items = plan_.Items(state_, failed.id);
    if (!items.ok()) return items.error();
    for (const plan::PlannedItem& item : *items) {
      json line = {{"miniBatch", job::WholeOf(failed.id)},
                   {"items", item.rows},
                   {"firstItem", item.first_item},
                   {"kind", failed.kind},
                   {"node", failed.node},
                   {"process", fmt::format("process{:03}", failed.process)},
                   {"log", failed.log}};
      AddFailure(line, failed, batch, item);
      if (dead_letters_ && batch.state == job::MiniBatch::State::kFailed) {
        AddLetter(std::move(line), failed, batch, item);
      }
    }
    return {};
  }

  // One line for each file; one for all rows of a mini-batch, which lie together.
  void AddFailure(json line, const job::FailedRecord& failed, const job::MiniBatch& batch,
                  const plan::PlannedItem& item) {
    const job::FailureParts parts = job::SplitFailure(failed.kind, failed.message);
    line["type"] = parts.type.empty() ? std::string(failed.kind) : parts.type;
    line["message"] = parts.message;
    line["location"] = parts.location;
    line["attempt"] = batch.failed_attempts;
    line["id"] = failed.id;
    const std::string name =
        item.path.empty() ? fmt::format("rank {}", job::WholeOf(failed.id)) : item.path;
    failures_.Add(line, "\"item\":" + JsonText(name));
  }

  void AddLetter(json line, const job::FailedRecord& failed, const job::MiniBatch& batch,
                 const plan::PlannedItem& item) {
    line["message"] = failed.message;
    line["attempts"] = batch.failed_attempts;
    if (item.in_file) {
      line["offset"] = item.offset;
      line["length"] = item.length;
      line["firstRow"] = item.first_row;
    }
    line["traceback"] = logs_.Traceback(std::string(failed.log), failed.id, batch.failed_attempts);
    letters_.Add(line, item.path.empty() ? "" : "\"path\":" + JsonText(item.path));
  }

  const job::JobState& state_;
  const job::FailureRules& rules_;
  plan::PlanStore& plan_;
  ErrorLogs logs_;
  Lines failures_;
  Lines letters_;
  const bool dead_letters_;
  uint32_t generation_ = 0;
};

}  // namespace

Status WriteFailedItems(const ledger::Ledger& ledger, const job::JobState& state,
                        const job::FailureRules& rules, plan::PlanStore& plan,
                        const LogFolder& folder, bool dead_letters) {
  FailedItems items(state, rules, plan, folder, dead_letters);
  const bool any = job::CountLosses(state.counts(), rules).items > 0 || state.errors().total() > 0;
  if (!any) return items.Publish();  // a ledger may be long
  const Result<uint64_t> read =
      ledger.Replay([&](const job::Record& record, const job::Place&, const job::Place&) {
        return items.Visit(record);
      });
  if (!read.ok()) return read.error();
  return items.Publish();
}

}  // namespace parallelrun::coordinator
