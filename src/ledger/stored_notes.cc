#include "ledger/stored_notes.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

namespace parallelrun::ledger {
namespace {

constexpr int kNoteTries = 5;  // where others write the same note

class StoredNotes final : public StateNotes {
 public:
  StoredNotes(std::unique_ptr<store::WriteStore> store, std::unique_ptr<store::Store> listed)
      : store_(std::move(store)), listed_(std::move(listed)) {}

  std::string Location(const std::string& name) const override { return store_->Location(name); }

  Result<std::optional<std::string>> Read(const std::string& name, size_t most) override {
    for (int i = 0; i < kNoteTries; ++i) {
      const Result<std::optional<store::Stored>> there = store_->Look(name);
      if (!there.ok()) return there.error();
      if (!*there) return std::optional<std::string>();
      const store::Found& found = (*there)->found;
      std::string text(static_cast<size_t>(std::min<uint64_t>(found.size, most)), '\0');
      if (text.empty()) return std::optional(std::move(text));
      const Result<size_t> read =
          store_->Open(name, found)->ReadAt(0, std::span<char>(text.data(), text.size()));
      if (!read.ok() && read.error().code == Code::kStale) continue;  // written anew since
      if (!read.ok()) return read.error();
      text.resize(*read);
      return std::optional(std::move(text));
    }
    return Error{Code::kUnavailable, Location(name) + " is written anew over and over"};
  }

  Status Write(const std::string& name, const std::string& text) override {
    store::Expected expected;
    for (int i = 0; i < kNoteTries; ++i) {
      Status put = store_->Put(name, text, expected, {});
      if (put.ok() || put.error().code != Code::kStale) return put;
      const Result<std::optional<store::Stored>> there = store_->Look(name);
      if (!there.ok()) return there.error();
      expected = *there ? store::Expected((*there)->found.version) : std::nullopt;
    }
    return Error{Code::kUnavailable, Location(name) + " is written anew over and over"};
  }

  Result<std::vector<std::string>> List(const std::string& folder) override {
    const std::string below = folder + "/";
    store::Wanted wanted;
    wanted.name = [&below](std::string_view name) { return name.starts_with(below); };
    wanted.below = [&folder](std::string_view one) { return one == folder; };
    const Result<std::unique_ptr<store::Listing>> listing = listed_->List(std::move(wanted), "");
    if (!listing.ok()) return listing.error();
    std::vector<std::string> names;
    for (;;) {
      const Result<std::optional<store::Listed>> next = (*listing)->Next();
      if (!next.ok()) return next.error();
      if (!*next) return names;
      names.emplace_back((*next)->name.substr(below.size()));
    }
  }

  Status Remove(const std::string& name) override { return store_->Remove(name); }

 private:
  const std::unique_ptr<store::WriteStore> store_;
  const std::unique_ptr<store::Store> listed_;
};

}  // namespace

std::unique_ptr<StateNotes> MakeStoredNotes(std::unique_ptr<store::WriteStore> store,
                                            std::unique_ptr<store::Store> listed) {
  return std::make_unique<StoredNotes>(std::move(store), std::move(listed));
}

}  // namespace parallelrun::ledger
