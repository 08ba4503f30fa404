// Names among the files of a table that are none of its data: what the programs that write tables
// leave beside them. Pure but for RefuseTableLog; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun {

enum class DataNames : uint8_t {
  kAll,      // files: whoever gives paths to a script means all of them
  kNoMarks,  // CSV, TSV, JSON lines: but for the known marks of those programs
  kAsSpark,  // Parquet: none with a '_' in front, but for the `_key=value` of a partition
};

// The name of a file or folder, without the path to it.
bool IsData(DataNames names, std::string_view name);

// What a listing left out for its name. Folders count once, with all below them; a store may ask
// about a name again, so that they are remembered, up to kMost.
class LeftOut {
 public:
  static constexpr size_t kMost = 1000;

  void Add(std::string_view path);
  size_t names() const { return names_.size(); }
  bool more() const { return more_; }                  // than names()
  const std::string& first() const { return first_; }  // by bytes

 private:
  std::set<std::string, std::less<>> names_;
  bool more_ = false;
  std::string first_;
};

// "2 names are left out, the first _SUCCESS: …"; empty where there is none.
std::string LeftOutLine(const LeftOut& left_out, DataNames names);

// Folders by which a table tells which of its files count: of Delta Lake and of Iceberg.
inline constexpr std::array<std::string_view, 2> kTableLogs = {"_delta_log", "metadata"};
bool IsTableLog(std::string_view name);

// kInvalid where `folder` holds such a log: all files of that table together give rows that were
// removed. A folder that nobody may look into is taken for none.
Status RefuseTableLog(const Files& files, const std::string& folder, std::string_view log);

}  // namespace parallelrun
