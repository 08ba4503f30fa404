#include "cli/runs/runs_command.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/escape.h"
#include "base/json.h"
#include "base/time.h"
#include "cli/run/continue_command.h"
#include "cli/run/display.h"
#include "cli/run/local_run.h"
#include "cli/run/progress_teller.h"
#include "cli/runs/control_socket.h"
#include "cli/runs/run_record.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr Duration kAnswerLimit = seconds(5);
constexpr Duration kEver = std::chrono::hours(24);

std::string Age(uint64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m{:02}s", seconds / 60, seconds % 60);
  return fmt::format("{}h{:02}m", seconds / 3600, seconds / 60 % 60);
}

// nullopt, and the reason on stderr, where no run works on `target`.
std::optional<ControlClient> RunOf(const std::string& target) {
  const Result<std::string> state = FindStateFolder(target);
  if (!state.ok()) {
    fmt::print(stderr, "{}\n", state.error().message);
    return std::nullopt;
  }
  Result<ControlClient> client = ControlClient::Connect(*state);
  if (client.ok()) return std::move(*client);
  if (client.error().code == Code::kNotFound) {
    fmt::print(stderr, "no run of this user works on {} now; parallelrun ps lists those that do\n",
               Printable(target, 1000));
  } else {
    fmt::print(stderr, "{}\n", client.error().message);
  }
  return std::nullopt;
}

// What a run says at its end, and its exit status.
int SayEnd(const json& ended) {
  fmt::print("{}\n", lenient::Text(ended, "summary"));
  return static_cast<int>(lenient::Integer(ended, "ended", kExitFailed));
}

int EndedSilently() {
  fmt::print(stderr,
             "the run has ended without a word: it was killed. The same command with "
             "--resume goes on with it\n");
  return kExitFailed;
}

}  // namespace

int PrintRuns(bool as_json) {
  std::vector<json> runs;
  for (ControlClient& client : ControlClient::ConnectToAll()) {
    if (!client.Ask({{"ask", "status"}}).ok()) continue;
    Result<json> status = client.Next(kAnswerLimit);
    if (status.ok() && status->is_object()) runs.push_back(std::move(*status));
  }
  if (as_json) {
    fmt::print("{}\n", json{{"runs", runs}}.dump(-1, ' ', false, json::error_handler_t::replace));
    return kExitOk;
  }
  if (runs.empty()) {
    fmt::print(stderr, "no run of this user works on this machine\n");
    return kExitOk;
  }
  fmt::print("{:>8}  {:>7}  {}\n", "PROCESS", "SINCE", "OUTPUT");
  for (const json& run : runs) {
    fmt::print("{:>8}  {:>7}  {}\n{:>19}{}\n", lenient::Unsigned(run, "pid"),
               Age(lenient::Unsigned(run, "seconds")),
               Printable(lenient::Text(run, "output"), 1000), "",
               Printable(lenient::Text(run, "line"), 1000));
  }
  return kExitOk;
}

int StopRun(const StopRequest& request) {
  std::optional<ControlClient> client = RunOf(request.target);
  if (!client) return kExitUsage;
  if (const Status asked = client->Ask({{"ask", "stop"}, {"now", request.now}}); !asked.ok()) {
    fmt::print(stderr, "{}\n", asked.error().message);
    return kExitFailed;
  }
  const SystemClock clock;
  const Instant until = clock.Now() + seconds(request.wait);
  std::optional<json> ended;
  while (true) {
    const Result<json> line = client->Next(std::max(Duration(0), until - clock.Now()));
    if (!line.ok() && line.error().code != Code::kUnavailable) {
      fmt::print(stderr, "{}\n", line.error().message);
      return kExitFailed;
    }
    if (!line.ok()) {
      fmt::print(
          stderr,
          "it still finishes the mini-batches that run, after {} s: parallelrun stop --now {} "
          "ends it at once, and --resume repeats them\n",
          request.wait, ForShell(request.target));
      return kExitFailed;
    }
    if (line->is_null()) break;
    if (line->contains("ended")) ended = *line;
  }
  // The connection is closed when all that the run had started has ended.
  if (!ended) return EndedSilently();
  SayEnd(*ended);
  return kExitOk;
}

int AttachToRun(const std::string& target) {
  std::optional<ControlClient> client = RunOf(target);
  if (!client) return kExitUsage;
  if (const Status asked = client->Ask({{"ask", "follow"}}); !asked.ok()) {
    fmt::print(stderr, "{}\n", asked.error().message);
    return kExitFailed;
  }
  const SystemClock clock;
  Display display(stderr, stdout, StyleFor(stderr, "", false), clock.Now());
  ProgressTeller teller(display);
  display.Say("Ctrl-C leaves the run alone; parallelrun stop stops it");
  while (true) {
    const Result<json> line = client->Next(kEver);
    if (!line.ok() && line.error().code == Code::kUnavailable) continue;
    if (!line.ok() || line->is_null()) return EndedSilently();
    if (line->contains("ended")) {
      display.Result(lenient::Text(*line, "summary"));
      return static_cast<int>(lenient::Integer(*line, "ended", kExitFailed));
    }
    const json& progress = lenient::At(*line, "progress");
    if (progress.is_object()) teller.Show(progress, clock.Now());
  }
}

}  // namespace parallelrun::cli
