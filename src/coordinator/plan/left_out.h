// Names among the files of a table that are none of its data: what the programs that write tables
// leave beside them. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

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

}  // namespace parallelrun
