#include "plan/object_or_prefix.h"

#include <mutex>
#include <optional>
#include <utility>

namespace parallelrun::plan {
namespace {

class OneName final : public store::Listing {
 public:
  // Nothing of it where it is not wanted.
  OneName(std::string name, std::optional<store::Found> found)
      : name_(std::move(name)), found_(std::move(found)) {}

  Result<std::optional<store::Listed>> Next() override {
    if (!found_) return std::optional<store::Listed>();
    store::Listed listed{name_, std::exchange(found_, std::nullopt)};
    return std::optional(std::move(listed));
  }

 private:
  const std::string name_;
  std::optional<store::Found> found_;
};

class ObjectOrPrefixStore final : public store::Store {
 public:
  ObjectOrPrefixStore(std::unique_ptr<store::Store> below, std::unique_ptr<store::Store> beside,
                      std::string name)
      : below_(std::move(below)), beside_(std::move(beside)), name_(std::move(name)) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    const Result<store::Store*> which = Which();
    if (!which.ok()) return which.error();
    if (*which == below_.get()) return below_->List(std::move(wanted), after);
    std::optional<store::Found> found;
    if (after < name_ && wanted.name(name_)) {
      Result<std::optional<store::Found>> now = beside_->Stat(name_);
      if (!now.ok()) return now.error();
      found = std::move(*now);
    }
    return std::unique_ptr<store::Listing>(std::make_unique<OneName>(name_, std::move(found)));
  }
  Result<bool> IsThere() override {
    const Result<store::Store*> which = Which();
    if (!which.ok()) return which.error();
    if (*which == below_.get()) return below_->IsThere();
    const Result<std::optional<store::Found>> found = beside_->Stat(name_);
    if (!found.ok()) return found.error();
    return found->has_value();
  }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    const Result<store::Store*> which = Which();
    if (!which.ok()) return which.error();
    return (*which)->Stat(name);
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    const Result<store::Store*> which = Which();
    if (!which.ok()) return which.error();
    return (*which)->Open(name);
  }
  store::AnswerCounts CountAnswers() const override {
    const store::AnswerCounts below = below_->CountAnswers();
    const store::AnswerCounts beside = beside_->CountAnswers();
    return {below.all + beside.all, below.throttled + beside.throttled};
  }
  std::string Location(std::string_view name) const override {
    const std::lock_guard lock(mutex_);
    return (is_ == beside_.get() ? beside_ : below_)->Location(name);
  }
  Result<std::string> RealRoot() override {
    const Result<store::Store*> which = Which();
    if (!which.ok()) return which.error();
    return (*which)->RealRoot();
  }
  std::string Difference(const store::Version& was, const store::Version& is) const override {
    return below_->Difference(was, is);
  }
  store::Version AsBefore(const store::Version& version) const override {
    return below_->AsBefore(version);
  }

 private:
  // What failed is tried again by the next call.
  Result<store::Store*> Which() {
    const std::lock_guard lock(mutex_);
    if (is_ != nullptr) return is_;
    const Result<bool> object = IsOneObject(*below_, *beside_, name_);
    if (!object.ok()) return object.error();
    is_ = *object ? beside_.get() : below_.get();
    return is_;
  }

  const std::unique_ptr<store::Store> below_;
  const std::unique_ptr<store::Store> beside_;
  const std::string name_;
  mutable std::mutex mutex_;
  store::Store* is_ = nullptr;  // one of these, once it is known
};

}  // namespace

Result<bool> IsOneObject(store::Store& below, store::Store& beside, const std::string& name) {
  const Result<std::optional<store::Found>> found = beside.Stat(name);
  if (!found.ok() && found.error().code != Code::kPermission) return found.error();
  if (!found.ok() || !*found) return false;
  if ((*found)->size > 0) return true;
  const Result<bool> folder = below.IsThere();
  if (!folder.ok()) return folder.error();
  return !*folder;
}

std::unique_ptr<store::Store> ObjectOrPrefix(std::unique_ptr<store::Store> below,
                                             std::unique_ptr<store::Store> beside,
                                             std::string name) {
  return std::make_unique<ObjectOrPrefixStore>(std::move(below), std::move(beside),
                                               std::move(name));
}

}  // namespace parallelrun::plan
