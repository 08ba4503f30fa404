#include "coordinator/log_tree/log_sink.h"

#include <spdlog/fmt/fmt.h>

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

Status LogSink::Write(uint32_t node, const std::vector<std::string>& segments, uint64_t offset,
                      std::string_view bytes, bool truncate) {
  if (!Allowed(node, segments)) {
    return Error{Code::kPermission, fmt::format("node {} may not write this log path", node)};
  }
  const std::string path = Join(segments, segments.size());
  const Result<std::unique_ptr<File>> file = folder_.OpenOrCreate(path);
  if (!file.ok()) return file.error();
  if (truncate) {
    if (Status cut = (*file)->Cut(0); !cut.ok()) return cut;
  }
  return (*file)->WriteAt(offset, bytes);
}

}  // namespace parallelrun::coordinator
