#include "coordinator/plan/left_out.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"

namespace parallelrun {
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

void LeftOut::Add(std::string_view path) {
  if (names_.contains(path)) return;
  if (names_.empty() || path < first_) first_ = path;
  more_ = names_.size() == kMost;
  if (!more_) names_.emplace(path);
}

std::string LeftOutLine(const LeftOut& left_out, DataNames names) {
  if (left_out.names() == 0) return "";
  return fmt::format("{} left out, the first {}: {}",
                     left_out.more()         ? fmt::format("more than {} names are", LeftOut::kMost)
                     : left_out.names() == 1 ? "1 name is"
                                             : fmt::format("{} names are", left_out.names()),
                     Printable(left_out.first(), 1024),
                     names == DataNames::kAsSpark
                         ? "in Parquet folders a name with _ in front is no data"
                         : "marks of the program that wrote the folder are no data");
}

}  // namespace parallelrun
