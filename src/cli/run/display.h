// What `parallelrun run` shows: one live line on a terminal, plain lines elsewhere, and the summary
// at the end. Made from the coordinator's progress (docs/coordinator-api.md). Text that comes from
// user code is escaped. The functions are pure; Display writes to one stream, from one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/time.h"

namespace parallelrun {

// "  61 of 180 mini-batches, 20.5/s, 0 failed, 6s left, 2 nodes"
std::string ProgressLine(const nlohmann::json& progress);

// Where the summary leads.
struct Leads {
  std::string logs;          // folder
  std::string lost;          // file that names what was lost
  std::string resume;        // the command that continues the job
  std::string retry_failed;  // the command that tries again what has failed
};

// What a finished, failed or drained job says at the end; `elapsed` since the command started.
std::string Summary(const nlohmann::json& progress, const Leads& leads, Duration elapsed);

// A job that succeeded has lost items, and its thresholds say nothing of them.
bool LostUnallowed(const nlohmann::json& progress);

class Display {
 public:
  // `live`: the stream is a terminal, so the progress line is rewritten in place.
  Display(std::FILE* out, bool live) : out_(out), live_(live) {}
  ~Display() { EndLine(); }

  // Shows progress; without a terminal at most each 10 s, and whenever `line` is the first.
  void Progress(const std::string& line, Instant now);
  // A line of its own, above the progress line.
  void Say(const std::string& line);

 private:
  void EndLine();
  std::FILE* out_;
  bool live_;
  bool open_ = false;  // a progress line without line end is on the screen
  bool shown_ = false;
  Instant last_;
};

}  // namespace parallelrun
