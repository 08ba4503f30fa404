// What an input has no items of though it lies there: among the files of a table names that are
// none of its data, as the programs that write tables leave them, files that an input before it
// means, and objects that no file can be called as. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::plan {

enum class DataNames : uint8_t {
  kAll,      // files: whoever gives paths to a script means all of them
  kNoMarks,  // CSV, TSV, JSON lines: but for the known marks of those programs
  kAsSpark,  // Parquet: none with a '_' in front, but for the `_key=value` of a partition
};

// The name of a file or folder, without the path to it.
bool IsData(DataNames names, std::string_view name);

// Names that are counted once: a store may ask about one again, so that they are remembered, up to
// kMost.
class CountedNames {
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

// What a listing left out. Folders count once, with all below them.
class LeftOut {
 public:
  void AddNoData(std::string_view path) { no_data_.Add(path); }
  void AddOfOther(std::string_view path) { of_others_.Add(path); }
  // An object of a store that holds bytes, and whose name ends in '/'.
  void AddNoFile(std::string_view path) { no_files_.Add(path); }

  bool of_others() const { return of_others_.names() > 0; }
  // "2 names are left out, the first _SUCCESS: …", a line for each reason.
  std::vector<std::string> Lines(DataNames names) const;

 private:
  CountedNames no_data_;
  CountedNames of_others_;
  CountedNames no_files_;
};

}  // namespace parallelrun::plan
