// What `parallelrun doctor` finds on this machine, and what to do about it. Pure: facts in, lines
// out. facts.h gathers the facts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parallelrun::cli {

// A folder that a run would write to.
struct FolderFacts {
  std::string path;
  std::string problem;  // why it cannot be written; empty: it can
  uint64_t free_bytes = 0;
  bool locks = true;  // a file there can be locked
};

struct MachineFacts {
  std::string release;
  std::string programs;  // what is missing of this installation; empty: nothing
  std::string python;    // that runs scripts, and why this one
  std::string python_version;
  std::string python_problem;  // empty: it answers
  std::string python_lacks;    // what some inputs need, with how to install it; empty: nothing
  unsigned cores = 1;          // that this process may use
  std::optional<double> core_quota;      // of its control group
  uint64_t memory_bytes = 0;             // available now, of the machine
  std::optional<uint64_t> memory_limit;  // of its control group
  std::optional<uint64_t> memory_used;   // likewise
  std::optional<uint64_t> shared_bytes;  // free in /dev/shm; nothing: there is none
  uint64_t open_files = 0;               // soft limit
  uint64_t open_files_most = 0;          // hard limit
  std::optional<uint64_t> processes;     // how many more there may be; nothing: no limit
  FolderFacts temporary;
  FolderFacts work;
  std::string control_problem;   // of the folder by which runs are found
  std::string loopback_problem;  // of a socket on 127.0.0.1
  std::string kubectl;           // its path; empty: not there
};

enum class Level : uint8_t { kOk, kWarn, kFail };

struct Finding {
  Level level = Level::kOk;
  std::string subject;  // one or two words
  std::string text;     // what was found
  std::string to_do;    // empty where nothing is to be done
};

std::vector<Finding> FindingsOf(const MachineFacts& facts);

// A line for each, what is to be done below it; and the last line, which counts.
std::string FindingsText(const std::vector<Finding>& findings);
std::string FindingsJson(const std::vector<Finding>& findings);

}  // namespace parallelrun::cli
