// Logging set-up. Code logs through spdlog's functions (spdlog::info("...")), which are
// thread-safe; untrusted text goes through Printable (escape.h) first.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>

namespace parallelrun {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

enum class LogFormat {
  kTerminal,  // "HH:MM:SS.mmm LEVEL message", local time
  kJson,      // one JSON object a line with "time", "level" and "message", for a collector
  kTree,      // "YYYY-mm-dd HH:MM:SS,mmm|LEVEL|pid|tid|message", UTC: as in a job's log tree
};

// Sends the process's log to stderr. Call once, early in main.
void SetUpLogging(LogFormat format, LogLevel level);
inline void SetUpLogging(bool json, LogLevel level) {
  SetUpLogging(json ? LogFormat::kJson : LogFormat::kTerminal, level);
}

// From now on a thread writes to stderr, which may be a pipe that nobody empties, or a file on a
// volume that hangs: who logs does not wait. What waits for it is bounded; the oldest lines go
// first, and one line tells that they did. Thread-safe.
void LogInBackground();
// Ends that, once all is written. False: it is not within `limit`; then nothing is left but to
// leave the process.
bool EndBackgroundLog(std::chrono::nanoseconds limit);

// What log lines are about.
struct LogSubject {
  std::string kind;                           // "job"
  std::map<std::string, std::string> fields;  // {"name": "digits", ...}
  std::string prefix;                         // "default/digits"
};

// What this thread logs while it lives is about `subject`, which must outlive it: an object under
// its kind in kJson, a prefix in the other formats.
class LogScope {
 public:
  explicit LogScope(const LogSubject& subject);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  const LogSubject* before_;
};

// From now on also to `take`, a line at a time, in the format kTree: on the thread that logs, so it
// must not block, nor log. After SetUpLogging, while no other thread logs.
void AlsoLogTo(std::function<void(std::string line)> take);

// From now on also to a file, in the format kTree; it is made, with its folder, and appended to.
// After SetUpLogging, while no other thread logs. Throws nothing: what fails is logged.
void LogToFile(const std::string& path);

}  // namespace parallelrun
