#include "coordinator/log_tree/log_sink.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMaxSegments = 8;
constexpr size_t kMaxSegmentBytes = 255;

std::string Join(const std::vector<std::string>& segments, size_t count) {
  std::string path;
  for (size_t i = 0; i < count; ++i) path += (i > 0 ? "/" : "") + segments[i];
  return path;
}

uint64_t SizeHere(const LogFolder& folder, const std::string& name) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok()) return 0;
  const Result<FileFacts> facts = (*file)->Stat();
  return facts.ok() && facts->kind == EntryKind::kFile ? facts->size : 0;
}

}  // namespace

Result<LogSink> LogSink::Open(Files& files, const std::string& root) {
  Result<LogFolder> folder = LogFolder::Open(files, root);
  if (!folder.ok()) return folder.error();
  return LogSink(std::move(*folder));
}

bool LogSink::Allowed(uint32_t node, const std::vector<std::string>& segments) {
  if (segments.size() < 3 || segments.size() > kMaxSegments) {
    // perf/<node>/file has three segments too.
    return false;
  }
  for (const std::string& segment : segments) {
    if (segment.empty() || segment.size() > kMaxSegmentBytes || segment == "." || segment == "..") {
      return false;
    }
    for (const char c : segment) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/') return false;
    }
  }
  const std::string own = std::to_string(node);
  if (segments[0] == "perf") return segments[1] == own;
  if (segments.size() < 4 || segments[2] != own) return false;
  if (segments[0] == "user") {
    return segments[1] == "stdout" || segments[1] == "stderr" || segments[1] == "error" ||
           segments[1] == "entry_script_log" || segments[1] == "files";
  }
  return segments[0] == "sys" && (segments[1] == "node" || segments[1] == "error");
}

void LogSink::KeepSegments(std::shared_ptr<LogSpool> spool, uint64_t most_here) {
  spool_ = std::move(spool);
  most_here_ = most_here;
  apart_.clear();
  here_ = 0;
  for (const char* folder : {"user", "sys/node", "sys/error", "perf"}) {
    for (const std::string& name : folder_.FilesBelow(folder)) here_ += SizeHere(folder_, name);
  }
}

// First in a segment: what the tree has is in the store too.
Status LogSink::Keep(uint32_t node, const LogRecord& record, Instant now) {
  if (Status kept = spool_->Add(node, EncodeLogRecord(record), now); !kept.ok()) return kept;
  const std::string path(record.name);
  if (apart_.contains(path)) return {};
  const uint64_t size = SizeHere(folder_, path);
  const uint64_t kept = record.anew ? 0 : size;
  const uint64_t next = std::max(kept, record.offset + record.bytes.size());
  const uint64_t others = here_ - std::min(here_, size);
  if (record.offset <= kept && others + next <= most_here_) {
    here_ = others + next;
    return {};
  }
  // The mark comes before the file goes.
  if (Status marked = spool_->SetApart(node); !marked.ok()) return marked;
  const Status removed = folder_.Remove(path);
  if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  here_ = others;
  apart_.insert(path);
  return {};
}

Status LogSink::Write(uint32_t node, const std::vector<std::string>& segments, uint64_t offset,
                      std::string_view bytes, bool truncate, Instant now) {
  if (!Allowed(node, segments)) {
    return Error{Code::kPermission, fmt::format("node {} may not write this log path", node)};
  }
  const std::string path = Join(segments, segments.size());
  if (spool_) {
    const LogRecord record{path, offset, truncate, bytes};
    if (Status kept = Keep(node, record, now); !kept.ok()) return kept;
    if (apart_.contains(path)) return {};
  }
  const Result<std::unique_ptr<File>> file = folder_.OpenOrCreate(path);
  if (!file.ok()) return file.error();
  if (truncate) {
    if (Status cut = (*file)->Cut(0); !cut.ok()) return cut;
  }
  return (*file)->WriteAt(offset, bytes);
}

}  // namespace parallelrun::coordinator
