// The links of a ledger as objects of a store.
#include "ledger/stored_links.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "ledger/link_format.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::ledger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Lists what is in a store that is written to, with what a listing of a bucket tells of it.
class ListedObjects final : public store::Store {
 public:
  ListedObjects(const MemoryWriteStore& objects, const std::vector<std::string>& names)
      : objects_(objects), names_(names) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    EXPECT_EQ(after, "");
    return std::unique_ptr<store::Listing>(std::make_unique<Names>(*this, std::move(wanted)));
  }
  Result<bool> IsThere() override { return true; }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    return FoundOf(name);
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    return Error{Code::kNotFound, name};
  }
  std::string Location(std::string_view name) const override { return std::string(name); }
  Result<std::string> RealRoot() override { return std::string(); }
  std::string Difference(const store::Version&, const store::Version&) const override { return ""; }
  store::Version AsBefore(const store::Version& version) const override { return version; }

 private:
  class Names final : public store::Listing {
   public:
    Names(const ListedObjects& of, store::Wanted wanted) : of_(of), wanted_(std::move(wanted)) {}
    Result<std::optional<store::Listed>> Next() override {
      while (at_ < of_.names_.size()) {
        const std::string& name = of_.names_[at_++];
        const size_t slash = name.find('/');
        if (slash != std::string::npos && !wanted_.below(name.substr(0, slash))) continue;
        const std::optional<store::Found> found = of_.FoundOf(name);
        if (found && wanted_.name(name)) return std::optional(store::Listed{name, found});
      }
      return std::optional<store::Listed>();
    }

   private:
    const ListedObjects& of_;
    const store::Wanted wanted_;
    size_t at_ = 0;
  };

  std::optional<store::Found> FoundOf(const std::string& name) const {
    const MemoryWriteStore::Object* const there = objects_.Find(name);
    if (there == nullptr) return std::nullopt;
    return store::Found{there->bytes.size(), there->version};
  }

  const MemoryWriteStore& objects_;
  const std::vector<std::string>& names_;
};

class StoredLinksTest : public ::testing::Test {
 protected:
  StoredLinksTest() {
    auto store = std::make_unique<MemoryWriteStore>();
    store_ = store.get();
    links_ = MakeStoredLinks(std::move(store), std::make_unique<ListedObjects>(*store_, names_));
  }

  // In the order of their bytes, as a listing gives them.
  std::vector<std::string> names_{"chain/00000001",   "chain/00000002",  "chain/0000003",
                                  "chain/00000004/x", "chainx/00000005", "uploads/000001.json"};
  MemoryWriteStore* store_ = nullptr;
  std::unique_ptr<LinkStore> links_;
};

TEST_F(StoredLinksTest, AreMadeOnceAndRead) {
  ASSERT_TRUE(links_->Create(1, "first").ok());
  EXPECT_EQ(store_->Find("chain/00000001")->bytes, "first");
  EXPECT_EQ(links_->Location(1), "s3://bucket/chain/00000001");
  EXPECT_EQ(links_->Create(1, "another").error().code, Code::kStale);
  EXPECT_EQ(**links_->Read(1), "first");
  EXPECT_EQ(**links_->ReadPart(1, 1, 2), "ir");
  EXPECT_EQ(**links_->ReadPart(1, 3, 100), "st");
  EXPECT_EQ(**links_->ReadPart(1, 5, 1), "");
  EXPECT_EQ(*links_->Read(2), std::nullopt);
}

TEST_F(StoredLinksTest, OnlyLinksAreListed) {
  EXPECT_THAT(*links_->List(), IsEmpty());
  for (const std::string& name : names_) store_->Write(name, "x");
  EXPECT_THAT(*links_->List(), ElementsAre(1, 2));
}

// What a listing tells of a link spares the question for each.
TEST_F(StoredLinksTest, WhatWasListedIsReadByOneRequest) {
  ASSERT_TRUE(links_->Create(1, "first").ok());
  ASSERT_TRUE(links_->List().ok());
  const size_t before = store_->requests().size();
  EXPECT_EQ(**links_->Read(1), "first");
  EXPECT_EQ(store_->requests().size(), before + 1);
}

TEST_F(StoredLinksTest, OneThatIsGoneIsNotThereAndAnotherOneIsDamage) {
  ASSERT_TRUE(links_->Create(1, "first").ok());
  ASSERT_TRUE(links_->List().ok());
  store_->Drop("chain/00000001");
  EXPECT_EQ(*links_->Read(1), std::nullopt);
  ASSERT_TRUE(links_->Create(1, "again").ok());
  ASSERT_TRUE(links_->List().ok());
  store_->Write("chain/00000001", "other");
  const auto changed = links_->Read(1);
  ASSERT_FALSE(changed.ok());
  EXPECT_EQ(changed.error().code, Code::kCorrupt);
  EXPECT_THAT(changed.error().message, HasSubstr("chain/00000001"));
}

TEST_F(StoredLinksTest, AnEpochThatIsWantedIsSeen) {
  EXPECT_FALSE(*links_->IsAnnounced(7));
  ASSERT_TRUE(links_->Announce(7).ok());
  ASSERT_TRUE(links_->Announce(7).ok()) << "again";
  EXPECT_NE(store_->Find("wanted/00000007"), nullptr);
  EXPECT_TRUE(*links_->IsAnnounced(7));
  EXPECT_FALSE(*links_->IsAnnounced(8));
  EXPECT_FALSE(*links_->IsThere(7));
  ASSERT_TRUE(links_->Create(7, "seventh").ok());
  EXPECT_TRUE(*links_->IsThere(7));
}

TEST_F(StoredLinksTest, AStoreThatIsAwayIsNoMissingLink) {
  ASSERT_TRUE(links_->Create(1, "first").ok());
  store_->SetFaults([](size_t, const std::string&) { return MemoryWriteStore::Fault::kRefused; });
  EXPECT_EQ(links_->Read(1).error().code, Code::kUnavailable);
  EXPECT_EQ(links_->Create(2, "second").error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace parallelrun::ledger
