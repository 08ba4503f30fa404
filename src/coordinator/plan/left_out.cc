#include "coordinator/plan/left_out.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/escape.h"

namespace parallelrun {
namespace {

// Of Spark, Hadoop and Databricks: ends of writes, what was begun and committed, unfinished parts.
bool IsMark(std::string_view name) {
  return name == "_SUCCESS" || name == "_temporary" || name == "_spark_metadata" ||
         name.starts_with("_committed_") || name.starts_with("_started_");
}

Error RemovedRows(const std::string& folder, std::string_view kind, std::string_view log,
                  const std::string& found) {
  return {Code::kInvalid,
          fmt::format("{} is {} table ({} is there), and its files hold rows that were removed or "
                      "replaced since: write the rows that count out as plain Parquet first, or, "
                      "to read every file all the same, name {} in inputs[].exclude",
                      Printable(folder, 4096), kind, Printable(found, 256), log)};
}

// Not to know is not to allow; but above the input there may be folders that are nobody's to see.
Status UnlessNotThere(const Error& why) {
  if (why.code == Code::kNotFound || why.code == Code::kPermission) return {};
  return why;
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

bool IsTableLog(std::string_view name) {
  return std::find(kTableLogs.begin(), kTableLogs.end(), name) != kTableLogs.end();
}

Status RefuseTableLog(const Files& files, const std::string& folder, std::string_view log) {
  const std::string path = (folder == "/" ? folder : folder + "/") + std::string(log);
  const Result<FileFacts> found = files.Stat(path);
  if (!found.ok()) return UnlessNotThere(found.error());
  if (found->kind != EntryKind::kFolder) return {};
  if (log == "_delta_log") return RemovedRows(folder, "a Delta", log, std::string(log));
  // Of this name there are other folders too.
  const auto opened = files.OpenFolder(path, Links::kFollow);
  if (!opened.ok()) return UnlessNotThere(opened.error());
  std::string first;
  const Status read = (*opened)->Entries([&first](const std::string& name, EntryKind) -> Status {
    if (name.ends_with(".metadata.json") && (first.empty() || name < first)) first = name;
    return {};
  });
  if (!read.ok()) return read;
  if (first.empty()) return {};
  return RemovedRows(folder, "an Iceberg", log, fmt::format("{}/{}", log, first));
}

}  // namespace parallelrun
