#include "tests/support/memory_store.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "store/objects/object_version.h"

namespace parallelrun {
namespace {

using store::Found;
using store::Listed;
using store::Version;

// The next name in the order of bytes.
std::string Behind(std::string name) { return name += '\0'; }

Found FoundAs(const MemoryObjects::Object& object) {
  return {object.bytes->size(), Version("put " + std::to_string(object.version))};
}

Status CheckGoesOn(const std::stop_token& stop, const std::string& root) {
  if (!stop.stop_requested()) return {};
  return Error{Code::kUnavailable, root + " is not listed to its end: the job ended"};
}

class MemoryObject final : public store::Object {
 public:
  explicit MemoryObject(const MemoryObjects::Object& object)
      : bytes_(object.bytes), found_(FoundAs(object)) {}

  const Found& found() const override { return found_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    if (offset >= bytes_->size()) return size_t{0};
    return bytes_->copy(to.data(), to.size(), offset);
  }

 private:
  const std::shared_ptr<const std::string> bytes_;
  const Found found_;
};

class MemoryListing final : public store::Listing {
 public:
  MemoryListing(const MemoryObjects& objects, const std::string& root, store::Wanted wanted,
                const std::string& after, std::stop_token stop)
      : objects_(objects),
        root_(root),
        prefix_(root + "/"),
        wanted_(std::move(wanted)),
        from_(after.empty() ? prefix_ : Behind(prefix_ + after)),
        stop_(std::move(stop)) {}

  // The next page, as buckets answer a request for one.
  Status ReadPage() {
    page_.clear();
    next_ = 0;
    while (page_.size() < kPage) {
      const auto object = objects_.AtOrBehind(from_);
      if (!object || !object->first.starts_with(prefix_)) return {};
      from_ = Behind(object->first);
      std::string name = object->first.substr(prefix_.size());
      if (name.empty() || name.ends_with('/')) {
        const bool told = !object->second.bytes->empty() && wanted_.no_file;
        if (told && LetsIn(name.substr(0, name.find_last_not_of('/') + 1))) wanted_.no_file(name);
        continue;
      }
      if (!IsWanted(name)) continue;
      page_.emplace_back(std::move(name), FoundAs(object->second));
    }
    return {};
  }

  Result<std::optional<Listed>> Next() override {
    if (Status going = CheckGoesOn(stop_, root_); !going.ok()) return going.error();
    if (next_ == page_.size()) {
      if (Status read = ReadPage(); !read.ok()) return read.error();
      if (page_.empty()) return std::optional<Listed>();
    }
    const auto& [name, found] = page_[next_++];
    return std::optional(Listed{name, found});
  }

 private:
  static constexpr size_t kPage = 100;

  bool LetsIn(std::string_view name) const {
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      if (!wanted_.below(name.substr(0, slash))) return false;
    }
    return true;
  }
  bool IsWanted(std::string_view name) const { return LetsIn(name) && wanted_.name(name); }

  const MemoryObjects& objects_;
  const std::string root_;
  const std::string prefix_;
  const store::Wanted wanted_;
  std::string from_;
  const std::stop_token stop_;
  std::vector<std::pair<std::string, Found>> page_;
  size_t next_ = 0;
};

class OneName final : public store::Listing {
 public:
  OneName(std::string name, bool wanted) : name_(std::move(name)), wanted_(wanted) {}

  Result<std::optional<Listed>> Next() override {
    if (!std::exchange(wanted_, false)) return std::optional<Listed>();
    return std::optional(Listed{name_, {}});
  }

 private:
  const std::string name_;
  bool wanted_;
};

class MemoryStore final : public store::Store {
 public:
  MemoryStore(const MemoryObjects& objects, std::string root, std::stop_token stop)
      : objects_(objects), root_(std::move(root)), stop_(std::move(stop)) {
    while (root_.ends_with('/')) root_.pop_back();
    if (objects_.At(root_)) {
      const size_t slash = root_.rfind('/');
      only_ = root_.substr(slash + 1);
      root_.resize(slash);
    }
  }

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    using Listing = std::unique_ptr<store::Listing>;
    if (Status going = CheckGoesOn(stop_, root_); !going.ok()) return going.error();
    if (!only_.empty()) {
      return Listing(std::make_unique<OneName>(only_, only_ != after && wanted.name(only_)));
    }
    const auto first = objects_.AtOrBehind(root_ + "/");
    if (!first || !first->first.starts_with(root_ + "/")) {
      return Error{Code::kNotFound, root_ + " does not exist"};
    }
    auto listing =
        std::make_unique<MemoryListing>(objects_, root_, std::move(wanted), after, stop_);
    if (Status read = listing->ReadPage(); !read.ok()) return read.error();
    return Listing(std::move(listing));
  }

  Result<bool> IsThere() override {
    if (Status going = CheckGoesOn(stop_, root_); !going.ok()) return going.error();
    if (!only_.empty()) return objects_.At(root_ + "/" + only_).has_value();
    const auto first = objects_.AtOrBehind(root_ + "/");
    return first && first->first.starts_with(root_ + "/");
  }

  Result<std::optional<Found>> Stat(const std::string& name) override {
    if (Status going = CheckGoesOn(stop_, root_); !going.ok()) return going.error();
    const auto object = objects_.At(Location(name));
    return object ? std::optional(FoundAs(*object)) : std::optional<Found>();
  }

  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    const auto object = objects_.At(Location(name));
    if (!object) return Error{Code::kNotFound, Location(name) + " is not there"};
    return std::unique_ptr<store::Object>(std::make_unique<MemoryObject>(*object));
  }

  std::string Location(std::string_view name) const override {
    return name.empty() ? root_ : root_ + "/" + std::string(name);
  }

  Result<std::string> RealRoot() override { return Location(""); }

  std::optional<Found> Pinned(const store::Pin& pin,
                              const std::optional<Found>& now) const override {
    return store::PinnedObject(pin, now);
  }
  std::string Difference(const Version& was, const Version& is) const override {
    return "was " + std::string(was.bytes()) + ", is " + std::string(is.bytes());
  }
  Version AsBefore(const Version& version) const override {
    return Version("earlier " + std::string(version.bytes()));
  }

 private:
  const MemoryObjects& objects_;
  std::string root_;
  std::string only_;  // where the root is an object
  const std::stop_token stop_;
};

}  // namespace

void MemoryObjects::Put(const std::string& location, std::string bytes) {
  const std::lock_guard lock(mutex_);
  objects_[location] = {std::make_shared<const std::string>(std::move(bytes)), ++puts_};
}

void MemoryObjects::Remove(const std::string& location) {
  const std::lock_guard lock(mutex_);
  objects_.erase(location);
}

std::unique_ptr<store::Store> MemoryObjects::Open(const std::string& root, std::stop_token stop) {
  return std::make_unique<MemoryStore>(*this, root, std::move(stop));
}

std::optional<std::pair<std::string, MemoryObjects::Object>> MemoryObjects::AtOrBehind(
    const std::string& location) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.lower_bound(location);
  if (found == objects_.end()) return {};
  return *found;
}

std::optional<MemoryObjects::Object> MemoryObjects::At(const std::string& location) const {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(location);
  return found == objects_.end() ? std::optional<Object>() : found->second;
}

}  // namespace parallelrun
