#include "coordinator/progress.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/settings.h"
#include "base/escape.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/version.h"
#include "job/failure_text.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kItem = 1000;  // bytes of a name, which JSON has only as text

}  // namespace

std::string StateName(const Coordinator& coordinator) {
  switch (coordinator.phase()) {
    case Coordinator::Phase::kRunning:
      return coordinator.state().counts().succeeded + coordinator.state().counts().failed == 0 &&
                     coordinator.running() == 0
                 ? "Starting"
                 : "Running";
    case Coordinator::Phase::kDraining: return "Draining";
    case Coordinator::Phase::kClosing: return "Closing";
    case Coordinator::Phase::kDeciding:
    case Coordinator::Phase::kFinalizing: return "Finalizing";
    case Coordinator::Phase::kEnded:
      return coordinator.state().verdict() &&
                     coordinator.state().verdict()->outcome == job::Outcome::kSucceeded
                 ? "Succeeded"
                 : "Failed";
  }
  return "Unknown";
}

std::optional<Duration> TimeLeft(const Coordinator& coordinator) {
  const job::JobState& state = coordinator.state();
  if (!state.plan_ended()) return std::nullopt;
  return coordinator.told().rate().Remaining(state.counts().planned);
}

std::string ProgressJson(const Coordinator& coordinator, const ProgressFacts& facts, Instant now) {
  const job::JobState& state = coordinator.state();
  const job::JobCounts& counts = state.counts();
  const job::Losses losses = coordinator.losses();
  const uint64_t settled = counts.succeeded + counts.failed;
  json out;
  out["release"] = kVersion;
  out["epoch"] = facts.epoch;
  out["generation"] = state.settings() ? state.settings()->generation : 0;
  out["controlGeneration"] = coordinator.control_generation();
  out["state"] = StateName(coordinator);
  out["startedAt"] = Rfc3339(facts.started);
  out["miniBatches"] = {{"total", state.plan_ended() ? json(counts.planned) : json(nullptr)},
                        {"planned", counts.planned},
                        {"before", facts.settled_before},
                        {"succeeded", counts.succeeded},
                        {"failed", counts.failed},
                        {"lost", counts.lost},
                        {"running", coordinator.running()},
                        {"pending", counts.planned - settled - coordinator.running()}};
  out["items"] = {{"total", state.plan_ended() ? json(counts.items_planned) : json(nullptr)},
                  {"succeeded", counts.items_succeeded},
                  {"failed", losses.items},
                  {"withoutElement", losses.reported}};
  out["listingDone"] = state.plan_ended();
  out["rows"] = counts.rows;
  out["perSecond"] = std::round(coordinator.told().rate().PerSecond() * 100) / 100;
  const std::optional<Duration> left = TimeLeft(coordinator);
  out["secondsRemaining"] =
      left ? json(static_cast<int64_t>(std::ceil(ToSeconds(*left)))) : json(nullptr);
  out["nodes"] = json::array();
  for (const auto& [index, node] : coordinator.nodes().all()) {
    out["nodes"].push_back({{"index", index},
                            {"registered", node.registered},
                            {"pod", std::max(node.pod, node.next_pod)},
                            {"gaveUp", node.gave_up},
                            {"processes", node.processes},
                            {"held", coordinator.availability().HeldCount(index)}});
    if (node.silent) out["nodes"].back()["silent"] = true;
  }
  out["slowest"] = nullptr;
  if (const auto slowest = coordinator.Slowest(now)) {
    const auto& [held, age] = *slowest;
    const auto named = facts.items.find(held.id);
    out["slowest"] = {{"miniBatch", job::WholeOf(held.id)},
                      {"item", named == facts.items.end() ? "" : Printable(named->second, kItem)},
                      {"node", held.lease.node},
                      {"seconds", std::floor(ToSeconds(age))}};
  }
  out["errors"] = json::array();
  for (const job::DistinctError& e : state.errors().Top(kErrorsTold)) {
    const auto named = facts.items.find(e.batch);
    out["errors"].push_back(
        {{"kind", e.kind},
         {"message", e.message},
         {"count", e.count},
         {"miniBatch", e.batch},
         {"item", named == facts.items.end() ? "" : Printable(named->second, kItem)},
         {"node", e.node},
         {"process", fmt::format("process{:03}", e.process)},
         {"log", e.log}});
  }
  out["initFailures"] = {{"count", coordinator.program_errors().init_failures()},
                         {"message", coordinator.program_errors().init_error()}};
  out["failedAttempts"] = state.errors().total();
  out["paused"] = coordinator.WaitsFor();
  out["fetching"] = coordinator.nodes().Fetching();
  out["init"] = coordinator.InitText(now);
  out["storeWaits"] = facts.store_waits;
  out["trial"] = state.settings() ? api::TrialOf(state.settings()->plan_settings) : "";
  out["warning"] = facts.warning;
  out["lateWarning"] = facts.late_warning;
  out["columns"] = json::array();
  for (const auto& [input, line] : facts.columns) out["columns"].push_back(line);
  out["leftOut"] = facts.left_out;
  out["metrics"] = json::object();
  for (const auto& [name, value] : facts.metrics)
    out["metrics"][name] = ParseJson(value).value_or(nullptr);
  out["verdict"] = nullptr;
  if (const auto& verdict = state.verdict()) {
    out["verdict"] = {
        {"outcome", verdict->outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed"},
        {"reason", verdict->reason},
        {"message", verdict->message}};
  }
  out["firstFailed"] = facts.first_lost;
  out["losses"] = nullptr;
  if (const auto& verdict = state.verdict();
      verdict && verdict->outcome == job::Outcome::kSucceeded && losses.items > 0) {
    out["losses"] = {{"items", losses.items},
                     {"withoutElement", losses.missing},
                     {"skipped", losses.skipped},
                     {"allowed", losses.allowed},
                     {"first", facts.first_lost}};
  }
  out["output"] = nullptr;
  if (const auto& published = state.published()) {
    out["output"] = {{"path", published->path},
                     {"bytes", published->bytes},
                     {"rows", published->rows},
                     {"sha256", Hex(published->sha256)}};
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string FailureLines(const Coordinator& coordinator, plan::PlanStore& plan, uint32_t epoch,
                         uint64_t after) {
  const FailedAttempts& failed = coordinator.failed_attempts();
  const uint64_t from = std::max(failed.first(), std::min(after, failed.last()) + 1);
  const uint64_t end = std::min(failed.last() + 1, from + kFailuresTold);
  std::string lines = fmt::format("{{\"epoch\":{},\"last\":{},\"more\":{}}}\n", epoch, end - 1,
                                  end <= failed.last());
  for (uint64_t number = from; number < end; ++number) {
    const FailedAttempt& one = failed.Of(number);
    const job::FailureParts parts = job::SplitFailure(one.kind, one.message);
    json line = {{"miniBatch", job::WholeOf(one.id)},
                 {"id", one.id},
                 {"attempt", one.attempt},
                 {"final", one.final},
                 {"kind", one.kind},
                 {"type", parts.type.empty() ? one.kind : parts.type},
                 {"message", parts.message},
                 {"location", parts.location},
                 {"node", one.node},
                 {"process", fmt::format("process{:03}", one.process)},
                 {"log", one.log},
                 {"items", coordinator.state().batch(one.id).items}};
    std::string paths;
    if (plan.AtHand(coordinator.state(), one.id)) {
      const Result<std::vector<plan::PlannedItem>> items = plan.Items(coordinator.state(), one.id);
      for (size_t i = 0; items.ok() && i < std::min(items->size(), kPathsTold); ++i) {
        if ((*items)[i].path.empty()) continue;
        // Bytes, which a json value cannot give back.
        paths += (paths.empty() ? "" : ",") + JsonText((*items)[i].path);
      }
    }
    std::string text = line.dump(-1, ' ', false, json::error_handler_t::replace);
    text.replace(text.size() - 1, 1, ",\"paths\":[" + paths + "]}\n");
    lines += text;
  }
  return lines;
}

std::string Metrics(const Coordinator& coordinator, uint32_t epoch) {
  // Made afresh for each scrape: the numbers live in JobState, once.
  prometheus::Registry registry;
  const job::JobState& state = coordinator.state();
  const job::JobCounts& counts = state.counts();
  auto gauge = [&](const char* name, const char* help) -> prometheus::Family<prometheus::Gauge>& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  };
  auto& batches = gauge("parallelrun_mini_batches", "Mini-batches of the job by state.");
  batches.Add({{"state", "succeeded"}}).Set(static_cast<double>(counts.succeeded));
  batches.Add({{"state", "failed"}}).Set(static_cast<double>(counts.failed));
  batches.Add({{"state", "running"}}).Set(static_cast<double>(coordinator.running()));
  batches.Add({{"state", "pending"}})
      .Set(static_cast<double>(counts.planned - counts.succeeded - counts.failed -
                               coordinator.running()));
  auto& items = gauge("parallelrun_items", "Items of settled mini-batches by outcome.");
  items.Add({{"outcome", "succeeded"}}).Set(static_cast<double>(counts.items_succeeded));
  const job::Losses losses = coordinator.losses();
  items.Add({{"outcome", "failed"}}).Set(static_cast<double>(losses.items));
  items.Add({{"outcome", "without_element"}}).Set(static_cast<double>(losses.reported));
  gauge("parallelrun_rows", "Rows of succeeded mini-batches.")
      .Add({})
      .Set(static_cast<double>(counts.rows));
  gauge("parallelrun_listing_done", "1 once every input has been listed.")
      .Add({})
      .Set(state.plan_ended() ? 1 : 0);
  gauge("parallelrun_nodes_registered", "Nodes that are registered.")
      .Add({})
      .Set(static_cast<double>(coordinator.nodes().registered()));
  gauge("parallelrun_epoch", "The coordinator's epoch.").Add({}).Set(epoch);
  gauge("parallelrun_paused", "1 while the ledger cannot be written.")
      .Add({})
      .Set(coordinator.paused().empty() ? 0 : 1);
  prometheus::BuildCounter()
      .Name("parallelrun_failed_attempts_total")
      .Help("Attempts of mini-batches that failed in this generation.")
      .Register(registry)
      .Add({})
      .Increment(static_cast<double>(state.errors().total()));
  auto& refused = prometheus::BuildCounter()
                      .Name("parallelrun_refused_reports_total")
                      .Help("What nodes reported and this epoch did not take.")
                      .Register(registry);
  for (size_t i = 0; i < kRefusals; ++i) {
    const auto why = static_cast<RefusalReason>(i);
    refused.Add({{"reason", RefusalName(why)}})
        .Increment(static_cast<double>(coordinator.told().refusals().count(why)));
  }
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace parallelrun::coordinator
