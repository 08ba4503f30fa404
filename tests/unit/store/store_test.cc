// What every store promises (store/store.h), on each that there is.
#include "store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "store/folder/folder_store.h"
#include "tests/support/disk_files.h"
#include "tests/support/memory_store.h"

namespace parallelrun::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

class OnDisk {
 public:
  OnDisk() {
    root_ = std::filesystem::temp_directory_path() / "parallelrun-store-XXXXXX";
    EXPECT_NE(mkdtemp(root_.data()), nullptr);
  }
  ~OnDisk() { std::filesystem::remove_all(root_); }
  OnDisk(const OnDisk&) = delete;
  OnDisk& operator=(const OnDisk&) = delete;

  const std::string& root() const { return root_; }
  void Put(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = root_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(root_ + "/" + name); }
  std::unique_ptr<Store> Open(const std::string& root, const std::stop_token& stop = {}) {
    return MakeFolderStore(DiskFiles(), {root, {}, stop});
  }

 private:
  std::string root_;
};

class InMemory {
 public:
  std::string root() const { return "memory://bucket/in"; }
  void Put(const std::string& name, const std::string& bytes) {
    objects_.Put(root() + "/" + name, bytes);
  }
  void Remove(const std::string& name) { objects_.Remove(root() + "/" + name); }
  std::unique_ptr<Store> Open(const std::string& root, const std::stop_token& stop = {}) {
    return objects_.Open(root, stop);
  }

 private:
  MemoryObjects objects_;
};

Wanted All() {
  const auto yes = [](std::string_view) { return true; };
  return {yes, yes};
}

Names NamesIn(Store& store, const Wanted& wanted, const std::string& after = "") {
  auto listing = store.List(wanted, after);
  Names names;
  if (!listing.ok()) return {CodeName(listing.error().code)};
  while (true) {
    const auto next = (*listing)->Next();
    if (!next.ok()) return names.emplace_back(CodeName(next.error().code)), names;
    if (!*next) return names;
    names.emplace_back((*next)->name);
  }
}

std::string Read(const Object& object, uint64_t offset, size_t size) {
  std::string bytes(size, '?');
  const auto got = object.ReadAt(offset, bytes);
  EXPECT_TRUE(got.ok());
  bytes.resize(got.ok() ? *got : 0);
  return bytes;
}

template <typename Place>
class StoreTest : public ::testing::Test {
 protected:
  Place place_;
};
using Stores = ::testing::Types<OnDisk, InMemory>;
TYPED_TEST_SUITE(StoreTest, Stores);

TYPED_TEST(StoreTest, ListsInByteOrderAndGoesOnBehindAnyName) {
  const Names names = {"a-b", "a.b", "a/1", "a/2/x", "a0", "b"};
  for (const std::string& name : names) this->place_.Put(name, name);
  const auto store = this->place_.Open(this->place_.root());
  EXPECT_EQ(NamesIn(*store, All()), names);
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(NamesIn(*store, All(), names[i]),
              Names(names.begin() + static_cast<ptrdiff_t>(i) + 1, names.end()));
  }
  this->place_.Remove("a/1");
  EXPECT_THAT(NamesIn(*store, All(), "a/1"), ElementsAre("a/2/x", "a0", "b"));
}

TYPED_TEST(StoreTest, ListsWhatIsWantedAndLooksBelowNothingElse) {
  for (const char* name : {"a/1", "b/1", "b/c/2", "d"}) this->place_.Put(name, "x");
  const auto store = this->place_.Open(this->place_.root());
  Wanted wanted = All();
  wanted.below = [](std::string_view folder) { return folder != "b"; };
  EXPECT_THAT(NamesIn(*store, wanted), ElementsAre("a/1", "d"));
  wanted = All();
  wanted.name = [](std::string_view name) { return name.ends_with('1'); };
  EXPECT_THAT(NamesIn(*store, wanted), ElementsAre("a/1", "b/1"));
}

TYPED_TEST(StoreTest, SaysWhatIsThere) {
  this->place_.Put("a/b", "12345");
  const auto store = this->place_.Open(this->place_.root());
  const auto found = store->Stat("a/b");
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->size, 5u);
  EXPECT_FALSE((*found)->version.bytes().empty());
  EXPECT_LE((*found)->version.bytes().size(), Version::kMost);
  EXPECT_EQ(store->Stat("a/b").value()->version, (*found)->version);
  EXPECT_FALSE(store->Stat("a/c").value());
}

TYPED_TEST(StoreTest, SaysWhetherTheRootIsThere) {
  this->place_.Put("a/b", "12345");
  for (const auto& [name, there] :
       {std::pair{"", true}, {"/a", true}, {"/a/b", true}, {"/none", false}, {"/a/b0", false}}) {
    const auto store = this->place_.Open(this->place_.root() + name);
    EXPECT_EQ(store->IsThere().value(), there) << name;
  }
}

TYPED_TEST(StoreTest, AListingTellsTheSameAsALook) {
  this->place_.Put("a", "12345");
  const auto store = this->place_.Open(this->place_.root());
  const auto listing = store->List(All(), "");
  ASSERT_TRUE(listing.ok());
  const auto next = (*listing)->Next();
  ASSERT_TRUE(next.ok() && *next);
  const Found looked = *store->Stat("a").value();
  const Found found = (*next)->found.value_or(looked);
  EXPECT_EQ(found.size, looked.size);
  EXPECT_EQ(found.version, looked.version);
}

TYPED_TEST(StoreTest, AnotherContentIsAnotherVersionAndSaysHow) {
  this->place_.Put("a", "1");
  const auto store = this->place_.Open(this->place_.root());
  const Version before = store->Stat("a").value()->version;
  this->place_.Put("a", "22");
  const Version now = store->Stat("a").value()->version;
  EXPECT_NE(now, before);
  EXPECT_FALSE(store->Difference(before, now).empty());
}

TYPED_TEST(StoreTest, ReadsAnywhere) {
  this->place_.Put("a", "0123456789");
  const auto store = this->place_.Open(this->place_.root());
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  EXPECT_EQ((*object)->found().size, 10u);
  EXPECT_EQ((*object)->found().version, store->Stat("a").value()->version);
  EXPECT_EQ(Read(**object, 0, 3), "012");
  EXPECT_EQ(Read(**object, 8, 3), "89");
  EXPECT_EQ(Read(**object, 10, 3), "");
  EXPECT_EQ(Read(**object, 11, 3), "");
  EXPECT_EQ(store->Open("b").error().code, Code::kNotFound);
}

TYPED_TEST(StoreTest, WhatIsAddedLaterIsNotRead) {
  this->place_.Put("a", "0123");
  const auto store = this->place_.Open(this->place_.root());
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  this->place_.Put("a", "012345");
  EXPECT_EQ(Read(**object, 2, 10), "23");
  EXPECT_EQ((*object)->found().size, 4u);
}

TYPED_TEST(StoreTest, KnowsWhereItIs) {
  this->place_.Put("a/b", "x");
  const std::string root = this->place_.root();
  const auto store = this->place_.Open(root + "//");
  EXPECT_EQ(NamesIn(*store, All()), Names{"a/b"});
  EXPECT_EQ(store->Location(""), root);
  EXPECT_EQ(store->Location("a/b"), root + "/a/b");
  const auto one = this->place_.Open(root + "/a/b");
  EXPECT_EQ(NamesIn(*one, All()), Names{"b"});
  EXPECT_THAT(NamesIn(*one, All(), "b"), IsEmpty());
  EXPECT_EQ(one->Location("b"), root + "/a/b");
  EXPECT_EQ(one->Stat("b").value()->size, 1u);
}

TYPED_TEST(StoreTest, ARootThatIsNotThereIsAnErrorOfTheFirstCall) {
  const auto store = this->place_.Open(this->place_.root() + "/none");
  EXPECT_EQ(store->List(All(), "").error().code, Code::kNotFound);
}

TYPED_TEST(StoreTest, NothingIsWaitedForOnceTheJobEnded) {
  this->place_.Put("a", "x");
  std::stop_source job;
  const auto store = this->place_.Open(this->place_.root(), job.get_token());
  const auto listing = store->List(All(), "");
  ASSERT_TRUE(listing.ok());
  job.request_stop();
  EXPECT_EQ((*listing)->Next().error().code, Code::kUnavailable);
  EXPECT_EQ(store->List(All(), "").error().code, Code::kUnavailable);
  EXPECT_EQ(store->Stat("a").error().code, Code::kUnavailable);
}

// --- of folders alone

// Ledgers and workers hold these bytes.
TEST(FolderStoreTest, AVersionIsSizeAndModificationTime) {
  const OnDisk place;
  place.Put("a", "123");
  const auto store = MakeFolderStore(DiskFiles(), {place.root()});
  const Found found = *store->Stat("a").value();
  const FileFacts facts = *DiskFiles().Stat(place.root() + "/a");
  std::string bytes;
  Encoder to(bytes);
  to.U64(3);
  to.I64(facts.modified_ns);
  EXPECT_EQ(found.version.bytes(), bytes);
}

// A listing gives neither, and what a manifest names is a file.
TEST(FolderStoreTest, WhatIsNoFileIsNotThere) {
  const OnDisk place;
  place.Put("in/a", "123");
  ASSERT_EQ(mkfifo((place.root() + "/pipe").c_str(), 0600), 0);
  const auto store = MakeFolderStore(DiskFiles(), {place.root()});
  EXPECT_TRUE(store->Stat("in/a").value());
  EXPECT_FALSE(store->Stat("in").value());
  EXPECT_FALSE(store->Stat("pipe").value());
}

// Names are relative to the folder that was opened, so that a volume is not asked about its path
// with each file.
TEST(FolderStoreTest, TheRootStaysOpen) {
  const OnDisk place;
  place.Put("in/a", "123");
  const auto store = MakeFolderStore(DiskFiles(), {place.root() + "/in"});
  ASSERT_TRUE(store->Stat("a").value());
  std::filesystem::rename(place.root() + "/in", place.root() + "/moved");
  EXPECT_TRUE(store->Stat("a").value());
  EXPECT_TRUE(store->Open("a").ok());
}

}  // namespace
}  // namespace parallelrun::store
