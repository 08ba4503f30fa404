#include "agent/objects/planned_object.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "store/file_path.h"
#include "store/objects/object_version.h"

namespace parallelrun::agent {
namespace {

Error NotThat(const job::ObjectName& object, const std::string& how, const std::string& mend) {
  return {Code::kStale, fmt::format("{} is not what was listed: it {}. {}",
                                    Printable(object.location, kShownLong), how, mend)};
}

// Relative to the store's root.
std::string BelowRoot(const store::Store& store, const job::ObjectName& object) {
  return object.location.substr(store.Location("").size() + 1);
}

}  // namespace

Result<std::string> FileNameOf(const store::Store& store, const job::ObjectName& object) {
  const std::string shown = Printable(object.location, kShownLong);
  const std::string root = store.Location("") + "/";
  if (!object.location.starts_with(root)) {
    return Error{Code::kInvalid, shown + " is not below " + Printable(root, kShownLong)};
  }
  const size_t bucket = object.location.find("://") + 3;
  std::string name = object.location.substr(object.location.find('/', bucket) + 1);
  if (!store::IsFilePath(name)) {
    return Error{Code::kInvalid,
                 shown +
                     ": its key cannot be the name of a file: copy the object to another key, "
                     "or leave it out with exclude"};
  }
  return name;
}

std::unique_ptr<store::Object> OpenUnasked(store::Store& store, const job::ObjectName& object) {
  std::unique_ptr<store::Object> planned =
      store.OpenUnseen(BelowRoot(store, object), store::Version(std::string(object.version)));
  if (!planned || object.size == job::ObjectName::kAnySize) return planned;
  return planned->found().size == object.size ? std::move(planned) : nullptr;
}

Result<std::unique_ptr<store::Object>> OpenPlanned(store::Store& store,
                                                   const job::ObjectName& object,
                                                   const std::string& mend) {
  Result<std::unique_ptr<store::Object>> there = store.Open(BelowRoot(store, object));
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
