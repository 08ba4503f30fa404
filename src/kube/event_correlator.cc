// The rules of events.h, without network and threads.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "base/random.h"
#include "kube/events.h"

namespace parallelrun::kube {
namespace {

constexpr size_t kEventReason = 128;  // bytes, as the API server allows
constexpr size_t kDots = 3;           // what Printable adds to a text that it cut
constexpr size_t kNamePrefix = 200;   // of an Event's name, which has 253 at most
constexpr std::string_view kCombined = "(combined from similar events): ";

std::string Joined(std::initializer_list<std::string_view> parts) {
  std::string key;
  for (const std::string_view part : parts) {
    key += part;
    key += '\x1f';
  }
  return key;
}

const char* TypeName(EventType type) { return type == EventType::kNormal ? "Normal" : "Warning"; }

}  // namespace

template <typename T>
T& EventCorrelator::Recent<T>::operator[](const std::string& key) {
  if (const auto found = by_.find(key); found != by_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return order_.front().second;
  }
  order_.emplace_front(key, T());
  by_[key] = order_.begin();
  if (order_.size() > kEventMemory) {
    by_.erase(order_.back().first);
    order_.pop_back();
  }
  return order_.front().second;
}

std::optional<EventCorrelator::Write> EventCorrelator::Correlate(const Event& event, Instant now,
                                                                 WallTime wall) {
  const std::string about = Joined(
      {event.api_version, event.kind, event.object.name_space, event.object.name, event.uid});
  const std::string alike = Joined({about, TypeName(event.type), event.reason});
  std::string message = Printable(event.message, kEventMessage - kCombined.size() - kDots);

  // More than 10 messages of one kind within 10 minutes become one Event.
  Similar& similar = similar_[alike];
  if (now - similar.last > kSimilarWindow) similar.messages.clear();
  similar.last = now;
  const bool combine =
      similar.messages.size() >= size_t{kSimilarEvents} && !similar.messages.contains(message);
  if (!combine) similar.messages.insert(message);
  const std::string key = Joined({alike, combine ? std::string() : message});
  if (combine) message.insert(0, kCombined);

  // 25 at once for each object, then one each 5 minutes.
  Bucket& bucket = buckets_[about];
  if (bucket.filled == Instant{}) bucket.filled = now;
  bucket.tokens = std::min(
      kEventBurst, bucket.tokens + ToSeconds(now - bucket.filled) / ToSeconds(kEventRefill));
  bucket.filled = now;
  if (bucket.tokens < 1) return std::nullopt;
  bucket.tokens -= 1;

  Known& known = known_[key];
  const std::string time = Rfc3339(wall);
  const std::string name_space =
      event.object.name_space.empty() ? "default" : event.object.name_space;
  Write write;
  write.create = known.count == 0;
  if (write.create) {
    known.name = event.object.name.substr(0, kNamePrefix) + "." + RandomHex(8);
    known.first_time = time;
  }
  ++known.count;
  write.name = {name_space, known.name};
  nlohmann::json involved = {{"apiVersion", event.api_version},
                             {"kind", event.kind},
                             {"name", event.object.name},
                             {"uid", event.uid}};
  if (!event.object.name_space.empty()) involved["namespace"] = event.object.name_space;
  if (!event.resource_version.empty()) involved["resourceVersion"] = event.resource_version;
  write.object = {{"apiVersion", "v1"},
                  {"kind", "Event"},
                  {"metadata", {{"name", known.name}, {"namespace", name_space}}},
                  {"involvedObject", std::move(involved)},
                  {"type", TypeName(event.type)},
                  {"reason", Printable(event.reason, kEventReason - kDots)},
                  {"message", message},
                  {"source", {{"component", component_}}},
                  {"reportingComponent", component_},
                  {"firstTimestamp", known.first_time},
                  {"lastTimestamp", time},
                  {"count", known.count}};
  write.patch = {{"message", message}, {"lastTimestamp", time}, {"count", known.count}};
  return write;
}

}  // namespace parallelrun::kube
