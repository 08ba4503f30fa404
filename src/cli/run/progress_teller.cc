#include "cli/run/progress_teller.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr size_t kMaxLine = 4000;    // bytes of one that the coordinator says
constexpr size_t kMaxReason = 2000;  // bytes of the reason of a pause

}  // namespace

void ProgressTeller::Show(json progress, Instant now) {
  succeeded_ = progress["miniBatches"]["succeeded"].get<uint64_t>();
  if (succeeded_ > 0) lost_ = progress["miniBatches"]["lost"].get<int64_t>();
  Warn(progress);
  Tell(progress, "columns", columns_told_);
  Tell(progress, "leftOut", left_out_told_);
  // Whole, once: the progress line is cut at the width of the terminal.
  const std::string paused = progress["paused"];
  if (paused != paused_ && !paused.empty()) {
    display_.Say(fmt::format("paused: {}; the job goes on by itself as soon as it can",
                             Printable(paused, kMaxReason)));
  }
  paused_ = paused;
  display_.Progress(ProgressLine(progress), now);
  shown_ = std::move(progress);
}

void ProgressTeller::Warn(const json& progress) {
  const std::string warning = progress.value("warning", "");
  if (warning == warning_) return;
  warning_ = warning;
  if (!warning.empty()) display_.Say("warning: " + warning);
}

// How the columns of inputs are read, which names in them are no data: each line once.
void ProgressTeller::Tell(const json& progress, const char* member, size_t& told) {
  const json lines = progress.value(member, json::array());
  for (; told < lines.size(); ++told) {
    display_.Say(Printable(lines[told].get<std::string>(), kMaxLine));
  }
}

void ProgressTeller::Summarize(const std::optional<json>& last, const Leads& leads,
                               Duration elapsed) {
  const std::optional<json>& progress = last ? last : shown_;
  if (!progress || !progress->contains("miniBatches")) {
    display_.Say("Stopped before anything was planned");
    return;
  }
  Warn(*progress);  // a job may end before its first progress is heard of
  Tell(*progress, "leftOut", left_out_told_);
  std::string text = Summary(*progress, leads, elapsed);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  display_.Say(text);
}

}  // namespace parallelrun
