#include "cli/follow/cluster_events.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/json.h"
#include "base/version.h"
#include "cli/run/local_run.h"
#include "cli/run/run_events.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr int64_t kMostNodes = 10'000;

const json& ConditionOf(const json& job, const char* type) {
  static const json kNone;
  for (const json& condition : lenient::List(lenient::At(job, "status"), "conditions")) {
    if (lenient::Text(condition, "type") == type) return condition;
  }
  return kNone;
}

bool IsTrue(const json& condition) { return lenient::Text(condition, "status") == "True"; }

// Whole seconds from `now` to a time as the API server writes it; null where it says none.
json SecondsUntil(const std::string& time, WallTime now) {
  std::tm parts{};
  if (time.empty() || strptime(time.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts) == nullptr) {
    return nullptr;
  }
  const int64_t seconds_now = std::chrono::duration_cast<seconds>(now.time_since_epoch()).count();
  return std::max<int64_t>(0, timegm(&parts) - seconds_now);
}

// As those of a run on this machine; what a status does not say is null.
json MiniBatches(const json& status) {
  const json& from = lenient::AtPath(status, "/progress/miniBatches");
  const int64_t succeeded = lenient::Integer(from, "succeeded");
  const int64_t failed = lenient::Integer(from, "failed");
  const int64_t running = lenient::Integer(from, "running");
  const std::optional<int64_t> total = lenient::MaybeInteger(from, "total");
  const int64_t planned = total.value_or(succeeded + failed + running);
  return {{"total", total ? json(*total) : json()},
          {"planned", planned},
          {"before", 0},
          {"succeeded", succeeded},
          {"failed", failed},
          {"running", running},
          {"pending", std::max<int64_t>(0, planned - succeeded - failed - running)}};
}

json Items(const json& status) {
  const json& from = lenient::AtPath(status, "/progress/items");
  const std::optional<int64_t> total = lenient::MaybeInteger(from, "total");
  return {{"total", total ? json(*total) : json()},
          {"succeeded", lenient::Integer(from, "succeeded")},
          {"failed", lenient::Integer(from, "failed")}};
}

json Counts(const json& status, WallTime wall) {
  const json& progress = lenient::At(status, "progress");
  return {
      {"phase", lenient::Text(status, "phase")},
      {"miniBatches", MiniBatches(status)},
      {"items", Items(status)},
      {"rows", nullptr},
      {"perSecond", lenient::Number(progress, "perSecond")},
      {"secondsRemaining", SecondsUntil(lenient::Text(progress, "estimatedCompletionTime"), wall)},
      {"nodes", lenient::Integer(lenient::At(status, "nodes"), "ready")},
      {"slowest", nullptr},
      {"failedAttempts", nullptr}};
}

// Behind the count of nodes that are ready stands which stores keep them waiting.
std::string StoreWaitsOf(const json& ready) {
  if (!IsTrue(ready) || lenient::Text(ready, "reason") != "AllReady") return "";
  const std::string message = lenient::Text(ready, "message");
  const size_t at = message.find("; ");
  return at == std::string::npos ? "" : message.substr(at + 2);
}

}  // namespace

std::optional<ClusterEnd> EndOf(const json& job, bool losses_allowed) {
  const auto end = [](const json& condition, int exit, const char* state) {
    return ClusterEnd{exit, state, lenient::Text(condition, "reason"),
                      lenient::Text(condition, "message")};
  };
  if (const json& complete = ConditionOf(job, "Complete"); IsTrue(complete)) {
    const bool lost = lenient::Text(complete, "reason") == "CompletedWithFailures";
    return end(complete, lost && !losses_allowed ? kExitLosses : kExitOk, "Succeeded");
  }
  if (const json& failed = ConditionOf(job, "Failed"); IsTrue(failed)) {
    return end(failed, kExitFailed, "Failed");
  }
  // Of what was applied, and not of what was there before.
  const bool current = lenient::Integer(lenient::At(job, "status"), "observedGeneration") ==
                       lenient::Integer(lenient::At(job, "metadata"), "generation");
  const json& finished = ConditionOf(job, "Finished");
  if (current && IsTrue(finished) && lenient::Text(finished, "reason") == "Invalid") {
    return end(finished, kExitUsage, "NotStarted");
  }
  return std::nullopt;
}

json ProgressOf(const json& job, WallTime wall) {
  const json& status = lenient::At(job, "status");
  if (!status.is_object() || !status.contains("progress")) return nullptr;
  json progress = Counts(status, wall);
  progress["state"] = progress["phase"];
  const int64_t ready = std::clamp<int64_t>(progress["nodes"].get<int64_t>(), 0, kMostNodes);
  progress["nodes"] = json::array();
  for (int64_t i = 0; i < ready; ++i) progress["nodes"].push_back({{"registered", true}});
  progress["storeWaits"] = StoreWaitsOf(ConditionOf(job, "NodesReady"));
  return progress;
}

std::string ObstacleOf(const json& job) {
  const json& ready = ConditionOf(job, "NodesReady");
  if (lenient::Text(ready, "status") != "False") return "";
  const std::string reason = lenient::Text(ready, "reason");
  const std::string message = lenient::Text(ready, "message");
  return message.empty() ? reason : fmt::format("{}: {}", reason, message);
}

void ClusterEvents::Add(const char* event, json fields, Instant now, EventStream::Keep keep) {
  fields["event"] = event;
  fields["seconds"] = std::round(ToSeconds(now - started_) * 1000) / 1000;
  stream_.Add(fields.dump(-1, ' ', false, json::error_handler_t::replace), keep);
}

void ClusterEvents::Start(const json& job, const std::string& context, Instant now) {
  const json& metadata = lenient::At(job, "metadata");
  const json& spec = lenient::At(job, "spec");
  Add("start",
      {{"version", RunEvents::kVersion},
       {"release", parallelrun::kVersion},
       {"job", lenient::Text(metadata, "name")},
       {"namespace", lenient::Text(metadata, "namespace")},
       {"context", context},
       {"uid", lenient::Text(metadata, "uid")},
       {"nodes", lenient::Integer(spec, "nodeCount", 1)}},
      now, EventStream::Keep::kAlways);
}

void ClusterEvents::Note(const std::string& text, Instant now) {
  Add("note", {{"text", text}}, now, EventStream::Keep::kWhileThereIsRoom);
}

void ClusterEvents::Seen(const json& job, WallTime wall, Instant now) {
  const json& status = lenient::At(job, "status");
  const std::string phase = lenient::Text(status, "phase");
  if (!phase.empty() && phase != phase_) {
    Add("phase", {{"phase", phase}}, now, EventStream::Keep::kWhileThereIsRoom);
    phase_ = phase;
  }
  if (const std::string obstacle = ObstacleOf(job); !obstacle.empty()) {
    Waiting(obstacle, now);
  } else {
    waiting_.clear();
  }
  TellStoreWaits(ConditionOf(job, "NodesReady"), now);
  const std::string warning = lenient::Text(status, "warning");
  if (warning != warning_ && !warning.empty()) {
    Add("warning", {{"text", warning}}, now, EventStream::Keep::kWhileThereIsRoom);
  }
  warning_ = warning;
  if (!status.contains("progress")) return;
  json counts = Counts(status, wall);
  // The time that is left passes by itself.
  json told = counts;
  told.erase("secondsRemaining");
  if (told == progress_) return;
  progress_ = std::move(told);
  Add("progress", std::move(counts), now, EventStream::Keep::kNewest);
}

void ClusterEvents::TellStoreWaits(const json& ready, Instant now) {
  const std::string text = StoreWaitsOf(ready);
  if (text == store_waits_) return;
  store_waits_ = text;
  Add("storeWaits", {{"text", text}}, now, EventStream::Keep::kWhileThereIsRoom);
}

void ClusterEvents::Waiting(const std::string& text, Instant now) {
  if (text == waiting_ || text.empty()) return;
  waiting_ = text;
  Add("waiting", {{"text", text}}, now, EventStream::Keep::kWhileThereIsRoom);
}

void ClusterEvents::End(const json& job, const ClusterEnd& end, Instant now) {
  const json& status = lenient::At(job, "status");
  const bool planned = status.is_object() && status.contains("progress");
  const json& output = lenient::At(status, "output");
  const bool over = end.state == "Succeeded";
  Add("end",
      {{"exitStatus", end.exit},
       {"state", end.state},
       {"reason", end.reason},
       {"message", end.message},
       {"miniBatches", planned ? MiniBatches(status) : json()},
       {"items", planned ? Items(status) : json()},
       {"rows", output.is_object() ? lenient::At(output, "rows") : json()},
       {"trial", ""},
       {"losses", over && planned ? lenient::At(Items(status), "failed") : json()},
       {"output", output},
       {"logs", lenient::Text(status, "logs")},
       {"failuresLeftOut", 0},
       {"resume", ""},
       {"retryFailed", ""}},
      now, EventStream::Keep::kAlways);
}

}  // namespace parallelrun::cli
