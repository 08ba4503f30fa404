// What `parallelrun failures` shows: the lines of failures.jsonl (docs/logs.md), grouped by error.
// Pure. The lines are hostile: who may write to the logs may write anything there. Memory is that
// of kMostErrors groups, whatever the file holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

// Bytes of a line; a mini-batch may have very many files.
constexpr size_t kMostFailedLine = size_t{64} << 20;

// One line. Texts are as they were written, and not safe to show.
struct FailedLine {
  std::string type;
  std::string message;
  std::string location;            // file:line of the script; empty: unknown
  std::string log;                 // below the log folder; empty: none
  std::vector<std::string> paths;  // the files, as bytes; none of a rank mini-batch
  std::string item;                // for people: the file, the first of several, or "rank 7"
  uint64_t items = 1;
  uint64_t mini_batch = 0;
  uint64_t id = 0;     // of the mini-batch or its piece, in the logs
  uint32_t tries = 0;  // 0: it did not fail as a whole, items of it did
  std::string kind;    // as the coordinator sorts errors
  uint32_t node = 0;
  std::string process;
  bool final = true;  // it is neither tried again nor split
};

// kInvalid where it is no such line.
Result<FailedLine> ReadFailedLine(std::string_view line);

struct ErrorGroup {
  FailedLine first;  // without its paths
  uint64_t items = 0;
  uint64_t mini_batches = 0;
  uint32_t most_tries = 0;
  std::string traceback;  // of the first one; empty: none, or not asked for
};

class FailureTable {
 public:
  static constexpr size_t kMostErrors = 1000;

  void Add(FailedLine line);
  // The one with the most items first, the earlier among equals.
  std::vector<ErrorGroup> Groups() const;
  uint64_t items() const { return items_; }
  // Of the errors behind the first kMostErrors.
  uint64_t other_items() const { return other_items_; }

 private:
  struct Counted {
    ErrorGroup group;
    uint64_t last_mini_batch = 0;
  };

  std::vector<Counted> groups_;
  std::unordered_map<std::string, size_t> index_;
  uint64_t items_ = 0;
  uint64_t other_items_ = 0;
};

// Below the log folder.
inline constexpr char kErrorLogs[] = "user/error";
// The files there that the groups' first failures name, each once; what is no name of a file is
// left out.
std::vector<std::string> ErrorLogsOf(const std::vector<ErrorGroup>& groups);

// For people: a table, one row and its first item for each error, and the traceback if there is
// one.
std::string FailureText(const std::vector<ErrorGroup>& groups, const FailureTable& table,
                        const std::string& logs);
// For programs (docs/cli.md).
std::string FailureJson(const std::vector<ErrorGroup>& groups, const FailureTable& table,
                        const std::string& logs);

}  // namespace parallelrun::cli
