#include "agent/processes/python_stack.h"

#include <algorithm>
#include <vector>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMostCalls = 8;
constexpr size_t kMostBytes = 300;  // of a call

struct Call {
  std::string function;
  std::string place;  // file:line
  bool users = false;
};

constexpr std::string_view kFile = "  File \"";

// `  File "/code/score.py", line 12 in helper`
bool ReadCall(std::string_view line, const std::string& code, const std::string& own, Call& call) {
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kFile)) return false;
  const size_t end = line.rfind(kLine);
  const size_t in = line.find(" in ", end == std::string_view::npos ? line.size() : end);
  if (in == std::string_view::npos || end < kFile.size()) return false;
  std::string_view file = line.substr(kFile.size(), end - kFile.size());
  if (file.starts_with(own + "/parallelrun/") || file.ends_with("/start_worker.py")) file = {};
  call.users = file.starts_with(code + "/");
  if (call.users) file.remove_prefix(code.size() + 1);
  const std::string_view number = line.substr(end + kLine.size(), in - end - kLine.size());
  call.place =
      file.empty() ? "" : Printable(std::string(file) + ":" + std::string(number), kMostBytes);
  call.function = Printable(line.substr(in + 4), kMostBytes);
  return true;
}

}  // namespace

std::string PythonStack(std::string_view dump, const std::string& code, const std::string& own) {
  const size_t current = dump.find("Current thread 0x");
  if (current == std::string_view::npos) return "";
  dump.remove_prefix(current);
  std::vector<Call> calls;  // the innermost first
  std::string location;
  bool any = false;
  while (calls.size() < kMostCalls) {
    const size_t end = dump.find('\n');
    if (end == std::string_view::npos) break;
    dump.remove_prefix(end + 1);
    Call call;
    if (!ReadCall(dump.substr(0, dump.find('\n')), code, own, call)) {
      // The script may write to stderr at the same time: only an empty line ends the calls.
      if (dump.empty() || dump.front() == '\n') break;
      continue;
    }
    any = true;
    if (call.place.empty()) continue;
    if (call.users && location.empty()) location = call.place;
    calls.push_back(std::move(call));
  }
  std::string text;
  for (size_t i = calls.size(); i-- > 0;) {
    text += (text.empty() ? "" : ", ") + calls[i].function + " " + calls[i].place;
  }
  if (text.empty()) return any ? "no call of the script" : "";
  return location.empty() ? text : text + " (" + location + ")";
}

std::string WholeStacks(std::string_view dump, const std::string& code) {
  const std::string in_code = std::string(kFile) + code + "/";
  std::string text;
  while (!dump.empty()) {
    std::string_view line = dump.substr(0, dump.find('\n'));
    dump.remove_prefix(std::min(dump.size(), line.size() + 1));
    if (line.starts_with(in_code)) {
      text += kFile;
      line.remove_prefix(in_code.size());
    }
    text.append(line) += '\n';
  }
  return text;
}

}  // namespace parallelrun::agent
