#include "cli/run/display.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "cli/run/continue_command.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr Duration kPlainInterval = seconds(10);
constexpr size_t kMessageBytes = 600;

std::string Rate(double per_second) {
  return per_second >= 100 ? fmt::format("{:.0f}/s", per_second)
                           : fmt::format("{:.1f}/s", per_second);
}

std::string Errors(const json& progress, const std::string& logs) {
  std::string text;
  for (const json& e : progress["errors"]) {
    const std::string item = e.value("item", "");
    const std::string log = e["log"];
    text += fmt::format("  {} x {}: {}\n    first in mini-batch {}{}, node {}, {}{}\n",
                        e["count"].get<uint64_t>(), Printable(e["kind"].get<std::string>(), 100),
                        Printable(e["message"].get<std::string>(), kMessageBytes),
                        e["miniBatch"].get<uint64_t>(),
                        item.empty() ? "" : " (" + Printable(item, kMessageBytes) + ")",
                        e["node"].get<uint32_t>(), e["process"].get<std::string>(),
                        log.empty() ? "" : "; see " + logs + "/" + Printable(log, 300));
  }
  return text;
}

std::string Items(const json& items) {
  std::string text = fmt::format("{} succeeded, {} failed", items["succeeded"].get<uint64_t>(),
                                 items["failed"].get<uint64_t>());
  const uint64_t without = items.value("withoutElement", uint64_t{0});
  if (without > 0) text += fmt::format(", {} without an element", without);
  return text;
}

// null where nothing was lost.
json LossesOf(const json& progress) { return progress.value("losses", json()); }

std::string Headline(const json& progress) {
  const json& verdict = progress["verdict"];
  if (verdict.is_null()) return "Stopped before the end\n";
  const std::string reason = verdict["reason"];
  const std::string message = Printable(verdict["message"].get<std::string>(), 2000);
  if (LossesOf(progress).is_object()) {
    return fmt::format("Finished with losses: {} ({})\n", message, reason);
  }
  return fmt::format("{} ({}): {}\n", progress["state"].get<std::string>(), reason, message);
}

// Worker processes that did not come through their start, while others have: a verdict that is due
// to them says so itself.
std::string StartFailures(const json& progress) {
  const json failures = progress.value("initFailures", json::object());
  const uint64_t count = failures.value("count", uint64_t{0});
  const json& verdict = progress["verdict"];
  const bool said = verdict.is_object() && verdict["reason"] == "InitFailed";
  if (count == 0 || said) return "";
  return fmt::format("{} worker process{} failed to start; the last one: {}\n", count,
                     count == 1 ? "" : "es",
                     Printable(failures.value("message", ""), kMessageBytes));
}

std::string WhereTheyAre(const Leads& leads) {
  return fmt::format("To see them: less {}\nGrouped by error: parallelrun failures {}\n",
                     ForShell(leads.lost), ForShell(leads.logs));
}

// What failed in a job that did, by name; "" for nothing.
std::string Failures(const json& progress, const Leads& leads) {
  const json names = progress.value("firstFailed", json::array());
  if (progress["state"] != "Failed" || names.empty()) return "";
  std::string text = "Failed, to begin with:\n";
  for (const json& name : names) {
    text += fmt::format("  {}\n", Printable(name.get<std::string>(), kMessageBytes));
  }
  return text + WhereTheyAre(leads);
}

// What was lost, and what to do about it; "" for nothing.
std::string Losses(const json& progress, const Leads& leads) {
  const json losses = LossesOf(progress);
  if (!losses.is_object()) return "";
  const uint64_t items = losses["items"];
  const uint64_t without = losses["withoutElement"];
  const uint64_t skipped = losses.value("skipped", uint64_t{0});
  const json& names = losses["first"];
  std::string text;
  if (!names.empty()) text += "Lost, to begin with:\n";
  for (const json& name : names) {
    text += fmt::format("  {}\n", Printable(name.get<std::string>(), kMessageBytes));
  }
  text += WhereTheyAre(leads);
  if (items > without + skipped) text += fmt::format("To retry them: {}\n", leads.retry_failed);
  if (without > 0) {
    text +=
        "Items for which run() returned no element are not retried: shortReturn: Fail with "
        "isolateFailures: true tries and names each of them\n";
  }
  if (skipped > 0) {
    text +=
        "Rows that were left out are not retried: user/files/NODE/skipped_rows.PROCESS.txt in the "
        "logs lists them, and badRows: Fail fails their mini-batches instead\n";
  }
  if (!losses["allowed"].get<bool>()) {
    text +=
        "The exit status is 3, or 0 with --allow-failures or where the job says in errorThreshold "
        "how many items may fail\n";
  }
  return text;
}

}  // namespace

std::string ProgressLine(const json& progress) {
  const json& batches = progress["miniBatches"];
  const uint64_t done = batches["succeeded"].get<uint64_t>() + batches["failed"].get<uint64_t>();
  std::string line =
      fmt::format("{} of {}{} mini-batches", done, batches["total"].is_null() ? "at least " : "",
                  batches["planned"].get<uint64_t>());
  line += fmt::format(", {}, {} failed", Rate(progress["perSecond"].get<double>()),
                      batches["failed"].get<uint64_t>());
  if (!progress["secondsRemaining"].is_null()) {
    line += fmt::format(", {} left",
                        HumanDuration(seconds(progress["secondsRemaining"].get<int64_t>())));
  }
  size_t nodes = 0;
  for (const json& node : progress["nodes"]) nodes += node["registered"].get<bool>() ? 1 : 0;
  line += fmt::format(", {} node{}", nodes, nodes == 1 ? "" : "s");
  const std::string state = progress["state"];
  if (state != "Running") line += ", " + state;
  const std::string paused = progress["paused"];
  if (!paused.empty()) line += ", PAUSED: " + Printable(paused, 200);
  return line;
}

bool LostUnallowed(const json& progress) {
  const json losses = LossesOf(progress);
  return losses.is_object() && !losses["allowed"].get<bool>();
}

std::string Summary(const json& progress, const Leads& leads, Duration elapsed) {
  const json& batches = progress["miniBatches"];
  const std::string state = progress["state"];
  std::string text = Headline(progress);
  const uint64_t settled = batches["succeeded"].get<uint64_t>() + batches["failed"].get<uint64_t>();
  text += fmt::format("  mini-batches  {} succeeded, {} failed, of {}{}\n",
                      batches["succeeded"].get<uint64_t>(), batches["failed"].get<uint64_t>(),
                      batches["total"].is_null() ? "at least " : "",
                      batches["planned"].get<uint64_t>());
  text += "  items         " + Items(progress["items"]) + "\n";
  const double took = ToSeconds(elapsed);
  text += fmt::format("  time          {}", HumanDuration(elapsed));
  if (took > 0 && settled > 0) {
    text += fmt::format(", {} mini-batches", Rate(static_cast<double>(settled) / took));
  }
  text += "\n";
  if (!progress["output"].is_null()) {
    const json& output = progress["output"];
    text +=
        fmt::format("  output        {} ({} rows, {} bytes)\n", output["path"].get<std::string>(),
                    output["rows"].get<uint64_t>(), output["bytes"].get<uint64_t>());
  }
  text += fmt::format("  logs          {}\n", leads.logs);
  const std::string errors = Errors(progress, leads.logs);
  if (!errors.empty()) {
    text += fmt::format("{} failed attempts; the most frequent errors:\n{}",
                        progress["failedAttempts"].get<uint64_t>(), errors);
  }
  text += StartFailures(progress);
  text += Failures(progress, leads);
  if (state == "Failed" && settled == 0) {
    text += "Nothing has been done yet: fix it and run again\n";
  } else if (state != "Succeeded") {
    text += fmt::format("To continue: {}\n", leads.resume);
  }
  return text + Losses(progress, leads);
}

void Display::Progress(const std::string& line, Instant now) {
  if (!live_) {
    if (shown_ && now - last_ < kPlainInterval) return;
    shown_ = true;
    last_ = now;
    fmt::print(out_, "{}\n", line);
    std::fflush(out_);
    return;
  }
  winsize size{};
  size_t columns = 80;
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 10) columns = size.ws_col;
  fmt::print(out_, "\r\x1b[K{}", line.substr(0, columns - 1));
  std::fflush(out_);
  open_ = true;
}

void Display::Say(const std::string& line) {
  EndLine();
  fmt::print(out_, "{}\n", line);
  std::fflush(out_);
}

void Display::EndLine() {
  if (open_) fmt::print(out_, "\r\x1b[K");
  open_ = false;
}

}  // namespace parallelrun
