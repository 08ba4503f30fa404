#include "cli/run/progress_teller.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr size_t kMaxLine = 4000;    // bytes of one that the coordinator says
constexpr size_t kMaxReason = 2000;  // bytes of the reason of a pause
constexpr size_t kMaxItem = 300;
constexpr size_t kMaxMessage = 300;
constexpr int kMostFailures = 10;

}  // namespace

void ProgressTeller::Show(json progress, Instant now) {
  const json& batches = lenient::At(progress, "miniBatches");
  succeeded_ = lenient::Unsigned(batches, "succeeded");
  if (!shown_) before_ = lenient::Unsigned(batches, "before");
  if (succeeded_ > 0) lost_ = lenient::Integer(batches, "lost");
  TellOfInputs(progress);
  // Whole, once: the progress line is cut at the width of the terminal.
  const std::string paused = lenient::Text(progress, "paused");
  if (paused != paused_ && !paused.empty()) {
    display_.Say(fmt::format(
        "paused: {}. The job goes on by itself as soon as it can; or stop it, and continue later "
        "with --resume",
        Printable(paused, kMaxReason)));
  }
  paused_ = paused;
  display_.Progress(progress, now);
  shown_ = std::move(progress);
}

void ProgressTeller::ShowFailure(const FailedLine& failed) {
  if (failed.tries > 1 || failures_shown_ > kMostFailures) return;
  if (++failures_shown_ > kMostFailures) {
    return display_.Say("what fails from here on is not shown here; the summary leads to it");
  }
  std::string item = failed.item.empty() ? fmt::format("mini-batch {}", failed.mini_batch)
                                         : Printable(failed.item, kMaxItem);
  if (failed.paths.size() > 1) item += fmt::format(" and {} more", failed.items - 1);
  std::string line = fmt::format("failed: {}: {}", item, Printable(failed.type, 100));
  if (!failed.message.empty()) line += ": " + Printable(failed.message, kMaxMessage);
  if (!failed.location.empty()) line += fmt::format(" ({})", Printable(failed.location, 200));
  if (!failed.final) line += ", is tried again";
  display_.Say(line);
}

void ProgressTeller::Warn(const json& progress) {
  const std::string warning = lenient::Text(progress, "warning");
  if (warning == warning_) return;
  warning_ = warning;
  if (!warning.empty()) display_.Say("warning: " + warning);
}

void ProgressTeller::TellOfInputs(const json& progress) {
  Warn(progress);
  Tell(progress, "columns", columns_told_);
  Tell(progress, "leftOut", left_out_told_);
}

// How the columns of inputs are read, which names in them are no data: each line once.
void ProgressTeller::Tell(const json& progress, const char* member, size_t& told) {
  const json& lines = lenient::List(progress, member);
  for (; told < lines.size(); ++told) {
    if (!lines[told].is_string()) continue;
    display_.Say(Printable(lines[told].get_ref<const std::string&>(), kMaxLine));
  }
}

void ProgressTeller::Summarize(const std::optional<json>& last, const Leads& leads,
                               Duration elapsed) {
  const std::optional<json>& progress = last ? last : shown_;
  if (!progress || !progress->contains("miniBatches")) {
    display_.Result("Stopped before anything was planned");
    return;
  }
  const json& verdict = lenient::At(*progress, "verdict");
  const bool well = lenient::Text(verdict, "reason") == "Complete";
  if (display_.quiet() && well) return;
  TellOfInputs(*progress);  // a job may end before its first progress is heard of
  std::string text = Summary(*progress, leads, elapsed, before_);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  display_.Result(text);
}

}  // namespace parallelrun::cli
