#include "coordinator/log_tree/dead_letters.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr char kName[] = "dead-letter.jsonl";
constexpr uint64_t kMostLogBytes = uint64_t{64} << 20;
constexpr size_t kMostTraceback = size_t{64} << 10;

// The tracebacks in one error log, found by the heading that the worker gives each of them.
class ErrorLogs {
 public:
  explicit ErrorLogs(LogFolder folder) : folder_(std::move(folder)) {}

  // "" when it is not there.
  std::string Traceback(const std::string& log, BatchId id, uint32_t attempt) {
    if (log.empty()) return "";
    Open(log);
    const std::string heading = fmt::format("|mini-batch {}, attempt {}: ", id, attempt);
    const size_t at = text_.find(heading);
    if (at == std::string::npos) return "";
    const size_t begin = text_.find("Traceback (most recent call last)", at);
    const size_t end = std::min(text_.find("|ERROR|", at + heading.size()), text_.size());
    if (begin == std::string::npos || begin >= end) return "";
    // Without the next entry's line, of which the time stands before the level.
    const size_t line = end == text_.size() ? end : text_.rfind('\n', end);
    return text_.substr(begin, std::min(line - begin, kMostTraceback));
  }

 private:
  void Open(const std::string& log) {
    if (log == log_) return;
    log_ = log;
    text_.clear();
    const Result<std::unique_ptr<File>> file = folder_.OpenRead(log);
    if (!file.ok()) return;
    const Result<FileFacts> facts = (*file)->Stat();
    if (!facts.ok() || facts->kind != EntryKind::kFile || facts->size > kMostLogBytes) return;
    Result<std::string> text = (*file)->ReadAt(0, facts->size);
    if (text.ok()) text_ = std::move(*text);
  }

  const LogFolder folder_;
  std::string log_;
  std::string text_;
};

class Letters {
 public:
  Letters(const JobState& state, const FailureRules& rules, PlanStore& plan,
          const LogFolder& folder)
      : state_(state), rules_(rules), plan_(plan), logs_(folder), out_(folder, kName) {}

  Status Visit(const Record& record) {
    if (const auto* settings = std::get_if<SettingsRecord>(&record)) {
      generation_ = settings->generation;
    }
    if (const auto* result = std::get_if<ResultRecord>(&record)) return VisitResult(*result);
    const auto* failed = std::get_if<FailedRecord>(&record);
    const bool counts = failed != nullptr && failed->end == AttemptEnd::kFinal &&
                        state_.settings() && generation_ == state_.settings()->generation &&
                        state_.known(failed->id) &&
                        state_.batch(failed->id).state == MiniBatch::State::kFailed;
    return counts ? Write(*failed) : Status();
  }

  Status Finish() { return out_.Publish(); }

 private:
  // A line for what was skipped, and one for what is without an element.
  Status VisitResult(const ResultRecord& result) {
    if (!state_.known(result.id)) return {};
    const MiniBatch batch = state_.batch(result.id);
    const uint32_t items = batch.items;
    const uint32_t skipped = batch.items_skipped;
    const uint32_t failed = rules_.FailedOf(batch.items_missing, skipped);
    if (failed == 0) return {};
    const Result<std::vector<PlannedItem>> planned = plan_.Items(state_, result.id);
    if (!planned.ok()) return planned.error();
    const std::string process = fmt::format("process{:03}", result.process);
    if (skipped > 0) {
      const std::string log =
          fmt::format("user/files/{}/skipped_rows.{}.txt", result.node, process);
      AddOfResult(result, *planned,
                  {{"skipped", skipped},
                   {"kind", "SkippedRows"},
                   {"message", fmt::format("{} of {} rows do not fit the columns and were left "
                                           "out; they are listed in {}",
                                           skipped, items, log)},
                   {"process", process},
                   {"log", log}});
    }
    if (failed > skipped) {
      // Which items these are, only run() knows.
      AddOfResult(result, *planned,
                  {{"withoutElement", failed - skipped},
                   {"kind", "ShortReturn"},
                   {"message", fmt::format("run() returned {} elements for {} items",
                                           result.items_succeeded, items - skipped)},
                   {"process", process}});
    }
    return {};
  }

  void AddOfResult(const ResultRecord& result, const std::vector<PlannedItem>& planned, json line) {
    line["miniBatch"] = WholeOf(result.id);
    line["items"] = state_.batch(result.id).items;
    line["node"] = result.node;
    if (!planned.empty()) line["firstItem"] = planned.front().first_item;
    for (const PlannedItem& item : planned) {
      if (!item.path.empty()) line["paths"].push_back(item.path);
    }
    out_.Add(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  }

  // One line for each file; one for all rows of a mini-batch, which lie together.
  Status Write(const FailedRecord& failed) {
    const Result<std::vector<PlannedItem>> items = plan_.Items(state_, failed.id);
    if (!items.ok()) return items.error();
    for (const PlannedItem& item : *items) {
      json line = {{"miniBatch", WholeOf(failed.id)},
                   {"items", item.rows},
                   {"firstItem", item.first_item},
                   {"kind", failed.kind},
                   {"message", failed.message},
                   {"attempts", state_.batch(failed.id).failed_attempts},
                   {"node", failed.node},
                   {"process", fmt::format("process{:03}", failed.process)},
                   {"log", failed.log}};
      if (!item.path.empty()) line["path"] = item.path;
      if (item.in_file) {
        line["offset"] = item.offset;
        line["length"] = item.length;
        line["firstRow"] = item.first_row;
      }
      line["traceback"] = logs_.Traceback(std::string(failed.log), failed.id,
                                          state_.batch(failed.id).failed_attempts);
      out_.Add(line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
    }
    return {};
  }

  const JobState& state_;
  const FailureRules& rules_;
  PlanStore& plan_;
  ErrorLogs logs_;
  NewLogFile out_;
  uint32_t generation_ = 0;
};

}  // namespace

Status WriteDeadLetters(const Files& files, const std::string& state_folder, const JobState& state,
                        const FailureRules& rules, PlanStore& plan, const LogFolder& folder) {
  if (CountLosses(state.counts(), rules).items == 0) {
    folder.RemoveAll(kName);  // of an earlier generation
    return {};
  }
  Letters letters(state, rules, plan, folder);
  const Result<uint64_t> read = Ledger::Inspect(
      files, state_folder,
      [&](const Record& record, const Place&, const Place&) { return letters.Visit(record); });
  if (!read.ok()) return read.error();
  return letters.Finish();
}

}  // namespace parallelrun
