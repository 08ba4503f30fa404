#include "cli/follow/attach.h"

#include <signal.h>
#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/fetch/job_logs.h"
#include "cli/follow/follow.h"
#include "cli/run/display.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr size_t kShownWarning = 2000;

std::string CountsText(const char* what, const json& counts) {
  return fmt::format("\n  {:<12}  {} succeeded, {} failed", what,
                     lenient::Integer(counts, "succeeded"), lenient::Integer(counts, "failed"));
}

// Tells people, each obstacle and warning once.
class JobDisplay final : public JobFollower {
 public:
  JobDisplay(std::string words, Instant started)
      : words_(std::move(words)), display_(stderr, stdout, StyleFor(stderr, "", false), started) {}

  void Say(const std::string& line) { display_.Say(line); }

  void Seen(const json& job, WallTime wall, Instant now) override {
    const json& status = lenient::At(job, "status");
    TellOnce(lenient::Text(status, "warning"), "warning: ", warning_);
    TellOnce(ObstacleOf(job), "waiting: ", obstacle_);
    const json progress = ProgressOf(job, wall);
    const std::string phase = lenient::Text(status, "phase");
    if (!progress.is_null()) {
      display_.Progress(progress, now);
    } else {
      display_.Waiting(phase.empty() ? "Pending" : phase, now);
    }
  }
  void Waiting(const std::string& text, Instant) override {
    TellOnce(text, "waiting: ", obstacle_);
  }
  void End(const json& job, const ClusterEnd& end, Instant) override {
    display_.Result(EndText(job, end, words_));
  }

 private:
  void TellOnce(const std::string& text, const char* what, std::string& told) {
    if (text == told) return;
    told = text;
    if (!text.empty()) display_.Alert(what + Printable(text, kShownWarning));
  }

  const std::string words_;
  Display display_;
  std::string warning_;
  std::string obstacle_;
};

}  // namespace

bool AllowsLosses(const json& job) {
  const json& spec = lenient::At(job, "spec");
  for (const char* rule : {"errorThreshold", "allowedFailedCount", "allowedFailedPercent"}) {
    if (!lenient::At(spec, rule).is_null()) return true;
  }
  return false;
}

std::string EndText(const json& job, const ClusterEnd& end, const std::string& words) {
  const json& status = lenient::At(job, "status");
  std::string text = fmt::format("{} ({}): {}", end.state, Printable(end.reason, kShown),
                                 Printable(end.message, kShownWarning));
  const json progress = ProgressOf(job, WallTime());
  if (!progress.is_null()) {
    text += CountsText("mini-batches", lenient::At(progress, "miniBatches"));
    text += CountsText("items", lenient::At(progress, "items"));
  }
  if (const json& output = lenient::At(status, "output"); output.is_object()) {
    text += fmt::format("\n  output        {} ({}, {})",
                        Printable(lenient::Text(output, "path"), kShownLong),
                        CountOf(lenient::Unsigned(output, "rows"), "row"),
                        CountOf(lenient::Unsigned(output, "bytes"), "byte"));
    text += fmt::format("\nTo bring it here: parallelrun fetch {} output FOLDER", words);
  }
  const int64_t failed = lenient::Integer(lenient::At(progress, "items"), "failed");
  const bool logs = !lenient::Text(status, "logs").empty();
  if (logs && (failed > 0 || end.state == "Failed")) {
    text += fmt::format("\nWhat failed: parallelrun failures {} --traceback", words);
  }
  return text;
}

int AttachToJob(const KubectlWhere& where, const std::string& name) {
  const Result<json> job = LookAtJob(where, name);
  if (!job.ok()) {
    fmt::print(stderr, "{}\n", job.error().message);
    return kExitUsage;
  }
  if (job->is_null()) {
    fmt::print(stderr, "there is no job {} in this namespace\n", Printable(name, kShown));
    return kExitUsage;
  }
  // Who reads what is said may go away before the job is over.
  signal(SIGPIPE, SIG_IGN);
  NamedJob named;
  named.name = name;
  named.where = where;
  const FollowedJob followed{name, lenient::Text(lenient::At(*job, "metadata"), "uid"), where,
                             AllowsLosses(*job)};
  const Interruption interruption;
  JobDisplay display(named.Words(), SystemClock().Now());
  display.Say("Ctrl-C leaves the job alone; parallelrun stop " + named.Words() + " cancels it");
  return FollowToEnd(followed, interruption, display);
}

}  // namespace parallelrun::cli
