#include "coordinator/progress.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/version.h"

namespace parallelrun {
namespace {

using nlohmann::json;

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
                     coordinator.state().verdict()->outcome == Outcome::kSucceeded
                 ? "Succeeded"
                 : "Failed";
  }
  return "Unknown";
}

std::string Hex(const std::array<uint8_t, 32>& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

std::string ProgressJson(const Coordinator& coordinator, uint32_t epoch, WallTime started,
                         const std::map<std::string, std::string>& metrics,
                         const std::string& warning, const std::map<uint32_t, std::string>& columns,
                         const std::vector<std::string>& left_out,
                         const std::vector<std::string>& first_lost,
                         const std::map<BatchId, std::string>& items) {
  const JobState& state = coordinator.state();
  const JobCounts& counts = state.counts();
  const Losses losses = coordinator.losses();
  const uint64_t settled = counts.succeeded + counts.failed;
  json out;
  out["release"] = kVersion;
  out["epoch"] = epoch;
  out["generation"] = state.settings() ? state.settings()->generation : 0;
  out["controlGeneration"] = coordinator.control_generation();
  out["state"] = StateName(coordinator);
  out["startedAt"] = Rfc3339(started);
  out["miniBatches"] = {{"total", state.plan_ended() ? json(counts.planned) : json(nullptr)},
                        {"planned", counts.planned},
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
  const std::optional<Duration> left =
      state.plan_ended() ? coordinator.told().rate().Remaining(counts.planned - settled)
                         : std::nullopt;
  out["secondsRemaining"] =
      left ? json(static_cast<int64_t>(std::ceil(ToSeconds(*left)))) : json(nullptr);
  out["nodes"] = json::array();
  for (const auto& [index, node] : coordinator.nodes().all()) {
    out["nodes"].push_back({{"index", index},
                            {"registered", node.registered},
                            {"gaveUp", node.gave_up},
                            {"processes", node.processes},
                            {"held", coordinator.availability().HeldCount(index)}});
  }
  out["errors"] = json::array();
  for (const DistinctError& e : state.errors().Top(kErrorsTold)) {
    const auto named = items.find(e.batch);
    out["errors"].push_back({{"kind", e.kind},
                             {"message", e.message},
                             {"count", e.count},
                             {"miniBatch", e.batch},
                             {"item", named == items.end() ? "" : named->second},
                             {"node", e.node},
                             {"process", fmt::format("process{:03}", e.process)},
                             {"log", e.log}});
  }
  out["initFailures"] = {{"count", coordinator.program_errors().init_failures()},
                         {"message", coordinator.program_errors().init_error()}};
  out["failedAttempts"] = state.errors().total();
  out["paused"] = coordinator.WaitsFor();
  out["warning"] = warning;
  out["columns"] = json::array();
  for (const auto& [input, line] : columns) out["columns"].push_back(line);
  out["leftOut"] = left_out;
  out["metrics"] = json::object();
  for (const auto& [name, value] : metrics)
    out["metrics"][name] = json::parse(value, nullptr, false);
  out["verdict"] = nullptr;
  if (const auto& verdict = state.verdict()) {
    out["verdict"] = {{"outcome", verdict->outcome == Outcome::kSucceeded ? "Succeeded" : "Failed"},
                      {"reason", verdict->reason},
                      {"message", verdict->message}};
  }
  out["firstFailed"] = first_lost;
  out["losses"] = nullptr;
  if (const auto& verdict = state.verdict();
      verdict && verdict->outcome == Outcome::kSucceeded && losses.items > 0) {
    out["losses"] = {{"items", losses.items},
                     {"withoutElement", losses.missing},
                     {"skipped", losses.skipped},
                     {"allowed", losses.allowed},
                     {"first", first_lost}};
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

std::string Metrics(const Coordinator& coordinator, uint32_t epoch) {
  // Made afresh for each scrape: the numbers live in JobState, once.
  prometheus::Registry registry;
  const JobState& state = coordinator.state();
  const JobCounts& counts = state.counts();
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
  const Losses losses = coordinator.losses();
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

}  // namespace parallelrun
