#include "cli/failures_table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "agent/sending/file_stream.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "job/errors.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostKept = 4096;    // bytes of each text of a group
constexpr size_t kMostMessage = 400;  // bytes of it in the table

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

// A byte of a path that is not UTF-8 stands there as \udcXX, which is no text for a JSON reader. It
// becomes \u0000XX: no path holds a zero.
std::string WithMarkedBytes(std::string_view line) {
  std::string marked;
  while (!line.empty()) {
    const size_t plain = std::min(line.find('\\'), line.size());
    marked += line.substr(0, plain);
    line.remove_prefix(plain);
    const bool byte = line.size() >= 6 && line.starts_with("\\udc") && line[4] >= '8' &&
                      IsHex(line[4]) && IsHex(line[5]);
    if (byte) {
      marked.append("\\u0000").append(line.substr(4, 2));
    } else {
      marked += line.substr(0, 2);  // with what is escaped: behind "\\" begins none
    }
    line.remove_prefix(std::min<size_t>(byte ? 6 : 2, line.size()));
  }
  return marked;
}

std::string Bytes(const std::string& marked) {
  std::string bytes;
  for (size_t i = 0; i < marked.size(); ++i) {
    const bool byte =
        marked[i] == '\0' && i + 2 < marked.size() && IsHex(marked[i + 1]) && IsHex(marked[i + 2]);
    if (byte) {
      bytes += static_cast<char>(std::stoi(marked.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      bytes += marked[i];
    }
  }
  return bytes;
}

void Cut(std::string& text) { text = std::string(Front(text, kMostKept)); }

std::string ErrorOf(const FailedLine& line) {
  if (line.message.empty()) return Printable(line.type, kMostMessage);
  return Printable(line.type + ": " + line.message, kMostMessage);
}

}  // namespace

Result<FailedLine> ReadFailedLine(std::string_view text) {
  const json line = ParseJson(WithMarkedBytes(text)).value_or(nullptr);
  FailedLine failed;
  failed.type = lenient::Text(line, "type");
  if (failed.type.empty()) return Error{Code::kInvalid, "no line of failures.jsonl"};
  failed.message = lenient::Text(line, "message");
  failed.location = lenient::Text(line, "location");
  failed.log = lenient::Text(line, "log");
  failed.items = lenient::Unsigned(line, "items", 1);
  failed.mini_batch = lenient::Unsigned(line, "miniBatch");
  failed.id = lenient::Unsigned(line, "id", failed.mini_batch);
  failed.tries =
      static_cast<uint32_t>(std::min<uint64_t>(lenient::Unsigned(line, "attempt"), UINT32_MAX));
  failed.kind = lenient::Text(line, "kind");
  failed.node =
      static_cast<uint32_t>(std::min<uint64_t>(lenient::Unsigned(line, "node"), UINT32_MAX));
  failed.process = lenient::Text(line, "process");
  const json& final = lenient::At(line, "final");
  failed.final = !final.is_boolean() || final.get<bool>();
  failed.item = Bytes(lenient::Text(line, "item"));
  if (lenient::At(line, "paths").is_array()) {
    for (const json& path : lenient::List(line, "paths")) {
      if (path.is_string()) failed.paths.push_back(Bytes(path.get<std::string>()));
    }
  } else if (!failed.item.empty() && !failed.item.starts_with("rank ")) {
    failed.paths = {failed.item};
  }
  if (failed.item.empty() && !failed.paths.empty()) failed.item = failed.paths.front();
  return failed;
}

void FailureTable::Add(FailedLine line) {
  items_ += line.items;
  std::string key = job::ErrorKey(line.type, line.message) + '\n' + line.location;
  key.resize(std::min(key.size(), kMostKept));
  const auto found = index_.find(key);
  if (found == index_.end() && groups_.size() == kMostErrors) {
    other_items_ += line.items;
    return;
  }
  const bool first = found == index_.end();
  const size_t at = first ? groups_.size() : found->second;
  if (first) {
    index_.emplace(std::move(key), at);
    groups_.emplace_back();
  }
  Counted& counted = groups_[at];
  ErrorGroup& group = counted.group;
  group.items += line.items;
  group.most_tries = std::max(group.most_tries, line.tries);
  // Those of one mini-batch follow each other.
  if (first || counted.last_mini_batch != line.mini_batch) ++group.mini_batches;
  counted.last_mini_batch = line.mini_batch;
  if (!first) return;
  line.paths = {};
  for (std::string* text : {&line.type, &line.message, &line.location, &line.log}) Cut(*text);
  line.item.resize(std::min(line.item.size(), kMostKept));
  group.first = std::move(line);
}

std::vector<ErrorGroup> FailureTable::Groups() const {
  std::vector<ErrorGroup> groups;
  groups.reserve(groups_.size());
  for (const Counted& counted : groups_) groups.push_back(counted.group);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ErrorGroup& a, const ErrorGroup& b) { return a.items > b.items; });
  return groups;
}

std::vector<std::string> ErrorLogsOf(const std::vector<ErrorGroup>& groups) {
  const std::string below = std::string(kErrorLogs) + "/";
  std::set<std::string> names;
  for (const ErrorGroup& group : groups) {
    const std::string& log = group.first.log;
    if (!log.starts_with(below)) continue;
    const std::string name = log.substr(below.size());
    if (agent::IsFileName(name)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

std::string FailureText(const std::vector<ErrorGroup>& groups, const FailureTable& table,
                        const std::string& logs) {
  std::string text =
      fmt::format("{} failed; logs: {}\n", CountOf(table.items(), "item"), Printable(logs, 4096));
  size_t place = 4;  // "LINE"
  for (const ErrorGroup& group : groups) {
    place = std::max(place, Printable(group.first.location, 60).size());
  }
  text += fmt::format("{:>9}  {:>5}  {:<{}}  {}\n", "ITEMS", "TRIES", "LINE", place, "ERROR");
  const std::string indent(20 + place, ' ');
  for (const ErrorGroup& group : groups) {
    const FailedLine& first = group.first;
    const std::string tries = group.most_tries == 0 ? "" : std::to_string(group.most_tries);
    text += fmt::format("{:>9}  {:>5}  {:<{}}  {}\n", group.items, tries,
                        Printable(first.location, 60), place, ErrorOf(first));
    text += fmt::format("{}first: {} (mini-batch {}{})\n", indent, Printable(first.item, kMostKept),
                        first.mini_batch,
                        first.log.empty() ? "" : ", " + Printable(first.log, kMostKept));
    std::string_view left = group.traceback;
    while (!left.empty()) {
      const size_t end = std::min(left.find('\n'), left.size());
      text += fmt::format("    {}\n", Printable(left.substr(0, end), kMostKept));
      left.remove_prefix(std::min(end + 1, left.size()));
    }
  }
  if (table.other_items() > 0) {
    text += fmt::format("{:>9}  of further errors\n", table.other_items());
  }
  return text;
}

std::string FailureJson(const std::vector<ErrorGroup>& groups, const FailureTable& table,
                        const std::string& logs) {
  const auto dump = [](const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  };
  std::string errors;
  for (const ErrorGroup& group : groups) {
    json error = {{"type", group.first.type},
                  {"message", group.first.message},
                  {"location", group.first.location},
                  {"items", group.items},
                  {"miniBatches", group.mini_batches},
                  {"tries", group.most_tries},
                  {"firstMiniBatch", group.first.mini_batch},
                  {"log", group.first.log}};
    if (!group.traceback.empty()) error["traceback"] = group.traceback;
    std::string one = dump(error);
    // A path is bytes, which a json value cannot give back.
    one.replace(one.size() - 1, 1, ",\"firstItem\":" + JsonText(group.first.item) + "}");
    errors += (errors.empty() ? "\n " : ",\n ") + one;
  }
  return fmt::format("{{\"logs\":{},\"items\":{},\"otherItems\":{},\"errors\":[{}]}}\n",
                     JsonText(logs), table.items(), table.other_items(), errors);
}

}  // namespace parallelrun::cli
