#include "cli/logs/log_lines.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <memory>
#include <vector>

namespace parallelrun::cli {
namespace {

struct Kind {
  const char* folder;
  const char* suffix;
  const char* label;
};

// docs/logs.md.
constexpr std::array<Kind, 4> kKinds{{{"user/stdout", ".stdout.txt", "out"},
                                      {"user/stderr", ".stderr.txt", "err"},
                                      {"user/error", ".txt", "error"},
                                      {"user/entry_script_log", ".log.txt", "log"}}};

}  // namespace

std::vector<std::string> FoldersOfLines(std::optional<uint32_t> node) {
  std::vector<std::string> folders;
  for (const Kind& kind : kKinds) {
    folders.push_back(node ? fmt::format("{}/{}", kind.folder, *node) : std::string(kind.folder));
  }
  return folders;
}

std::string FolderOfAgent(uint32_t node) { return fmt::format("sys/node/{}", node); }

void LogLines::Look(const Each& each, bool all) {
  for (const Kind& kind : kKinds) {
    std::vector<std::string> nodes = {node_ ? std::to_string(*node_) : ""};
    if (!node_) nodes = folder_.List(kind.folder);
    for (const std::string& node : nodes) {
      const std::string folder = fmt::format("{}/{}", kind.folder, node);
      for (const std::string& name : folder_.List(folder)) {
        if (!name.ends_with(kind.suffix)) continue;
        const std::string process = name.substr(0, name.size() - std::string(kind.suffix).size());
        LookAt(folder + "/" + name, fmt::format("{}/{} {}", node, process, kind.label), each, all);
      }
    }
  }
  if (node_) {
    LookAt(FolderOfAgent(*node_) + "/" + kAgentLog, fmt::format("{}/agent", *node_), each, all);
  }
}

void LogLines::LookAt(const std::string& name, const std::string& from, const Each& each,
                      bool all) {
  const Result<std::unique_ptr<File>> file = folder_.OpenRead(name);
  if (!file.ok()) return;  // not there yet, or no file of ours
  uint64_t& read = read_[name];
  const Result<uint64_t> size = (*file)->Size();
  if (size.ok() && *size < read) read = 0;  // it was begun anew
  while (true) {
    const Result<std::string> block = (*file)->ReadAt(read, kLongestLine);
    if (!block.ok() || block->empty()) return;
    std::string_view left = *block;
    for (size_t end = 0; (end = left.find('\n')) != std::string_view::npos;) {
      each(from, left.substr(0, end));
      read += end + 1;
      left.remove_prefix(end + 1);
    }
    if (left.empty()) continue;
    const bool whole = left.size() == kLongestLine;
    if (!whole && block->size() == kLongestLine) continue;  // it goes on in the next block
    if (!whole && !all) return;
    each(from, left);
    read += left.size();
  }
}

}  // namespace parallelrun::cli
