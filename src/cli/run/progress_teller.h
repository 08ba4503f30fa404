// What a local run tells of the coordinator's progress: each warning, pause and fact once, in lines
// of their own, and the progress line below them. It knows what the terminal has heard, nothing of
// processes. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/time.h"
#include "cli/failures_table.h"
#include "cli/run/display.h"

namespace parallelrun::cli {

class ProgressTeller {
 public:
  // `display` must outlive it.
  explicit ProgressTeller(Display& display) : display_(display) {}

  // `progress` as docs/coordinator-api.md has it.
  void Show(nlohmann::json progress, Instant now);
  // An attempt that failed: the first of each mini-batch, and not many.
  void ShowFailure(const FailedLine& failed);
  // The end: what the coordinator said last, or without `last` what was shown last.
  void Summarize(const std::optional<nlohmann::json>& last, const Leads& leads, Duration elapsed);

  // What was shown last; none before the first.
  const std::optional<nlohmann::json>& shown() const { return shown_; }
  // Mini-batches that were settled when this run began.
  uint64_t before() const { return before_; }
  // Mini-batches that have succeeded.
  uint64_t succeeded() const { return succeeded_; }
  // Mini-batches that failed because they ended their nodes; 0 where none has succeeded: it is not
  // single mini-batches that end nodes then.
  int64_t lost() const { return lost_; }

 private:
  void TellOfInputs(const nlohmann::json& progress);
  void Warn(const nlohmann::json& progress);
  void Tell(const nlohmann::json& progress, const char* member, size_t& told);

  Display& display_;
  std::optional<nlohmann::json> shown_;
  uint64_t before_ = 0;
  int failures_shown_ = 0;
  uint64_t succeeded_ = 0;
  int64_t lost_ = 0;
  std::string paused_;        // as it was told last
  std::string warning_;       // likewise
  size_t columns_told_ = 0;   // lines of it
  size_t left_out_told_ = 0;  // likewise
};

}  // namespace parallelrun::cli
