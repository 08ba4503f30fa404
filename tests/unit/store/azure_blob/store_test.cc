// A container as a Store: names, versions and bytes, against a server with all of it in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/store/azure_blob/small_azure.h"

namespace parallelrun::store::azure_blob {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ReadSome(const Object& object, uint64_t offset, size_t size) {
  std::string bytes(size, '?');
  const Result<size_t> read = object.ReadAt(offset, bytes);
  EXPECT_TRUE(read.ok()) << read.error().message;
  bytes.resize(read.ok() ? *read : 0);
  return bytes;
}

// In an account with folders "Path A/dat1" is listed before "Path A-B".
// The first page has no folder in it.
const std::vector<std::string> kNames{"0",           "1",
                                      "2",           "3",
                                      "4",           "Path A-B/dat2",
                                      "Path A-C",    "Path A.C/dat3",
                                      "Path A/b/c",  "Path A/b-/d",
                                      "Path A/dat1", "Path AB.txt",
                                      "Path AB/AB",  "Path AB/dat4",
                                      "Path ABC",    "x",
                                      "y",           "z/1",
                                      "z/2",         "z/3",
                                      "z/4"};

std::vector<std::string> Sorted(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return names;
}

class AzureNamespaces : public testing::TestWithParam<bool> {
 protected:
  AzureNamespaces() {
    if (GetParam()) server_.SetHierarchical();
  }
  SmallAzure server_;
};

INSTANTIATE_TEST_SUITE_P(FlatAndHierarchical, AzureNamespaces, testing::Bool());

TEST_P(AzureNamespaces, InTheOrderOfBytesWithSizesAndVersions) {
  for (const std::string& name : kNames) server_.Put(name, name);
  const auto store = StoreAt(QuickOptions(server_));
  const AllNames all = ListAll(*store);
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.names, Sorted(kNames));
  ASSERT_EQ(all.found.size(), all.names.size());
  for (size_t i = 0; i < all.names.size(); ++i) {
    const auto stat = store->Stat(all.names[i]);
    ASSERT_TRUE(stat.ok() && *stat);
    EXPECT_EQ((*stat)->version, all.found[i].version);
    EXPECT_EQ((*stat)->size, all.found[i].size);
  }
}

TEST_P(AzureNamespaces, GoesOnBehindAnyNameAlsoOneThatIsGone) {
  for (const std::string& name : kNames) server_.Put("in/" + name, "");
  server_.Put("in.txt", "");
  const auto store = StoreAt(QuickOptions(server_, "in/"));
  const std::vector<std::string> whole = Sorted(kNames);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(ListAll(*store, whole[i]).names,
              std::vector<std::string>(whole.begin() + static_cast<ptrdiff_t>(i) + 1, whole.end()))
        << whole[i];
  }
  server_.Remove("in/Path A/b/c");
  EXPECT_EQ(ListAll(*store, "Path A/b/c").names.front(), "Path A/dat1");
}

TEST_P(AzureNamespaces, AFolderThatNobodyWantsIsPassedOver) {
  for (int i = 0; i < 20; ++i) server_.Put(fmt::format(".git/{:02}", i), "");
  for (const char* name : {"a/.git/1", "a/b/1", "a/b/2", "b/.git/x/y", "c"}) server_.Put(name, "");
  const auto store = StoreAt(QuickOptions(server_));
  Wanted wanted = Everything();
  wanted.below = [&](std::string_view folder) { return !folder.ends_with(".git"); };
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/b/1", "a/b/2", "c"));
  if (!GetParam()) return;
  for (const Heard& heard : server_.heard()) EXPECT_THAT(heard.query, Not(HasSubstr(".git%2F")));
}

TEST_P(AzureNamespaces, OddNamesComeAndGoAsTheyAre) {
  const std::vector<std::string> odd{" ", "%41", "&<>\"'", "+", "x y+z%20", "\u00fc/\u4e2d"};
  for (const std::string& name : odd) server_.Put(name, name);
  const auto store = StoreAt(QuickOptions(server_));
  EXPECT_EQ(ListAll(*store).names, odd);
  for (const std::string& name : odd) {
    const auto object = store->Open(name);
    ASSERT_TRUE(object.ok()) << name << object.error().message;
    EXPECT_EQ(ReadSome(**object, 0, 100), name);
  }
}

TEST(AzureStoreList, BlobsThatStandForFoldersAreLeftOut) {
  SmallAzure server;
  server.Put("in/a", "", true);
  for (const char* name : {"in/a/1.csv", "in/a/2.txt", "in/a-b.csv", "in/b/"}) server.Put(name, "");
  const auto store = StoreAt(QuickOptions(server, "in"));
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a-b.csv", "a/1.csv", "a/2.txt"));
  Wanted wanted = Everything();
  wanted.name = [](std::string_view name) { return name.ends_with(".csv"); };
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a-b.csv", "a/1.csv"));
}

// Also where each folder is asked for by itself.
TEST(AzureStoreList, BlobsThatEndInASlashAndHoldBytesAreTold) {
  for (const bool marker : {false, true}) {
    SmallAzure server;
    for (const char* name : {"in/", "in/a/", "in/c/d/", "in/no/x/"}) server.Put(name, "text");
    for (const char* name : {"in/a/1", "in/c/", "in/e/", "in/f"}) server.Put(name, "");
    if (marker) server.Put("in/z", "", true);
    const auto store = StoreAt(QuickOptions(server, "in"));
    std::set<std::string> told;
    Wanted wanted = Everything();
    EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/1", "f")) << "nobody asks";
    wanted.below = [](std::string_view folder) { return folder != "no"; };
    wanted.no_file = [&](std::string_view name) { told.emplace(name); };
    EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/1", "f"));
    EXPECT_THAT(told, ElementsAre("", "a/", "c/d/")) << marker;
  }
}

// Else a prefix would be taken for one object, which a hierarchical namespace has for each.
TEST_P(AzureNamespaces, WhatStandsForAFolderIsNoObject) {
  if (!GetParam()) server_.Put("in/a", "", true);
  server_.Put("in/a/1.csv", "1");
  const auto store = StoreAt(QuickOptions(server_, "in"));
  const auto stat = store->Stat("a");
  ASSERT_TRUE(stat.ok()) << stat.error().message;
  EXPECT_FALSE(*stat);
  EXPECT_EQ(store->Open("a").error().code, Code::kNotFound);
  EXPECT_TRUE(store->Stat("a/1.csv").value().has_value());
}

TEST_P(AzureNamespaces, WhatIsThereAndEmptyIsToldFromWhatIsNot) {
  server_.Put("day", "", true);  // in an account of folders an empty one
  for (const char* name : {"deep/night/", "hidden/.x", "other"}) server_.Put(name, "");
  const auto is_there = [&](const std::string& prefix) {
    const auto there = StoreAt(QuickOptions(server_, prefix))->IsThere();
    EXPECT_TRUE(there.ok()) << there.error().message;
    return *there;
  };
  for (const char* prefix : {"", "day", "day/", "deep", "deep/night", "hidden"}) {
    EXPECT_TRUE(is_there(prefix)) << prefix;
  }
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server_, "day"))).names, ElementsAre());
  for (const char* prefix : {"da", "days", "other", "day/x"}) {
    EXPECT_FALSE(is_there(prefix)) << prefix;
  }
}

TEST(AzureStoreList, AnEmptyPrefixIsEmptyAndAContainerThatIsNotThereAnError) {
  SmallAzure server;
  server.Put("a", "");
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server, "none"))).names, ElementsAre());
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server, "", "other"))).error,
              HasSubstr("there is no container other in account account at 127.0.0.1"));
}

TEST(AzureStoreList, AServerThatDoesNotKeepTheOrderIsNotBelieved) {
  const auto page = [](const std::string& name, const std::string& marker) {
    return Reply(200, fmt::format("<EnumerationResults><Blobs><Blob><Name>{}</Name><Properties>"
                                  "<Content-Length>1</Content-Length></Properties></Blob></Blobs>"
                                  "<NextMarker>{}</NextMarker></EnumerationResults>",
                                  name, marker));
  };
  SmallAzure backwards([&](PlainConnection& connection, const Heard& heard, size_t) {
    const bool first = heard.query.find("marker=") == std::string::npos;
    return connection.Write(first ? page("in/b", "m") : page("in/a", ""));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(backwards, "in"))).error,
              HasSubstr("does not list blobs in the order"));
  SmallAzure other([&](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(page("ink", ""));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(other, "in"))).error,
              HasSubstr("lists others than asked for"));
  SmallAzure circle([&](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(page("in/a", "m"));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(circle, "in"))).error,
              HasSubstr("the same page again and again"));
}

TEST(AzureStoreRead, AnyRangeAndFewerBytesOnlyAtTheEnd) {
  SmallAzure server;
  server.Put("in/a", "0123456789");
  server.Put("in/empty", "");
  const auto store = StoreAt(QuickOptions(server, "in"));
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok()) << object.error().message;
  EXPECT_EQ(ReadSome(**object, 0, 10), "0123456789");
  EXPECT_EQ(ReadSome(**object, 3, 4), "3456");
  EXPECT_EQ(ReadSome(**object, 8, 4), "89");
  EXPECT_EQ(ReadSome(**object, 10, 4), "");
  EXPECT_EQ(ReadSome(**store->Open("empty"), 0, 4), "");
  EXPECT_EQ(store->Location("a"), "abfss://container@account.dfs.core.windows.net/in/a");
  EXPECT_EQ(store->Difference(Version("a"), Version("b")), "had ETag a, has b");
}

TEST(AzureStoreRead, AnotherSizeIsAnotherVersionAlsoWhereAllObjectsHaveOneEtag) {
  SmallAzure server;
  server.PutAs("a", "12345678", "one");
  const auto store = StoreAt(QuickOptions(server));
  const Version planned = ListAll(*store).found[0].version;
  EXPECT_TRUE(store->IsStill(planned, store->Stat("a").value()->version));
  EXPECT_TRUE(store->IsStill(Version("one"), planned)) << "in the plan of an earlier release";
  EXPECT_FALSE(store->IsStill(Version("two"), planned));
  server.PutAs("a", "123456789", "one");
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok()) << object.error().message;
  const Version now = (*object)->found().version;
  EXPECT_FALSE(store->IsStill(planned, now));
  EXPECT_EQ(store->Difference(planned, now), "had 8 bytes, has 9");
  EXPECT_EQ(ReadSome(**object, 0, 9), "123456789") << "what is asked for is the ETag alone";
}

TEST(AzureStoreRead, WhatWasChangedOrDeletedMeanwhileIsToldAndNotRead) {
  SmallAzure server;
  for (const char* name : {"grown", "gone"}) server.Put(name, "12345678");
  const auto store = StoreAt(QuickOptions(server));
  const auto grown = store->Open("grown");
  const auto gone = store->Open("gone");
  server.Put("grown", "123456789");
  server.Remove("gone");
  std::string bytes(2, '?');
  Error error = (*grown)->ReadAt(0, bytes).error();
  EXPECT_EQ(error.code, Code::kStale);
  EXPECT_EQ(error.message,
            "abfss://container@account.dfs.core.windows.net/grown was changed since it was opened: "
            "it had 8 bytes, ETag 0x1; has 9 bytes, ETag 0x3");
  error = (*gone)->ReadAt(0, bytes).error();
  EXPECT_EQ(error.code, Code::kStale);
  EXPECT_EQ(error.message,
            "abfss://container@account.dfs.core.windows.net/gone was deleted since it was opened");
}

TEST(AzureStoreRead, WhatIsNotThere) {
  SmallAzure server;
  const auto store = StoreAt(QuickOptions(server));
  const auto stat = store->Stat("a");
  ASSERT_TRUE(stat.ok()) << stat.error().message;
  EXPECT_FALSE(*stat);
  const auto object = store->Open("a");
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().code, Code::kNotFound);
  EXPECT_EQ(object.error().message,
            "abfss://container@account.dfs.core.windows.net/a: there is no such object");
}

}  // namespace
}  // namespace parallelrun::store::azure_blob
