#include "operator/builders/object_room.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "api/sizes.h"
#include "api/store_users.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kStorage[] = "ephemeral-storage";
constexpr uint64_t kMost = uint64_t{1} << 60;  // no disk is larger, and nothing overflows
constexpr int64_t kFixed = int64_t{64} << 20;
constexpr uint64_t kPartOfBudget = 10;  // a tenth of it

// Nothing: it is not there, or no quantity, of which the API server will speak.
std::optional<int64_t> Bytes(const json& resources, const char* part) {
  if (!resources.is_object() || !resources.contains(part) || !resources[part].is_object() ||
      !resources[part].contains(kStorage)) {
    return std::nullopt;
  }
  const json& value = resources[part][kStorage];
  const Result<int64_t> bytes =
      api::ParseQuantity(value.is_string() ? value.get<std::string>() : value.dump(), 1);
  return bytes.ok() ? std::optional(*bytes) : std::nullopt;
}

std::string Sum(int64_t bytes, int64_t room) {
  return std::to_string(std::min(bytes, std::numeric_limits<int64_t>::max() - room) + room);
}

}  // namespace

// Both were learned of a cache that ended its own job: a kubelet evicts a pod that is above its
// limit at once, and counts blocks, folders and what is being written, not bytes of objects.
int64_t ObjectRoom(const api::JobSpec& spec) {
  const bool any = std::any_of(
      spec.stores.begin(), spec.stores.end(),
      [&](const api::ObjectStore& store) { return api::NodesFetchFrom(spec, store.name); });
  if (!any) return 0;
  const uint64_t budget = std::min(spec.cache.size, kMost);
  return static_cast<int64_t>(budget + budget / kPartOfBudget) + kFixed;
}

void AddObjectRoom(const api::JobSpec& spec, json& resources) {
  const int64_t room = ObjectRoom(spec);
  if (room == 0) return;
  const std::optional<int64_t> limit = Bytes(resources, "limits");
  const std::optional<int64_t> request = Bytes(resources, "requests");
  // Without a request the limit is one.
  resources["requests"][kStorage] = Sum(request.value_or(limit.value_or(0)), room);
  if (limit) resources["limits"][kStorage] = Sum(*limit, room);
}

}  // namespace parallelrun::operators
