#include "cli/run/display.h"

#include <spdlog/fmt/fmt.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/run/continue_command.h"
#include "cli/run/progress_bar.h"

namespace parallelrun::cli {
namespace {

using lenient::At;
using lenient::Boolean;
using lenient::List;
using lenient::MaybeInteger;
using lenient::Number;
using lenient::Text;
using lenient::Unsigned;
using nlohmann::json;

constexpr Duration kPlainInterval = seconds(10);
constexpr size_t kMessageBytes = 600;
constexpr size_t kWaitingBytes = 2000;

// Where to look, if there is something; "" for nothing.
std::string See(const std::string& log, const Leads& leads) {
  const std::string path = leads.logs + "/" + log;
  if (log.empty() || !leads.is_there(path)) return "";
  return "; see " + leads.logs + "/" + Printable(log, 300);
}

std::string Errors(const json& progress, const Leads& leads) {
  std::string text;
  for (const json& e : List(progress, "errors")) {
    const std::string item = Text(e, "item");
    text += fmt::format("  {} x {}: {}\n    first in mini-batch {}{}, node {}, {}{}\n",
                        Unsigned(e, "count"), Printable(Text(e, "kind"), 100),
                        Printable(Text(e, "message"), kMessageBytes), Unsigned(e, "miniBatch"),
                        item.empty() ? "" : " (" + Printable(item, kMessageBytes) + ")",
                        Unsigned(e, "node"), Text(e, "process"), See(Text(e, "log"), leads));
  }
  return text;
}

// Who reads it may have gone: that ends nothing here.
void Put(std::FILE* out, const std::string& text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), out));
  static_cast<void>(std::fflush(out));
}

std::string Items(const json& items) {
  std::string text = fmt::format("{} succeeded, {} failed", Unsigned(items, "succeeded"),
                                 Unsigned(items, "failed"));
  const uint64_t without = Unsigned(items, "withoutElement");
  if (without > 0) text += fmt::format(", {} without an element", without);
  return text;
}

// null where nothing was lost.
const json& LossesOf(const json& progress) { return At(progress, "losses"); }

std::string Headline(const json& progress) {
  const json& verdict = At(progress, "verdict");
  if (verdict.is_null()) return "Stopped before the end\n";
  const std::string reason = Text(verdict, "reason");
  const std::string message = Printable(Text(verdict, "message"), 2000);
  if (LossesOf(progress).is_object()) {
    return fmt::format("Finished with losses: {} ({})\n", message, reason);
  }
  return fmt::format("{} ({}): {}\n", Text(progress, "state"), reason, message);
}

// Worker processes that did not come through their start, while others have: a verdict that is due
// to them says so itself.
std::string StartFailures(const json& progress) {
  const json& failures = At(progress, "initFailures");
  const uint64_t count = Unsigned(failures, "count");
  const bool said = Text(At(progress, "verdict"), "reason") == "InitFailed";
  if (count == 0 || said) return "";
  return fmt::format("{} failed to start; the last one: {}\n", CountOf(count, "worker process"),
                     Printable(Text(failures, "message"), kMessageBytes));
}

// The first line of every run: "0 of at least 0 mini-batches, 0 failed" says nothing to anybody.
bool NothingIsListed(const json& batches) {
  return At(batches, "total").is_null() && Unsigned(batches, "planned") == 0;
}

// While more may be planned.
const char* AtLeast(const json& batches) {
  return At(batches, "total").is_null() ? "at least " : "";
}

std::string WhereTheyAre(const Leads& leads) {
  if (!leads.is_there(leads.lost)) return "";
  return fmt::format("To see them: less {}\nGrouped by error: parallelrun failures {}\n",
                     ForShell(leads.lost), ForShell(leads.logs));
}

std::string NameLine(const json& name) {
  return name.is_string() ? fmt::format("  {}\n", Printable(name.get<std::string>(), kMessageBytes))
                          : "";
}

// What failed in a job that did, by name; "" for nothing.
std::string Failures(const json& progress, const Leads& leads) {
  const json& names = List(progress, "firstFailed");
  if (Text(progress, "state") != "Failed" || names.empty()) return "";
  std::string text = "Failed, to begin with:\n";
  for (const json& name : names) text += NameLine(name);
  return text + WhereTheyAre(leads);
}

// What was lost, and what to do about it; "" for nothing.
std::string Losses(const json& progress, const Leads& leads) {
  const json& losses = LossesOf(progress);
  if (!losses.is_object()) return "";
  const uint64_t items = Unsigned(losses, "items");
  const uint64_t without = Unsigned(losses, "withoutElement");
  const uint64_t skipped = Unsigned(losses, "skipped");
  const json& names = List(losses, "first");
  std::string text;
  if (!names.empty()) text += "Lost, to begin with:\n";
  for (const json& name : names) text += NameLine(name);
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
  if (LostUnallowed(progress) && !leads.failures_allowed) {
    text +=
        "The exit status is 3, or 0 with --allow-failures or where the job says in errorThreshold "
        "how many items may fail\n";
  }
  return text;
}

}  // namespace

std::string RateText(double per_second) {
  return per_second >= 100 ? fmt::format("{:.0f}/s", per_second)
                           : fmt::format("{:.1f}/s", per_second);
}

std::string ProgressLine(const json& progress) {
  const json& batches = At(progress, "miniBatches");
  const uint64_t done = Unsigned(batches, "succeeded") + Unsigned(batches, "failed");
  std::string line =
      NothingIsListed(batches)
          ? kListing
          : fmt::format("{} of {}{}, {}, {} failed", done, AtLeast(batches),
                        CountOf(Unsigned(batches, "planned"), "mini-batch"),
                        RateText(Number(progress, "perSecond")), Unsigned(batches, "failed"));
  if (const std::optional<int64_t> left = MaybeInteger(progress, "secondsRemaining")) {
    line += fmt::format(", {} left", HumanDuration(seconds(*left)));
  }
  size_t nodes = 0;
  for (const json& node : List(progress, "nodes")) nodes += Boolean(node, "registered") ? 1 : 0;
  const std::string state = Text(progress, "state");
  if (NodesAreTold(nodes, state)) line += ", " + CountOf(nodes, "node");
  const json& slowest = At(progress, "slowest");
  if (const double age = Number(slowest, "seconds"); age >= kSlowSeconds) {
    line += fmt::format(", slowest {}", HumanDuration(seconds(static_cast<int64_t>(age))));
    const std::string item = Text(slowest, "item");
    if (!item.empty()) line += " (" + Printable(item, 200) + ")";
  }
  if (state != "Running") line += ", " + state;
  const std::string paused = Text(progress, "paused");
  if (!paused.empty()) line += ", PAUSED: " + Printable(paused, 200);
  const std::string fetching = Text(progress, "fetching");
  if (!fetching.empty()) line += ", " + Printable(fetching, 200);
  const std::string init = Text(progress, "init");
  if (!init.empty()) line += ", " + Printable(init, 400);
  const std::string waits = Text(progress, "storeWaits");
  if (!waits.empty()) line += ", " + Printable(waits, 200);
  return line;
}

bool LostUnallowed(const json& progress) {
  const json& losses = LossesOf(progress);
  return losses.is_object() && !Boolean(losses, "allowed");
}

std::string Summary(const json& progress, const Leads& leads, Duration elapsed, uint64_t before) {
  const json& batches = At(progress, "miniBatches");
  const std::string state = Text(progress, "state");
  std::string text = Headline(progress);
  const uint64_t succeeded = Unsigned(batches, "succeeded");
  const uint64_t failed = Unsigned(batches, "failed");
  const uint64_t settled = succeeded + failed;
  const std::string trial = Text(progress, "trial");
  if (!trial.empty()) text += fmt::format("  trial         of {} alone\n", Printable(trial, 300));
  text += fmt::format("  mini-batches  {} succeeded, {} failed, of {}{}\n", succeeded, failed,
                      AtLeast(batches), Unsigned(batches, "planned"));
  text += "  items         " + Items(At(progress, "items")) + "\n";
  const double took = ToSeconds(elapsed);
  text += fmt::format("  time          {}", HumanDuration(elapsed));
  if (took > 0 && settled > before) {
    text +=
        fmt::format(", {} mini-batches", RateText(static_cast<double>(settled - before) / took));
  }
  text += "\n";
  if (const json& output = At(progress, "output"); output.is_object()) {
    text += fmt::format("  output        {} ({}, {})\n", Text(output, "path"),
                        CountOf(Unsigned(output, "rows"), "row"),
                        CountOf(Unsigned(output, "bytes"), "byte"));
  }
  text += fmt::format("  logs          {}\n", leads.logs);
  const std::string report = leads.logs + "/report.html";
  if (leads.is_there(report)) text += fmt::format("  report        {}\n", report);
  // Told at the start, perhaps hours ago, and still true of what is there now.
  const std::string warning = Text(progress, "warning");
  if (!warning.empty()) text += fmt::format("  warning       {}\n", Printable(warning, 2000));
  const std::string errors = Errors(progress, leads);
  if (!errors.empty()) {
    text += fmt::format("{} failed attempts; the most frequent errors:\n{}",
                        Unsigned(progress, "failedAttempts"), errors);
  }
  text += StartFailures(progress);
  text += Failures(progress, leads);
  if (state == "Failed" && settled == 0) {
    text += "No mini-batch has finished: fix the error above and run the same command again\n";
  } else if (state != "Succeeded") {
    text += fmt::format("To continue: {}\n", leads.resume);
  }
  return text + Losses(progress, leads);
}

DisplayStyle StyleFor(std::FILE* out, const std::string& progress, bool quiet) {
  const char* const no_colour = std::getenv("NO_COLOR");
  const char* const term = std::getenv("TERM");
  const bool terminal = isatty(fileno(out)) != 0;
  const bool rewrites = terminal && !(term != nullptr && std::string_view(term) == "dumb");
  DisplayStyle style;
  style.quiet = quiet;
  style.colour = rewrites && (no_colour == nullptr || *no_colour == '\0');
  style.progress = rewrites ? DisplayStyle::Progress::kBar : DisplayStyle::Progress::kPlain;
  if (progress == "bar") style.progress = DisplayStyle::Progress::kBar;
  if (progress == "plain") style.progress = DisplayStyle::Progress::kPlain;
  if (progress == "none" || quiet) style.progress = DisplayStyle::Progress::kNone;
  return style;
}

void Display::Progress(const json& progress, Instant now) {
  progress_ = progress;
  if (style_.progress == DisplayStyle::Progress::kPlain) return Plain(ProgressLine(progress), now);
  Draw(now);
}

void Display::Waiting(const std::string& text, Instant now) {
  waiting_ = Printable(text, kWaitingBytes);
  if (style_.progress == DisplayStyle::Progress::kPlain) return Plain("  " + waiting_, now);
  Draw(now);
}

void Display::Tick(Instant now) { Draw(now); }

void Display::Draw(Instant now) {
  if (style_.progress != DisplayStyle::Progress::kBar) return;
  if (progress_.is_null() && waiting_.empty()) return;
  winsize size{};
  size_t columns = 80;
  if (ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) columns = size.ws_col;
  const std::string line = progress_.is_null()
                               ? waiting_.substr(0, columns - 1)
                               : ProgressBar(progress_, now - started_, {columns, style_.colour});
  Put(out_, "\r\x1b[K" + line);
  open_ = true;
}

void Display::Plain(const std::string& line, Instant now) {
  if (shown_ && now - last_ < kPlainInterval) return;
  shown_ = true;
  last_ = now;
  Put(out_, line + "\n");
}

void Display::Say(const std::string& line) {
  if (!style_.quiet) Alert(line);
}

void Display::Alert(const std::string& line) {
  EndLine();
  Put(out_, line + "\n");
}

void Display::Result(const std::string& text) {
  EndLine();
  Put(result_, text + "\n");
}

void Display::EndLine() {
  if (open_) Put(out_, "\r\x1b[K");
  open_ = false;
}

}  // namespace parallelrun::cli
