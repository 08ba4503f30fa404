#include "coordinator/log_tree/dead_letters.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

namespace parallelrun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uintmax_t kMostLogBytes = uintmax_t{64} << 20;
constexpr size_t kMostTraceback = size_t{64} << 10;

// The tracebacks in one error log, found by the heading that the worker gives each of them.
class ErrorLogs {
 public:
  explicit ErrorLogs(std::string folder) : folder_(std::move(folder)) {}

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
    const std::string path = folder_ + "/" + log;
    std::error_code error;
    const uintmax_t size = fs::file_size(path, error);
    if (error || size > kMostLogBytes) return;
    std::ifstream in(path, std::ios::binary);
    text_.assign(std::istreambuf_iterator<char>(in), {});
  }

  const std::string folder_;
  std::string log_;
  std::string text_;
};

class Letters {
 public:
  Letters(const JobState& state, const FailureRules& rules, PlanStore& plan,
          const std::string& folder, const std::string& path)
      : state_(state), rules_(rules), plan_(plan), logs_(folder), out_(path, std::ios::trunc) {}

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

  Status Finish(const std::string& path) {
    out_.close();
    if (out_) return {};
    return Error{Code::kInternal, path + " cannot be written"};
  }

 private:
  // One line: which of its items are without an element, only run() knows.
  Status VisitResult(const ResultRecord& result) {
    const uint32_t items = state_.known(result.id) ? state_.batch(result.id).items : 0;
    const uint32_t failed = rules_.FailedOf(items, result.items_succeeded);
    if (failed == 0) return {};
    const Result<std::vector<PlannedItem>> planned = plan_.Items(state_, result.id);
    if (!planned.ok()) return planned.error();
    json line = {{"miniBatch", WholeOf(result.id)},
                 {"items", items},
                 {"withoutElement", failed},
                 {"kind", "ShortReturn"},
                 {"message", fmt::format("run() returned {} elements for {} items",
                                         result.items_succeeded, items)},
                 {"node", result.node},
                 {"process", fmt::format("process{:03}", result.process)}};
    if (!planned->empty()) line["firstItem"] = planned->front().first_item;
    for (const PlannedItem& item : *planned) {
      if (!item.path.empty()) line["paths"].push_back(item.path);
    }
    out_ << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    return {};
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
      out_ << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    }
    return {};
  }

  const JobState& state_;
  const FailureRules& rules_;
  PlanStore& plan_;
  ErrorLogs logs_;
  std::ofstream out_;
  uint32_t generation_ = 0;
};

}  // namespace

Status WriteDeadLetters(const Files& files, const std::string& state_folder, const JobState& state,
                        const FailureRules& rules, PlanStore& plan, const std::string& log_folder) {
  const std::string path = log_folder + "/dead-letter.jsonl";
  std::error_code error;
  if (CountLosses(state.counts(), rules).items == 0) {
    fs::remove(path, error);  // of an earlier generation
    return {};
  }
  Letters letters(state, rules, plan, log_folder, path + ".tmp");
  const Result<uint64_t> read = Ledger::Inspect(
      files, state_folder,
      [&](const Record& record, const Place&, const Place&) { return letters.Visit(record); });
  if (!read.ok()) return read.error();
  if (const Status written = letters.Finish(path); !written.ok()) return written;
  fs::rename(path + ".tmp", path, error);
  return error ? Status(ErrnoError(error.value(), "rename " + path + ".tmp")) : Status();
}

}  // namespace parallelrun
