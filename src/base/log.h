// Logging set-up. Code logs through spdlog's functions (spdlog::info("...")), which are
// thread-safe; untrusted text goes through Printable (escape.h) first.
#pragma once

namespace parallelrun {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// Sends the process's log to stderr: `json` as one JSON object a line with "time", "level" and
// "message" (for a cluster's collector), else as "HH:MM:SS.mmm LEVEL message" in local time. Call
// once, early in main.
void SetUpLogging(bool json, LogLevel level);

}  // namespace parallelrun
