#include "plan/left_out.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

// Of Spark, Hadoop and Databricks: ends of writes, what was begun and committed, unfinished parts.
bool IsMark(std::string_view name) {
  return name == "_SUCCESS" || name == "_temporary" || name == "_spark_metadata" ||
         name.starts_with("_committed_") || name.starts_with("_started_");
}

}  // namespace

bool IsData(DataNames names, std::string_view name) {
  if (names == DataNames::kAll) return true;
  if (names == DataNames::kNoMarks) return !IsMark(name);
  const bool partition = name.find('=') != std::string_view::npos;
  // Of a copy that is not done: its whole name will be there too.
  if (name.ends_with("._COPYING_")) return false;
  return !name.starts_with('_') || partition;
}

void CountedNames::Add(std::string_view path) {
  if (names_.contains(path)) return;
  if (names_.empty() || path < first_) first_ = path;
  more_ = names_.size() == kMost;
  if (!more_) names_.emplace(path);
}

std::vector<std::string> LeftOut::Lines(DataNames names) const {
  std::vector<std::string> lines;
  const auto add = [&lines](const CountedNames& counted, const char* one, const char* because) {
    if (counted.names() == 0) return;
    const std::string count =
        counted.more()         ? fmt::format("more than {} {}s are", CountedNames::kMost, one)
        : counted.names() == 1 ? fmt::format("1 {} is", one)
                               : fmt::format("{} {}s are", counted.names(), one);
    lines.push_back(fmt::format("{} left out, the first {}: {}", count,
                                Printable(counted.first(), 1024), because));
  };
  add(no_data_, "name",
      names == DataNames::kAsSpark ? "in Parquet folders a name with _ in front is no data"
                                   : "marks of the program that wrote the folder are no data");
  add(of_others_, "file", "an input before this one has it too, and each file is run once");
  add(no_files_, "object",
      "no file can have a name that ends in /, and it is no mark of a folder, for it holds bytes: "
      "copy it to another name");
  return lines;
}

}  // namespace parallelrun::plan
