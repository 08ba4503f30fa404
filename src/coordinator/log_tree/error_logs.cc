#include "coordinator/log_tree/error_logs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>

namespace parallelrun::coordinator {
namespace {

constexpr uint64_t kMostLogBytes = uint64_t{64} << 20;
constexpr size_t kMostTraceback = size_t{64} << 10;

}  // namespace

std::string ErrorLogs::Traceback(const std::string& log, job::BatchId id, uint32_t attempt) {
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

void ErrorLogs::Open(const std::string& log) {
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

}  // namespace parallelrun::coordinator
