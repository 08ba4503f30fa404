#include "cli/follow/follow.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr Duration kPause = seconds(1);
// Without an answer of the cluster. The job goes on all the same.
constexpr Duration kMostSilence = seconds(600);

std::vector<std::string> Words(const KubectlWhere& where, const std::vector<std::string>& more) {
  std::vector<std::string> words = where.Words();
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("--request-timeout=20s");
  return words;
}

std::string Kind(const std::string& name) { return "parallelrunjobs.parallelrun.dev/" + name; }

ClusterEnd Gone(const std::string& name, const char* how) {
  return {kExitFailed, "Failed", "Deleted",
          fmt::format("job {} was {}", Printable(name, kShown), how)};
}

}  // namespace

Result<json> LookAtJob(const KubectlWhere& where, const std::string& name) {
  const Result<KubectlAnswer> answer =
      AskKubectl(Words(where, {"get", Kind(name), "--ignore-not-found", "--output=json"}));
  if (!answer.ok()) return answer.error();
  if (answer->status != 0) return Error{Code::kUnavailable, "kubectl could not tell"};
  if (answer->output.empty()) return json();
  std::optional<json> job = ParseObject(answer->output);
  if (!job)
    return Error{Code::kUnavailable, "kubectl has answered something that is not a JSON object"};
  return std::move(*job);
}

int FollowToEnd(const FollowedJob& job, const Interruption& interruption, JobFollower& follower) {
  const SystemClock clock;
  Instant heard = clock.Now();
  json last;
  while (true) {
    const Result<json> seen = LookAtJob(job.where, job.name);
    const Instant now = clock.Now();
    std::optional<ClusterEnd> end;
    if (seen.ok()) {
      heard = now;
      const std::string uid = lenient::Text(lenient::At(*seen, "metadata"), "uid");
      if (seen->is_null()) {
        end = Gone(job.name, "deleted");
      } else if (uid != job.uid) {
        end = Gone(job.name, "deleted, and another one of its name is there");
      } else {
        last = *seen;
        follower.Seen(last, clock.WallNow(), now);
        end = EndOf(last, job.losses_allowed);
      }
    } else if (interruption.came()) {
      return kExitFailed;
    } else if (seen.error().code != Code::kUnavailable || now - heard > kMostSilence) {
      fmt::print(stderr, "job {} cannot be followed any more, and goes on: {}\n",
                 Printable(job.name, kShown), seen.error().message);
      return kExitFailed;
    } else {
      follower.Waiting("the cluster does not answer", now);
    }
    if (end) {
      follower.End(last, *end, now);
      return end->exit;
    }
    if (interruption.Wait(kPause)) return kExitFailed;
  }
}

int CancelJob(const KubectlWhere& where, const std::string& name, int wait) {
  const Result<KubectlAnswer> patched =
      AskKubectl(Words(where, {"patch", Kind(name), "--type=merge",
                               R"(--patch={"spec":{"cancel":true}})", "--output=name"}));
  if (!patched.ok()) {
    fmt::print(stderr, "{}\n", patched.error().message);
    return kExitUsage;
  }
  if (patched->status != 0) return kExitUsage;  // kubectl has said why
  const Interruption interruption;
  const SystemClock clock;
  const Instant until = clock.Now() + seconds(wait);
  const std::string shown = Printable(name, kShown);
  while (true) {
    const Result<json> job = LookAtJob(where, name);
    const std::optional<ClusterEnd> end =
        job.ok() && job->is_null() ? Gone(name, "deleted") : EndOf(job.ok() ? *job : json(), true);
    if (end) {
      fmt::print("job {} is over: {}: {}: {}\n", shown, end->state, Printable(end->reason, kShown),
                 Printable(end->message, kShown));
      return kExitOk;
    }
    if (clock.Now() >= until) {
      fmt::print(stderr, "job {} is canceled, and has not ended after {} s\n", shown, wait);
      return kExitFailed;
    }
    if (interruption.Wait(kPause)) return kExitFailed;
  }
}

}  // namespace parallelrun::cli
