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
  Letters(const JobState& state, PlanStore& plan, const std::string& folder,
          const std::string& path)
      : state_(state), plan_(plan), logs_(folder), out_(path, std::ios::trunc) {}

  Status Visit(const Record& record) {
    if (const auto* settings = std::get_if<SettingsRecord>(&record)) {
      generation_ = settings->generation;
    }
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
  PlanStore& plan_;
  ErrorLogs logs_;
  std::ofstream out_;
  uint32_t generation_ = 0;
};

}  // namespace

Status WriteDeadLetters(const Files& files, const std::string& state_folder, const JobState& state,
                        PlanStore& plan, const std::string& log_folder) {
  const std::string path = log_folder + "/dead-letter.jsonl";
  std::error_code error;
  if (state.counts().failed + state.counts().items_isolated == 0) {
    fs::remove(path, error);  // of an earlier generation
    return {};
  }
  Letters letters(state, plan, log_folder, path + ".tmp");
  const Result<uint64_t> read = Ledger::Inspect(
      files, state_folder,
      [&](const Record& record, const Place&, const Place&) { return letters.Visit(record); });
  if (!read.ok()) return read.error();
  if (const Status written = letters.Finish(path); !written.ok()) return written;
  fs::rename(path + ".tmp", path, error);
  return error ? Status(ErrnoError(error.value(), "rename " + path + ".tmp")) : Status();
}

}  // namespace parallelrun
