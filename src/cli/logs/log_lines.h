// What the scripts of a run write, line by line, as their nodes bring it into the log folder. Each
// file is read from where the last look ended. The lines are hostile. Blocking I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::cli {

// The folders of the log tree that hold the lines of scripts, of all nodes or of one.
std::vector<std::string> FoldersOfLines(std::optional<uint32_t> node);
// Where the log of a node's agent lies.
std::string FolderOfAgent(uint32_t node);
inline constexpr char kAgentLog[] = "_main.txt";

class LogLines {
 public:
  // `from` says whose it is, as "0/process000 err"; the line is without its end.
  using Each = std::function<void(std::string_view from, std::string_view line)>;

  // Of all nodes, or of `node` alone and then with what its agent logs.
  LogLines(coordinator::LogFolder folder, std::optional<uint32_t> node)
      : folder_(std::move(folder)), node_(node) {}

  // What has come since the last call, file by file. A line that has no end yet comes with its end,
  // or with `all`.
  void Look(const Each& each, bool all);

 private:
  static constexpr size_t kLongestLine = size_t{1} << 20;  // what is longer comes in pieces

  void LookAt(const std::string& name, const std::string& from, const Each& each, bool all);

  const coordinator::LogFolder folder_;
  const std::optional<uint32_t> node_;
  std::map<std::string, uint64_t> read_;  // bytes of each file
};

}  // namespace parallelrun::cli
