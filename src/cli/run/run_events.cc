#include "cli/run/run_events.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>

#include "base/escape.h"
#include "base/file_lines.h"
#include "base/files.h"
#include "base/json.h"
#include "base/version.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr Duration kProgressInterval = seconds(10);
constexpr size_t kMostPaths = 20;

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json MembersOf(const json& from, std::initializer_list<const char*> keys) {
  json part = json::object();
  for (const char* const key : keys) {
    if (from.contains(key)) part[key] = from[key];
  }
  return part;
}

json BatchesOf(const json& progress) {
  return MembersOf(lenient::At(progress, "miniBatches"),
                   {"total", "planned", "before", "succeeded", "failed", "running", "pending"});
}

json ItemsOf(const json& progress) {
  return MembersOf(lenient::At(progress, "items"), {"total", "succeeded", "failed"});
}

json Counts(const json& progress) {
  json counts =
      MembersOf(progress, {"rows", "perSecond", "secondsRemaining", "slowest", "failedAttempts"});
  counts["phase"] = lenient::At(progress, "state");
  counts["miniBatches"] = BatchesOf(progress);
  counts["items"] = ItemsOf(progress);
  size_t nodes = 0;
  // The last words of a coordinator are without them.
  for (const json& node : lenient::List(progress, "nodes")) {
    nodes += lenient::Boolean(node, "registered") ? 1 : 0;
  }
  counts["nodes"] = nodes;
  counts["init"] = lenient::Text(progress, "init");
  return counts;
}

}  // namespace

double RunEvents::Seconds(Instant now) const {
  return std::round(ToSeconds(now - started_) * 1000) / 1000;
}

void RunEvents::Write(const std::string& line, EventStream::Keep keep) {
  if (stream_ != nullptr) stream_->Add(line, keep);
}

void RunEvents::Add(const char* event, json fields, Instant now, EventStream::Keep keep) {
  fields["event"] = event;
  fields["seconds"] = Seconds(now);
  Write(Dump(fields), keep);
}

void RunEvents::Start(const LocalJob& job, Instant now) {
  const coordinator::JobLayout& layout = job.layout;
  Add("start",
      {{"version", kVersion},
       {"release", parallelrun::kVersion},
       {"job", job.job.metadata.name},
       {"code", job.code_folder},
       {"output", layout.output_store.empty() ? layout.output_folder : layout.published_path},
       {"logs", layout.log_folder},
       {"state", layout.state_folder},
       {"nodes", job.nodes},
       {"processes", job.processes},
       {"python", job.job.spec.environment.python}},
      now, EventStream::Keep::kAlways);
}

void RunEvents::Say(const char* event, const std::string& text, Instant now) {
  Add(event, {{"text", text}}, now);
}

void RunEvents::Plain(const char* event, Instant now) { Add(event, json::object(), now); }

void RunEvents::Waiting(const std::string& text, Instant now) {
  if (text != waiting_) Say("waiting", text, now);
  waiting_ = text;
}

void RunEvents::Node(size_t index, const char* change, const std::string& text, Instant now) {
  Add("node", {{"node", index}, {"change", change}, {"text", text}}, now);
}

void RunEvents::Coordinator(const char* change, const std::string& text, Instant now) {
  Add("coordinator", {{"change", change}, {"text", text}}, now);
}

void RunEvents::Stopping(bool at_once, Instant now) { Add("stopping", {{"atOnce", at_once}}, now); }

void RunEvents::TellNew(const json& progress, const char* event, size_t& told, Instant now) {
  const json& lines = lenient::List(progress, event);
  for (; told < lines.size(); ++told) {
    if (lines[told].is_string()) Say(event, lines[told].get<std::string>(), now);
  }
}

void RunEvents::Progress(const json& progress, Instant now) {
  if (stream_ == nullptr) return;
  const std::string warning = lenient::Text(progress, "warning");
  if (warning != warning_ && !warning.empty()) Say("warning", warning, now);
  warning_ = warning;
  TellNew(progress, "columns", columns_told_, now);
  TellNew(progress, "leftOut", left_out_told_, now);
  const std::string paused = lenient::Text(progress, "paused");
  if (paused != paused_) Add("paused", {{"reason", paused}}, now);
  paused_ = paused;
  const std::string waits = lenient::Text(progress, "storeWaits");
  if (waits != store_waits_) Say("storeWaits", waits, now);
  store_waits_ = waits;
  const std::string phase = lenient::Text(progress, "state");
  if (phase != phase_) Add("phase", {{"phase", phase}}, now);
  phase_ = phase;
  json counts = Counts(progress);
  if (counts == progress_ && now - progress_at_ < kProgressInterval) return;
  progress_ = counts;
  progress_at_ = now;
  Add("progress", std::move(counts), now, EventStream::Keep::kNewest);
}

// Paths are bytes, which a json value cannot give back.
void RunEvents::Failure(const FailedLine& failed, Instant now) {
  if (stream_ == nullptr || failures_told_.contains({failed.id, failed.tries})) return;
  if (failures_told_.size() == kMostFailures) {
    ++failures_left_out_;
    return;
  }
  failures_told_.emplace(failed.id, failed.tries);
  std::string paths;
  for (size_t i = 0; i < std::min(failed.paths.size(), kMostPaths); ++i) {
    paths += (i == 0 ? "" : ",") + JsonText(failed.paths[i]);
  }
  std::string line = Dump({{"event", "failure"},
                           {"seconds", Seconds(now)},
                           {"miniBatch", failed.mini_batch},
                           {"id", failed.id},
                           {"attempt", failed.tries},
                           {"final", failed.final},
                           {"items", failed.items},
                           {"kind", failed.kind},
                           {"type", failed.type},
                           {"message", failed.message},
                           {"location", failed.location},
                           {"node", failed.node},
                           {"process", failed.process},
                           {"log", failed.log}});
  line.replace(line.size() - 1, 1, ",\"paths\":[" + paths + "]}");
  Write(line, EventStream::Keep::kWhileThereIsRoom);
}

// Each file has a line, those of a mini-batch one after the other.
void RunEvents::TellFailuresOf(const std::string& logs, Instant now) {
  const auto folder = MakeSystemFiles()->OpenFolder(logs, Links::kRefuse);
  if (!folder.ok()) return;
  const auto file = (*folder)->OpenRead("failures.jsonl");
  if (!file.ok()) return;
  std::optional<FailedLine> whole;
  (void)EachLine(**file, kMostFailedLine, [&](std::string_view text) {
    // There may be millions: those are only counted.
    if (failures_told_.size() == kMostFailures) {
      ++failures_left_out_;
      return true;
    }
    Result<FailedLine> line = ReadFailedLine(text);
    if (!line.ok()) return true;
    if (whole && whole->id == line->id && whole->tries == line->tries && line->tries > 0) {
      whole->items += line->items;
      if (whole->paths.size() < kMostPaths) {
        whole->paths.insert(whole->paths.end(), line->paths.begin(), line->paths.end());
      }
      return true;
    }
    if (whole) Failure(*whole, now);
    whole = std::move(*line);
    return true;
  });
  if (whole) Failure(*whole, now);
}

void RunEvents::End(int exit, const std::optional<json>& last, const std::string& why,
                    const std::string& logs, const NextCommands& next, Instant now) {
  if (stream_ == nullptr) return;
  json end = {{"exitStatus", exit},
              {"state", "NotStarted"},
              {"reason", ""},
              {"message", why},
              {"miniBatches", nullptr},
              {"items", nullptr},
              {"rows", nullptr},
              {"trial", ""},
              {"losses", nullptr},
              {"output", nullptr},
              {"logs", logs},
              {"resume", next.resume},
              {"retryFailed", next.retry_failed}};
  if (exit != kExitUsage) end["state"] = exit > kExitSignal ? "Stopped" : "Failed";
  if (last && last->contains("miniBatches")) {
    Progress(*last, now);
    end["miniBatches"] = BatchesOf(*last);
    end["items"] = ItemsOf(*last);
    end["rows"] = lenient::At(*last, "rows");
    end["output"] = lenient::At(*last, "output");
    end["trial"] = lenient::Text(*last, "trial");
    const json& losses = lenient::At(*last, "losses");
    if (losses.is_object()) end["losses"] = lenient::At(losses, "items");
    if (const json& verdict = lenient::At(*last, "verdict"); verdict.is_object()) {
      end["state"] = lenient::At(verdict, "outcome");
      end["reason"] = lenient::At(verdict, "reason");
      if (why.empty()) end["message"] = lenient::At(verdict, "message");
      TellFailuresOf(logs, now);
    }
  }
  end["failuresLeftOut"] = failures_left_out_;
  Add("end", std::move(end), now, EventStream::Keep::kAlways);
}

}  // namespace parallelrun::cli
