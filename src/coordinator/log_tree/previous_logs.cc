#include "coordinator/log_tree/previous_logs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace parallelrun::coordinator {
namespace {

constexpr char kPrevious[] = "previous";
constexpr std::string_view kTimeForm = "ddddddddTddddddZ";  // d: a digit
constexpr int kNameTries = 100;                             // within one second

// What one folder of the tree holds of an earlier run.
struct Part {
  std::string folder;
  std::vector<std::string> names;
};

// Of what lies at the top of the tree. All else there is a user's, or is written anew by each run.
bool IsOfRun(const std::string& name) {
  // What a report was made beside may be left of a coordinator that died.
  const std::string whole = name.substr(0, name.find(".tmp-"));
  return whole == "user" || whole == "perf" || whole == "failures.jsonl" ||
         whole == "report.html" || whole == "dead-letter.jsonl" ||
         (whole.starts_with("job_") && whole.ends_with(".txt"));
}

void AddPart(const LogFolder& folder, std::string name, bool (*goes)(const std::string& name),
             std::vector<Part>& parts) {
  std::vector<std::string> names = folder.List(name);
  std::erase_if(names, [goes](const std::string& entry) { return !goes(entry); });
  if (!names.empty()) parts.push_back({std::move(name), std::move(names)});
}

std::vector<Part> WhatGoes(const LogFolder& folder, OpenLogs open) {
  std::vector<Part> parts;
  AddPart(folder, "", IsOfRun, parts);
  if (open == OpenLogs::kCoordinator) {
    AddPart(
        folder, "sys", [](const std::string& name) { return name != "master_role.txt"; }, parts);
    return parts;
  }
  AddPart(
      folder, "sys",
      [](const std::string& name) { return name != "master_role.txt" && name != "node"; }, parts);
  for (const std::string& node : folder.List("sys/node")) {
    AddPart(
        folder, "sys/node/" + node, [](const std::string& name) { return name != "_main.txt"; },
        parts);
  }
  return parts;
}

// "20261123T215747Z", which sorts by time.
std::string TimeName(WallTime now) {
  std::string name = Rfc3339(now);
  std::erase_if(name, [](char c) { return c == '-' || c == ':'; });
  return name;
}

bool IsTimeName(std::string_view name) {
  if (name.size() < kTimeForm.size()) return false;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 0; i < kTimeForm.size(); ++i) {
    if (kTimeForm[i] == 'd' ? !is_digit(name[i]) : name[i] != kTimeForm[i]) return false;
  }
  const std::string_view rest = name.substr(kTimeForm.size());
  return rest.empty() ||
         (rest.size() > 1 && rest[0] == '-' && std::all_of(rest.begin() + 1, rest.end(), is_digit));
}

// A folder that nothing lies in yet.
Result<std::string> NewFolder(const LogFolder& folder, WallTime now) {
  const std::string first = fmt::format("{}/{}", kPrevious, TimeName(now));
  for (int i = 1; i <= kNameTries; ++i) {
    std::string name = i == 1 ? first : fmt::format("{}-{}", first, i);
    const std::vector<std::string> there = folder.List(kPrevious);
    if (std::find(there.begin(), there.end(), name.substr(sizeof(kPrevious))) != there.end()) {
      continue;
    }
    if (Status made = folder.MakeFolders(name); !made.ok()) return made.error();
    return name;
  }
  return Error{Code::kExists, fmt::format("{}/{} and {} others of this second are there",
                                          folder.path(), first, kNameTries - 1)};
}

void RemoveOldest(const LogFolder& folder) {
  std::vector<std::string> names = folder.List(kPrevious);
  std::erase_if(names, [](const std::string& name) { return !IsTimeName(name); });
  for (size_t i = 0; i + kPreviousKept < names.size(); ++i) {
    folder.RemoveAll(fmt::format("{}/{}", kPrevious, names[i]));
  }
}

}  // namespace

Result<std::string> SetLogsAside(const LogFolder& folder, OpenLogs open, WallTime now) {
  const std::vector<Part> parts = WhatGoes(folder, open);
  if (parts.empty()) return std::string();
  const auto failed = [&folder](const Error& error) {
    return Error{error.code, "the logs of an earlier run cannot be set aside: " + error.message +
                                 "; move what is in " + folder.path() +
                                 " away, or choose another log folder"};
  };
  Result<std::string> aside = NewFolder(folder, now);
  if (!aside.ok()) return failed(aside.error());
  for (const Part& part : parts) {
    const std::string to = part.folder.empty() ? *aside : *aside + "/" + part.folder;
    if (Status made = folder.MakeFolders(to); !made.ok()) return failed(made.error());
    const Status moved = folder.Move(part.folder, part.names, to);
    if (!moved.ok()) return failed(moved.error());
  }
  RemoveOldest(folder);
  return aside;
}

}  // namespace parallelrun::coordinator
