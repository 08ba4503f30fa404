#include "coordinator/page/page_data.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/settings.h"
#include "base/json.h"
#include "base/version.h"
#include "job/failure_text.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kMostProcesses = 200;
constexpr size_t kMostSettings = 500;

double JsonSeconds(uint64_t ns) { return std::round(static_cast<double>(ns) / 1e3) / 1e6; }
double JsonSeconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

json SeriesJson(const Figures& figures) {
  json out = {{"step", JsonSeconds(figures.series().step())}};
  std::vector<uint64_t> succeeded;
  std::vector<uint64_t> failed;
  std::vector<double> mean;
  std::vector<double> longest;
  for (const TimeSeries::Point& point : figures.series().points()) {
    const uint64_t attempts = point.succeeded + point.failed;
    succeeded.push_back(point.succeeded);
    failed.push_back(point.failed);
    mean.push_back(attempts == 0 ? 0 : JsonSeconds(point.run_ns / attempts));
    longest.push_back(JsonSeconds(point.longest_ns));
  }
  out["succeeded"] = succeeded;
  out["failed"] = failed;
  out["mean"] = mean;
  out["longest"] = longest;
  out["cuts"] = json::array();
  for (const Figures::Cut& cut : figures.cuts()) {
    out["cuts"].push_back({JsonSeconds(cut.at), JsonSeconds(cut.length)});
  }
  return out;
}

json MapJson(const BatchMap& map, uint64_t planned) {
  std::vector<uint64_t> succeeded;
  std::vector<uint64_t> failed;
  for (const BatchMap::Cell& cell : map.cells()) {
    succeeded.push_back(cell.succeeded);
    failed.push_back(cell.failed);
  }
  return {{"perCell", map.per_cell()},
          {"planned", planned},
          {"succeeded", succeeded},
          {"failed", failed}};
}

// Those with most time, in the order of their names.
json ProcessesJson(const Figures& figures) {
  std::vector<std::pair<Figures::ProcessName, Figures::Sums>> all = figures.processes();
  const size_t count = all.size();
  if (count > kMostProcesses) {
    std::vector<uint64_t> spans;
    for (const auto& [name, sums] : all) spans.push_back(sums.span_ns());
    std::nth_element(spans.begin(), spans.begin() + kMostProcesses, spans.end(), std::greater<>());
    const uint64_t least = spans[kMostProcesses];
    std::erase_if(all, [least](const auto& one) { return one.second.span_ns() < least; });
    all.resize(kMostProcesses);
  }
  json list = json::array();
  for (const auto& [name, sums] : all) {
    list.push_back({{"node", name.node},
                    {"name", fmt::format("process{:03}", name.process)},
                    {"attempts", sums.attempts},
                    {"failed", sums.failed},
                    {"items", sums.items},
                    {"span", JsonSeconds(sums.span_ns())},
                    {"elapsed", JsonSeconds(sums.elapsed_ns)},
                    {"run", JsonSeconds(sums.run_ns)},
                    {"cpu", JsonSeconds(sums.cpu_ns)}});
  }
  return {{"count", count}, {"list", list}};
}

json ErrorsJson(const PageFacts& facts) {
  json list = json::array();
  for (const ErrorShown& shown : facts.errors) {
    const job::DistinctError& e = shown.error;
    const job::FailureParts parts = job::SplitFailure(e.kind, e.message);
    list.push_back({{"kind", e.kind},
                    {"type", parts.type},
                    {"message", parts.message},
                    {"location", parts.location},
                    {"count", e.count},
                    {"miniBatch", job::MiniBatchText(e.batch)},
                    {"item", shown.item},
                    {"node", e.node},
                    {"process", fmt::format("process{:03}", e.process)},
                    {"log", e.log},
                    {"traceback", shown.traceback}});
  }
  return {
      {"attempts", facts.state.errors().total()},
      {"more", facts.state.errors().Top(job::DistinctErrors::kLimit).size() > facts.errors.size() ||
                   facts.errors.size() == job::DistinctErrors::kLimit},
      {"list", list}};
}

json SlowestJson(const std::vector<SlowAttempt>& slowest) {
  json list = json::array();
  for (const SlowAttempt& slow : slowest) {
    const Figures::Attempt& a = slow.attempt;
    list.push_back({{"miniBatch", job::MiniBatchText(a.id)},
                    {"item", slow.item},
                    {"items", a.items},
                    {"node", a.node},
                    {"process", fmt::format("process{:03}", a.process)},
                    {"run", JsonSeconds(a.run_ns)},
                    {"elapsed", JsonSeconds(a.elapsed_ns)},
                    {"cpu", JsonSeconds(a.cpu_ns)},
                    {"succeeded", a.succeeded}});
  }
  return list;
}

json JobOf(const job::JobState& state) {
  if (!state.settings()) return json::object();
  return ParseObject(state.settings()->job).value_or(json::object());
}

json AdviceJson(const PageFacts& facts, const json& job) {
  const json& spec = lenient::At(job, "spec");
  AdviceFacts about;
  about.total = facts.figures.total();
  about.process_ns = facts.figures.process_ns();
  about.processes = facts.figures.processes();
  about.waits = facts.waits;
  about.async_mode = lenient::Boolean(spec, "asyncMode");
  const json& size = lenient::At(spec, "miniBatchSize");
  const std::string text = size.is_string() ? size.get<std::string>() : size.dump();
  if (!text.empty() && text.size() < 10 &&
      text.find_first_not_of("0123456789") == std::string::npos) {
    about.mini_batch_size = std::stoull(text);
  }
  json list = json::array();
  for (const Advice& advice : AdviceOn(about)) {
    list.push_back({{"found", advice.found}, {"change", advice.change}});
  }
  return list;
}

}  // namespace

json PageData(const PageFacts& facts) {
  const job::JobState& state = facts.state;
  const job::JobCounts& counts = state.counts();
  const job::Losses losses = job::CountLosses(counts, facts.rules);
  const json job = JobOf(state);
  json out = {{"format", 1},
              {"release", kVersion},
              {"name", lenient::Text(lenient::At(job, "metadata"), "name")},
              {"madeAt", Rfc3339(facts.made_at)},
              {"begunAt", facts.figures.begun_us() == 0
                              ? json(nullptr)
                              : json(Rfc3339(WallTime(Duration(facts.figures.begun_us()))))},
              {"seconds", JsonSeconds(facts.figures.length())},
              {"logFolder", facts.log_folder},
              {"trial", state.settings() ? api::TrialOf(state.settings()->plan_settings) : ""}};
  out["verdict"] = nullptr;
  out["state"] = "Unfinished";
  if (const auto& verdict = state.verdict()) {
    out["state"] = verdict->outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed";
    out["verdict"] = {{"reason", verdict->reason}, {"message", verdict->message}};
  }
  out["miniBatches"] = {{"planned", counts.planned},
                        {"listed", state.plan_ended()},
                        {"succeeded", counts.succeeded},
                        {"failed", counts.failed}};
  out["items"] = {{"planned", counts.items_planned},
                  {"succeeded", counts.items_succeeded},
                  {"failed", losses.items},
                  {"withoutElement", losses.reported}};
  out["init"] = facts.live ? facts.live->init : facts.waits ? facts.waits->init : "";
  if (facts.live) {
    out["live"] = true;
    out["state"] = facts.live->state;
    out["cause"] = facts.live->cause;
    out["storeWaits"] = facts.live->store_waits;
    out["miniBatches"]["running"] = facts.live->running;
    out["remaining"] =
        facts.live->remaining ? json(JsonSeconds(*facts.live->remaining)) : json(nullptr);
    out["slowestRunning"] = nullptr;
    if (const auto& slowest = facts.live->slowest) {
      out["slowestRunning"] = {{"miniBatch", job::MiniBatchText(slowest->id)},
                               {"item", slowest->item},
                               {"node", slowest->node},
                               {"seconds", std::floor(ToSeconds(slowest->age))}};
    }
  }
  out["rows"] = counts.rows;
  out["output"] = nullptr;
  if (const auto& published = state.published()) {
    out["output"] = {{"path", published->path}, {"bytes", published->bytes}};
  }
  out["advice"] = AdviceJson(facts, job);
  out["errors"] = ErrorsJson(facts);
  out["series"] = SeriesJson(facts.figures);
  out["processes"] = ProcessesJson(facts.figures);
  out["map"] = MapJson(facts.map, counts.planned);
  out["slowest"] = SlowestJson(facts.slowest);
  out["settings"] = json::array();
  if (state.settings()) {
    for (const SettingShown& one : SettingsShown(state.settings()->job, kMostSettings)) {
      out["settings"].push_back({one.path, one.value, one.is_default});
    }
  }
  return out;
}

}  // namespace parallelrun::coordinator
