// What `parallelrun run` shows: a bar on a terminal, plain lines elsewhere, and the summary at the
// end. Made from the coordinator's progress (docs/coordinator-api.md). Text that comes from
// user code is escaped. The functions are pure; Display writes from one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/time.h"

namespace parallelrun::cli {

// "61 of 180 mini-batches, 20.5/s, 0 failed, 6s left, 2 nodes"
std::string ProgressLine(const nlohmann::json& progress);
// "20.5/s"
std::string RateText(double per_second);

// Where the summary leads.
struct Leads {
  std::string logs;               // folder
  std::string lost;               // file that names what was lost
  std::string resume;             // the command that continues the job
  std::string retry_failed;       // the command that tries again what has failed
  bool failures_allowed = false;  // losses are no exit status of their own
  // Whether a file is there: a node that was killed may not have left the log that it told of.
  std::function<bool(const std::string& path)> is_there = [](const std::string&) { return false; };
};

// What a finished, failed or drained job says at the end; `elapsed` since the command started, when
// `before` mini-batches were settled.
std::string Summary(const nlohmann::json& progress, const Leads& leads, Duration elapsed,
                    uint64_t before);

// A job that succeeded has lost items, and its thresholds say nothing of them.
bool LostUnallowed(const nlohmann::json& progress);

struct DisplayStyle {
  enum class Progress { kNone, kPlain, kBar };
  Progress progress = Progress::kPlain;
  bool colour = false;
  bool quiet = false;  // only what went wrong
};

// What fits the stream: a bar on a terminal that can rewrite a line, and colour unless NO_COLOR is
// set. `progress`: "bar", "plain" or "none"; empty: as it fits.
DisplayStyle StyleFor(std::FILE* out, const std::string& progress, bool quiet);

class Display {
 public:
  // `result` gets what the run came to, `out` all else.
  Display(std::FILE* out, std::FILE* result, const DisplayStyle& style, Instant started)
      : out_(out), result_(result), style_(style), started_(started) {}
  ~Display() { EndLine(); }

  // Shows progress; as a plain line at most each 10 s, and whenever it is the first.
  void Progress(const nlohmann::json& progress, Instant now);
  // Why there is none yet.
  void Waiting(const std::string& text, Instant now);
  // Draws the bar again: time goes on while nothing is heard.
  void Tick(Instant now);
  // A line of its own, above the progress.
  void Say(const std::string& line);
  // The same, of what went wrong.
  void Alert(const std::string& line);
  void Result(const std::string& text);
  bool quiet() const { return style_.quiet; }

 private:
  void Draw(Instant now);
  void Plain(const std::string& line, Instant now);
  void EndLine();

  std::FILE* out_;
  std::FILE* result_;
  const DisplayStyle style_;
  const Instant started_;
  nlohmann::json progress_;  // as it was heard last; null: it was not
  std::string waiting_;      // without progress
  bool open_ = false;        // a line without its end is on the screen
  bool shown_ = false;
  Instant last_;
};

}  // namespace parallelrun::cli
