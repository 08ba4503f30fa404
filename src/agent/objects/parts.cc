#include "agent/objects/parts.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {

void Parts::Add(uint64_t number, const job::ByteRange& range) {
  objects_[number] = {range.offset, range.offset + range.length, 0, {}};
}

std::optional<Parts::Part> Parts::Next(const std::function<bool(uint64_t number)>& may) {
  for (auto& [number, object] : objects_) {
    if (object.next == object.end || object.at_work == kAtOnce) continue;
    if (may && !may(number)) continue;
    const uint64_t length = std::min(kBytes, object.end - object.next);
    ++object.at_work;
    return Part{number, {std::exchange(object.next, object.next + length), length}};
  }
  return std::nullopt;
}

std::optional<Status> Parts::End(uint64_t number, Status status) {
  const auto found = objects_.find(number);
  Object& object = found->second;
  --object.at_work;
  if (!status.ok()) {
    object.next = object.end;
    if (object.status.ok()) object.status = std::move(status);
  }
  if (object.at_work > 0 || object.next < object.end) return std::nullopt;
  Status whole = std::move(object.status);
  objects_.erase(found);
  return whole;
}

}  // namespace parallelrun::agent
