#include "ledger/stored_links.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "ledger/link_format.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {
namespace {

constexpr std::string_view kChainFolder = "chain";
constexpr uint64_t kLargestLink = kLinkHeaderSize + kMaxGroupPayload;

std::string NameOfLink(uint64_t number) {
  return fmt::format("{}/{}", kChainFolder, LinkName(number));
}

std::string NameOfWanted(uint32_t epoch) { return fmt::format("wanted/{:08}", epoch); }

std::optional<uint64_t> NumberIn(std::string_view name) {
  const size_t front = kChainFolder.size() + 1;
  if (name.size() <= front || !name.starts_with(kChainFolder) || name[front - 1] != '/') return {};
  return NumberOfLink(name.substr(front));
}

class StoredLinks final : public LinkStore {
 public:
  StoredLinks(std::unique_ptr<store::WriteStore> store, std::unique_ptr<store::Store> listed)
      : store_(std::move(store)), listed_(std::move(listed)) {}

  std::string Location(uint64_t number) const override {
    return store_->Location(NameOfLink(number));
  }

  Result<std::vector<uint64_t>> List() override {
    store::Wanted wanted;
    wanted.name = [](std::string_view name) { return NumberIn(name).has_value(); };
    wanted.below = [](std::string_view folder) { return folder == kChainFolder; };
    const Result<std::unique_ptr<store::Listing>> listing = listed_->List(std::move(wanted), "");
    if (!listing.ok()) return listing.error();
    std::vector<uint64_t> numbers;
    for (;;) {
      const Result<std::optional<store::Listed>> next = (*listing)->Next();
      if (!next.ok()) return next.error();
      if (!*next) return numbers;
      const std::optional<uint64_t> number = NumberIn((*next)->name);
      if (!number) continue;
      numbers.push_back(*number);
      if ((*next)->found) Remember(*number, *(*next)->found);
    }
  }

  Result<bool> IsThere(uint64_t number) override { return Has(NameOfLink(number)); }

  Result<std::optional<std::string>> Read(uint64_t number) override {
    return ReadPart(number, 0, kLargestLink);
  }

  Result<std::optional<std::string>> ReadPart(uint64_t number, uint64_t offset,
                                              size_t size) override {
    const Result<std::optional<store::Found>> found = Find(number);
    if (!found.ok()) return found.error();
    if (!*found) return std::optional<std::string>();
    if ((*found)->size > kLargestLink) {
      return Error{Code::kCorrupt, fmt::format("{} has {} bytes, more than any link",
                                               Location(number), (*found)->size)};
    }
    if (offset >= (*found)->size) return std::optional<std::string>(std::string());
    std::string bytes(static_cast<size_t>(std::min<uint64_t>(size, (*found)->size - offset)), '\0');
    const std::unique_ptr<store::Object> object = store_->Open(NameOfLink(number), **found);
    const Result<size_t> read = object->ReadAt(offset, std::span<char>(bytes.data(), bytes.size()));
    if (read.ok()) {
      bytes.resize(*read);
      return std::optional(std::move(bytes));
    }
    if (read.error().code != Code::kStale) return read.error();
    // It is gone, or is another one, and a link never changes.
    Forget(number);
    const Result<std::optional<store::Found>> now = Find(number);
    if (!now.ok()) return now.error();
    if (!*now) return std::optional<std::string>();
    return Error{Code::kCorrupt, read.error().message};
  }

  Status Create(uint64_t number, const std::string& bytes) override {
    return store_->Put(NameOfLink(number), bytes, std::nullopt, {});
  }

  Status Announce(uint32_t epoch) override {
    Status put = store_->Put(NameOfWanted(epoch), "", std::nullopt, {});
    if (!put.ok() && put.error().code == Code::kStale) return {};
    return put;
  }

  Result<bool> IsAnnounced(uint32_t epoch) override { return Has(NameOfWanted(epoch)); }

 private:
  Result<bool> Has(const std::string& name) {
    const Result<std::optional<store::Stored>> looked = store_->Look(name);
    if (!looked.ok()) return looked.error();
    return looked->has_value();
  }

  void Remember(uint64_t number, const store::Found& found) {
    const std::lock_guard lock(mutex_);
    found_.insert_or_assign(number, found);
  }

  void Forget(uint64_t number) {
    const std::lock_guard lock(mutex_);
    found_.erase(number);
  }

  Result<std::optional<store::Found>> Find(uint64_t number) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = found_.find(number);
      if (known != found_.end()) return std::optional(known->second);
    }
    const Result<std::optional<store::Stored>> looked = store_->Look(NameOfLink(number));
    if (!looked.ok()) return looked.error();
    if (!*looked) return std::optional<store::Found>();
    Remember(number, (*looked)->found);
    return std::optional((*looked)->found);
  }

  const std::unique_ptr<store::WriteStore> store_;
  const std::unique_ptr<store::Store> listed_;
  std::mutex mutex_;                        // guards what follows
  std::map<uint64_t, store::Found> found_;  // of links that were seen
};

}  // namespace

std::unique_ptr<LinkStore> MakeStoredLinks(std::unique_ptr<store::WriteStore> store,
                                           std::unique_ptr<store::Store> listed) {
  return std::make_unique<StoredLinks>(std::move(store), std::move(listed));
}

}  // namespace parallelrun::ledger
