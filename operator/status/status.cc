#include "operator/status/status.h"

#include <time.h>

#include <algorithm>
#include <array>

#include "base/escape.h"
#include "operator/status/json.h"

namespace parallelrun::operators {
namespace {

using lenient::At;
using lenient::Integer;
using lenient::Text;
using nlohmann::json;

Truth ReadTruth(const std::string& word) {
  if (word == "True") return Truth::kTrue;
  return word == "False" ? Truth::kFalse : Truth::kUnknown;
}

const char* TruthWord(Truth truth) {
  switch (truth) {
    case Truth::kTrue: return "True";
    case Truth::kFalse: return "False";
    case Truth::kUnknown: return "Unknown";
  }
  return "Unknown";
}

void AddTime(json& out, const char* key, const std::optional<WallTime>& time) {
  if (time && *time != WallTime{}) out[key] = Rfc3339(*time);
}

ProgressStatus ParseProgress(const json& in) {
  const json& batches = At(in, "miniBatches");
  const json& items = At(in, "items");
  ProgressStatus out;
  out.total = lenient::MaybeInteger(batches, "total");
  out.succeeded = Integer(batches, "succeeded");
  out.failed = Integer(batches, "failed");
  out.running = Integer(batches, "running");
  out.items_total = lenient::MaybeInteger(items, "total");
  out.items_succeeded = Integer(items, "succeeded");
  out.items_failed = Integer(items, "failed");
  out.listing_done = lenient::Boolean(in, "listingDone");
  out.per_second = Integer(in, "perSecond");
  out.percent = static_cast<int32_t>(Integer(in, "percent"));
  out.estimated_completion = TimeAt(in, "estimatedCompletionTime");
  out.updated = TimeAt(in, "updateTime").value_or(WallTime{});
  return out;
}

json ProgressJson(const ProgressStatus& progress) {
  json out = {
      {"miniBatches",
       {{"succeeded", progress.succeeded},
        {"failed", progress.failed},
        {"running", progress.running}}},
      {"items", {{"succeeded", progress.items_succeeded}, {"failed", progress.items_failed}}},
      {"listingDone", progress.listing_done},
      {"perSecond", progress.per_second},
      {"percent", progress.percent}};
  if (progress.total) out["miniBatches"]["total"] = *progress.total;
  if (progress.items_total) out["items"]["total"] = *progress.items_total;
  AddTime(out, "estimatedCompletionTime", progress.estimated_completion);
  AddTime(out, "updateTime", progress.updated);
  return out;
}

FailureStatus ParseFailure(const json& in) {
  FailureStatus out{Text(in, "reason"), Text(in, "message"), {}};
  for (const json& error : lenient::List(in, "errors")) {
    out.errors.push_back({Text(error, "kind"), Text(error, "message"), Integer(error, "count"),
                          Integer(error, "miniBatch", -1), Integer(error, "node"),
                          Text(error, "process"), Text(error, "log")});
  }
  return out;
}

json FailureJson(const FailureStatus& failure) {
  json out = json::object();
  if (!failure.reason.empty()) out["reason"] = failure.reason;
  if (!failure.message.empty()) out["message"] = failure.message;
  for (const DistinctFailure& error : failure.errors) {
    json one = {{"kind", error.kind}, {"message", error.message}, {"count", error.count},
                {"node", error.node}, {"process", error.process}, {"log", error.log}};
    if (error.mini_batch >= 0) one["miniBatch"] = error.mini_batch;
    out["errors"].push_back(std::move(one));
  }
  return out;
}

EffectiveStatus ParseEffective(const json& in) {
  EffectiveStatus out;
  out.process_count_per_node = static_cast<int32_t>(Integer(in, "processCountPerNode"));
  out.process_count_source = Text(in, "processCountSource");
  out.image = Text(in, "image");
  out.runtime_image = Text(in, "runtimeImage");
  out.code_digest = Text(in, "codeDigest");
  out.one_host = lenient::Boolean(in, "oneHost");
  const int64_t port = Integer(in, "coordinatorPort");
  if (port > 0 && port <= 65535) out.coordinator_port = static_cast<uint16_t>(port);
  return out;
}

json EffectiveJson(const EffectiveStatus& effective) {
  json out = {{"oneHost", effective.one_host}};
  if (effective.process_count_per_node > 0) {
    out["processCountPerNode"] = effective.process_count_per_node;
  }
  if (effective.coordinator_port > 0) out["coordinatorPort"] = effective.coordinator_port;
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  add("processCountSource", effective.process_count_source);
  add("image", effective.image);
  add("runtimeImage", effective.runtime_image);
  add("codeDigest", effective.code_digest);
  return out;
}

json ConditionsJson(const JobStatus& status) {
  json out = json::array();
  for (const Condition& condition : status.conditions) {
    out.push_back({{"type", condition.type},
                   {"status", TruthWord(condition.status)},
                   {"reason", condition.reason},
                   {"message", condition.message},
                   {"observedGeneration", condition.observed_generation},
                   {"lastTransitionTime", Rfc3339(condition.since)}});
  }
  return out;
}

void ParseMemory(const json& in, JobStatus& out) {
  out.highest_incarnation = Integer(in, "highestIncarnation");
  out.highest_node_count = static_cast<int32_t>(Integer(in, "highestNodeCount"));
  for (const json& pod : lenient::List(in, "counted")) {
    if (pod.is_string()) out.counted.push_back(pod.get<std::string>());
  }
  const json& coordinator = At(in, "coordinator");
  out.coordinator = {Integer(coordinator, "incarnation"), Integer(coordinator, "containerRestarts"),
                     Integer(coordinator, "restarts"), Integer(coordinator, "fruitlessRestarts"),
                     Integer(coordinator, "settled")};
}

}  // namespace

const Condition* JobStatus::Find(std::string_view type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool JobStatus::Is(std::string_view type) const {
  const Condition* const condition = Find(type);
  return condition != nullptr && condition->status == Truth::kTrue;
}

void SetCondition(JobStatus& status, std::string_view type, Truth truth, std::string_view reason,
                  std::string_view message, int64_t generation, WallTime now) {
  auto found = std::find_if(status.conditions.begin(), status.conditions.end(),
                            [&](const Condition& c) { return c.type == type; });
  if (found == status.conditions.end()) {
    status.conditions.push_back({std::string(type), truth, {}, {}, 0, now});
    found = std::prev(status.conditions.end());
  }
  if (found->status != truth) found->since = now;
  found->status = truth;
  found->reason = reason;
  found->message = Shortened(message, kMaxMessage);
  found->observed_generation = generation;
}

JobStatus ParseStatus(const json& in) {
  JobStatus out;
  out.observed_generation = Integer(in, "observedGeneration");
  out.phase = Text(in, "phase");
  for (const json& one : lenient::List(in, "conditions")) {
    out.conditions.push_back({Text(one, "type"), ReadTruth(Text(one, "status")),
                              Text(one, "reason"), Text(one, "message"),
                              Integer(one, "observedGeneration"),
                              TimeAt(one, "lastTransitionTime").value_or(WallTime{})});
  }
  out.start_time = TimeAt(in, "startTime");
  out.ready_time = TimeAt(in, "readyTime");
  out.completion_time = TimeAt(in, "completionTime");
  out.cleanup_time = TimeAt(in, "cleanupTime");
  const json& nodes = At(in, "nodes");
  out.nodes = {static_cast<int32_t>(Integer(nodes, "desired")),
               static_cast<int32_t>(Integer(nodes, "ready")), Integer(nodes, "restarts"),
               // A status of before there were two numbers.
               lenient::MaybeInteger(nodes, "againstLimit").value_or(Integer(nodes, "restarts")),
               Integer(nodes, "disruptions")};
  if (At(in, "progress").is_object()) out.progress = ParseProgress(At(in, "progress"));
  if (At(in, "failure").is_object()) out.failure = ParseFailure(At(in, "failure"));
  if (const json& output = At(in, "output"); output.is_object()) {
    out.output = OutputStatus{Text(output, "path"), Integer(output, "rows"),
                              Integer(output, "bytes"), Text(output, "sha256")};
  }
  out.effective = ParseEffective(At(in, "effective"));
  const json& usage = At(in, "usage");
  out.usage = {Integer(usage, "nodeSeconds"), Integer(usage, "gpuSeconds"),
               TimeAt(usage, "updateTime").value_or(WallTime{})};
  out.logs = Text(in, "logs");
  out.warning = Text(in, "warning");
  out.url = Text(in, "url");
  out.replicas = static_cast<int32_t>(Integer(in, "replicas"));
  out.selector = Text(in, "selector");
  const json& display = At(in, "display");
  out.display = {Text(display, "status"), Text(display, "done"), Text(display, "failed"),
                 Text(display, "nodes"), Text(display, "eta")};
  ParseMemory(in, out);
  return out;
}

json ToJson(const JobStatus& status) {
  json out = {{"observedGeneration", status.observed_generation},
              {"conditions", ConditionsJson(status)},
              {"nodes",
               {{"desired", status.nodes.desired},
                {"ready", status.nodes.ready},
                {"restarts", status.nodes.restarts},
                {"againstLimit", status.nodes.against_limit},
                {"disruptions", status.nodes.disruptions}}},
              {"effective", EffectiveJson(status.effective)},
              {"replicas", status.replicas},
              {"display",
               {{"status", status.display.status},
                {"done", status.display.done},
                {"failed", status.display.failed},
                {"nodes", status.display.nodes},
                {"eta", status.display.eta}}},
              {"highestIncarnation", status.highest_incarnation},
              {"highestNodeCount", status.highest_node_count},
              {"counted", status.counted},
              {"coordinator",
               {{"incarnation", status.coordinator.incarnation},
                {"containerRestarts", status.coordinator.container_restarts},
                {"restarts", status.coordinator.restarts},
                {"fruitlessRestarts", status.coordinator.fruitless},
                {"settled", status.coordinator.settled}}}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  add("phase", status.phase);
  add("logs", status.logs);
  add("warning", status.warning);
  add("url", status.url);
  add("selector", status.selector);
  AddTime(out, "startTime", status.start_time);
  AddTime(out, "readyTime", status.ready_time);
  AddTime(out, "completionTime", status.completion_time);
  AddTime(out, "cleanupTime", status.cleanup_time);
  if (status.progress) out["progress"] = ProgressJson(*status.progress);
  if (status.failure) out["failure"] = FailureJson(*status.failure);
  if (status.output) {
    out["output"] = {{"path", status.output->path},
                     {"rows", status.output->rows},
                     {"bytes", status.output->bytes},
                     {"sha256", status.output->sha256}};
  }
  out["usage"] = {{"nodeSeconds", status.usage.node_seconds},
                  {"gpuSeconds", status.usage.gpu_seconds}};
  AddTime(out["usage"], "updateTime", status.usage.until);
  return out;
}

std::optional<WallTime> ParseRfc3339(std::string_view text) {
  // YYYY-MM-DDThh:mm:ss[.fraction]Z
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() <= kShape.size() || text.back() != 'Z') return std::nullopt;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return std::nullopt;
  }
  const auto number = [&](size_t at, size_t digits) {
    int value = 0;
    for (size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  int64_t fraction = 0;
  int64_t unit = 1'000'000;
  const std::string_view rest = text.substr(kShape.size(), text.size() - kShape.size() - 1);
  for (size_t i = 0; i < rest.size(); ++i) {
    if (i == 0 ? rest[i] != '.' : (rest[i] < '0' || rest[i] > '9')) return std::nullopt;
    if (i > 0) fraction += (rest[i] - '0') * (unit /= 10);
  }
  tm utc{};
  utc.tm_year = number(0, 4) - 1900;
  utc.tm_mon = number(5, 2) - 1;
  utc.tm_mday = number(8, 2);
  utc.tm_hour = number(11, 2);
  utc.tm_min = number(14, 2);
  utc.tm_sec = number(17, 2);
  return WallTime(seconds(timegm(&utc)) + microseconds(fraction));
}

std::string Shortened(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  constexpr std::string_view kDots = "...";
  const size_t room = bytes - std::min(bytes, kDots.size());
  return std::string(Front(text, room)) + std::string(kDots);
}

}  // namespace parallelrun::operators
