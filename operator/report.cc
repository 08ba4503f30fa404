#include "operator/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/status/json.h"

namespace parallelrun::operators {
namespace {

using lenient::At;
using lenient::Text;
using nlohmann::json;

// What a stranger may make the status hold; the schema refuses more, and negative numbers.
constexpr size_t kMostErrors = 5;
constexpr size_t kMostErrorBytes = 400;
constexpr size_t kMostWordBytes = 128;
constexpr size_t kMostNodes = 100'000;

int64_t Count(const json& object, const char* key) {
  return std::max<int64_t>(0, lenient::Integer(object, key));
}

std::optional<int64_t> MaybeCount(const json& object, const char* key) {
  const auto value = lenient::MaybeInteger(object, key);
  return value && *value >= 0 ? value : std::nullopt;
}

void ReadErrors(const json& in, Report& out) {
  for (const json& error : lenient::List(in, "errors")) {
    if (out.errors.size() == kMostErrors) break;
    out.errors.push_back({Shortened(Text(error, "kind"), kMostWordBytes),
                          Shortened(Text(error, "message"), kMostErrorBytes), Count(error, "count"),
                          Count(error, "miniBatch"), Count(error, "node"),
                          Shortened(Text(error, "process"), kMostWordBytes),
                          Shortened(Text(error, "log"), kMostErrorBytes)});
  }
}

}  // namespace

std::optional<Report> ParseReport(const json& in) {
  if (!in.is_object()) return std::nullopt;
  Report out;
  out.control_generation = Count(in, "controlGeneration");
  out.state = Text(in, "state");
  const json& batches = At(in, "miniBatches");
  out.total = MaybeCount(batches, "total");
  out.planned = Count(batches, "planned");
  out.succeeded = Count(batches, "succeeded");
  out.failed = Count(batches, "failed");
  out.running = Count(batches, "running");
  out.pending = Count(batches, "pending");
  out.lost = Count(batches, "lost");
  const json& items = At(in, "items");
  out.items_total = MaybeCount(items, "total");
  out.items_succeeded = Count(items, "succeeded");
  out.items_failed = Count(items, "failed");
  out.listing_done = lenient::Boolean(in, "listingDone");
  out.per_second = lenient::Number(in, "perSecond");
  out.seconds_remaining = MaybeCount(in, "secondsRemaining");
  out.paused = Shortened(Text(in, "paused"), kMostErrorBytes);
  out.fetching = Shortened(Text(in, "fetching"), kMostErrorBytes);
  out.init = Shortened(Text(in, "init"), kMostErrorBytes);
  out.store_waits = Shortened(Text(in, "storeWaits"), kMostErrorBytes);
  out.warning = Shortened(Text(in, "warning"), kMaxMessage);
  out.late_warning = Shortened(Text(in, "lateWarning"), kMaxMessage);
  for (const json& node : lenient::List(in, "nodes")) {
    if (out.nodes.size() == kMostNodes) break;
    const auto index = static_cast<int32_t>(Count(node, "index"));
    const bool registered = lenient::Boolean(node, "registered");
    out.nodes.push_back({index, registered, lenient::Boolean(node, "silent"), Count(node, "pod"),
                         lenient::Boolean(node, "gaveUp"), Count(node, "processes"),
                         Count(node, "held")});
    if (!registered) continue;
    out.registered.push_back(index);
    if (out.nodes.back().held > 0) out.working.push_back(index);
  }
  ReadErrors(in, out);
  if (const json& verdict = At(in, "verdict"); verdict.is_object()) {
    out.verdict = ReportVerdict{Text(verdict, "outcome") == "Succeeded", Text(verdict, "reason"),
                                Shortened(Text(verdict, "message"), kMaxMessage)};
  }
  if (const json& output = At(in, "output"); output.is_object()) {
    out.output = OutputStatus{Shortened(Text(output, "path"), kMaxMessage), Count(output, "rows"),
                              Count(output, "bytes"), Shortened(Text(output, "sha256"), 64)};
  }
  return out;
}

LastWords ParseLastWords(std::string_view text) {
  if (text.empty()) return {};
  const json words = ParseJson(text).value_or(nullptr);
  if (const json& progress = At(words, "progress"); !progress.is_null()) {
    return {ParseReport(progress), Text(words, "ended")};
  }
  if (const json& error = At(words, "error"); !error.is_null()) {
    return {std::nullopt, Text(words, "error")};
  }
  return {std::nullopt, std::string(text)};
}

}  // namespace parallelrun::operators
