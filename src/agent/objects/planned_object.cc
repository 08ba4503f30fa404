#include "agent/objects/planned_object.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"
#include "store/objects/object_version.h"

namespace parallelrun::agent {
namespace {

Error NotThat(const job::ObjectName& object, const std::string& how, const std::string& mend) {
  return {Code::kStale, fmt::format("{} is not what was listed: it {}. {}",
                                    Printable(object.location, kShownLong), how, mend)};
}

}  // namespace

Result<std::unique_ptr<store::Object>> OpenPlanned(store::Store& store,
                                                   const job::ObjectName& object,
                                                   const std::string& mend) {
  const std::string name = object.location.substr(store.Location("").size() + 1);
  Result<std::unique_ptr<store::Object>> there = store.Open(name);
  if (object.version == store::kNoObject) {
    if (there.ok() || there.error().code != Code::kNotFound) return there;
    return Error{Code::kStale, Printable(object.location, kShownLong) +
                                   " is not there, though the manifest names it: put it there, and "
                                   "continue the run with --retry-failed, or start over with "
                                   "another manifest"};
  }
  if (!there.ok() && there.error().code == Code::kNotFound) {
    return NotThat(object, "was deleted", mend);
  }
  if (!there.ok()) return there.error();
  const store::Version planned{std::string(object.version)};
  const store::Version& now = (*there)->found().version;
  if (!store.IsStill(planned, now)) return NotThat(object, store.Difference(planned, now), mend);
  // In the plan of an earlier release the version does not tell it.
  const uint64_t size = (*there)->found().size;
  if (object.size != job::ObjectName::kAnySize && size != object.size) {
    return NotThat(object, fmt::format("had {} bytes, has {}", object.size, size), mend);
  }
  return there;
}

}  // namespace parallelrun::agent
