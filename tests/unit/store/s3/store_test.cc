// A bucket as a Store: names, versions and bytes, against a server with all of it in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ReadSome(Object& object, uint64_t offset, size_t size) {
  std::string bytes(size, '?');
  const Result<size_t> read = object.ReadAt(offset, bytes);
  EXPECT_TRUE(read.ok()) << read.error().message;
  bytes.resize(read.ok() ? *read : 0);
  return bytes;
}

Error ReadError(Object& object) {
  std::string bytes(2, '?');
  const Result<size_t> read = object.ReadAt(0, bytes);
  EXPECT_FALSE(read.ok());
  return read.ok() ? Error{} : read.error();
}

TEST(S3StoreList, InTheOrderOfBytesWithSizesAndVersions) {
  SmallS3 server;
  for (const char* key : {"a", "a/b", "a-b", "a.b", "a0", "A", "a/b/c"}) server.Put(key, key);
  const auto store = StoreAt(QuickOptions(server));
  const AllNames all = ListAll(*store);
  EXPECT_EQ(all.error, "");
  EXPECT_THAT(all.names, ElementsAre("A", "a", "a-b", "a.b", "a/b", "a/b/c", "a0"));
  ASSERT_EQ(all.found.size(), 7u);
  EXPECT_EQ(all.found[5].size, 5u);
  for (size_t i = 0; i < all.names.size(); ++i) {
    const auto stat = store->Stat(all.names[i]);
    ASSERT_TRUE(stat.ok() && *stat);
    EXPECT_EQ((*stat)->version, all.found[i].version);
    EXPECT_EQ((*stat)->size, all.found[i].size);
  }
}

TEST(S3StoreList, GoesOnBehindAnyNameAlsoOneThatIsGone) {
  SmallS3 server;
  for (const char* key : {"in/a", "in/b/1", "in/b/2", "in/c", "in/d", "out/e"}) server.Put(key, "");
  const auto store = StoreAt(QuickOptions(server, "s3://bucket/in/"));
  const std::vector<std::string> whole = ListAll(*store).names;
  EXPECT_THAT(whole, ElementsAre("a", "b/1", "b/2", "c", "d"));
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(ListAll(*store, whole[i]).names,
              std::vector<std::string>(whole.begin() + static_cast<ptrdiff_t>(i) + 1, whole.end()));
  }
  server.Remove("in/b/2");
  EXPECT_THAT(ListAll(*store, "b/2").names, ElementsAre("c", "d"));
}

TEST(S3StoreList, OddNamesComeAndGoAsTheyAre) {
  SmallS3 server;
  const std::vector<std::string> odd{" ",    "%41",      "&<>\"'",       "+",
                                     "a\nb", "x y+z%20", "\u00fc/\u4e2d"};
  for (const std::string& name : odd) server.Put(name, name);
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_EQ(ListAll(*store).names, odd);
  for (const std::string& name : odd) {
    const auto object = store->Open(name);
    ASSERT_TRUE(object.ok()) << name << object.error().message;
    EXPECT_EQ(ReadSome(**object, 0, 100), name);
  }
}

TEST(S3StoreList, FolderMarkersAndWhatIsNotWantedAreLeftOut) {
  SmallS3 server;
  for (const char* key : {"in/", "in/a/", "in/a/1.csv", "in/a/2.txt", "in/b.csv"})
    server.Put(key, "");
  const auto store = StoreAt(QuickOptions(server, "s3://bucket/in"));
  Wanted wanted = Everything();
  wanted.name = [](std::string_view name) { return name.ends_with(".csv"); };
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/1.csv", "b.csv"));
}

// Somebody has written them: they were passed over without a word, as marks of folders.
TEST(S3StoreList, KeysThatEndInASlashAndHoldBytesAreTold) {
  SmallS3 server;
  for (const char* key : {"in/", "in/a/", "in/b//", "in/c/d/", "in/no/x/"}) server.Put(key, "text");
  for (const char* key : {"in/a/1", "in/c/", "in/e/", "in/f"}) server.Put(key, "");
  const auto store = StoreAt(QuickOptions(server, "s3://bucket/in"));
  std::vector<std::string> told;
  Wanted wanted = Everything();
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/1", "f")) << "nobody asks";
  wanted.below = [](std::string_view folder) { return folder != "no"; };
  wanted.no_file = [&](std::string_view name) { told.emplace_back(name); };
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/1", "f"));
  EXPECT_THAT(told, ElementsAre("", "a/", "b//", "c/d/"));
}

TEST(S3StoreList, AFolderThatNobodyWantsIsPassedOver) {
  SmallS3 server;
  for (int i = 0; i < 50; ++i) server.Put(fmt::format(".git/{:02}", i), "");
  for (const char* key : {"a/.git/1", "a/b/1", "a/b/2", "b/.git/x/y", "c"}) server.Put(key, "");
  const auto store = StoreAt(QuickOptions(server));
  std::vector<std::string> asked;
  Wanted wanted = Everything();
  wanted.below = [&](std::string_view folder) {
    asked.emplace_back(folder);
    return !folder.ends_with(".git");
  };
  EXPECT_THAT(ListAll(*store, "", wanted).names, ElementsAre("a/b/1", "a/b/2", "c"));
  // Of each folder once, and of those 50 keys a page of three.
  EXPECT_THAT(asked, ElementsAre(".git", "a", "a/.git", "a/b", "b", "b/.git"));
  EXPECT_LE(server.heard().size(), 4u);
}

// The mark by which a console makes a folder is listed by nobody, and says that the folder is
// there.
TEST(S3StoreList, WhatIsThereAndEmptyIsToldFromWhatIsNot) {
  SmallS3 server;
  for (const char* key : {"day/", "deep/night/", "hidden/.x", "other"}) server.Put(key, "");
  const auto is_there = [&](const std::string& url) {
    const auto there = StoreAt(QuickOptions(server, url))->IsThere();
    EXPECT_TRUE(there.ok()) << there.error().message;
    return *there;
  };
  for (const char* prefix : {"day", "day/", "deep", "deep/night", "hidden"}) {
    EXPECT_TRUE(is_there(std::string("s3://bucket/") + prefix)) << prefix;
  }
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server, "s3://bucket/day"))).names, ElementsAre());
  for (const char* prefix : {"da", "days", "other", "day/x"}) {
    EXPECT_FALSE(is_there(std::string("s3://bucket/") + prefix)) << prefix;
  }
  SmallS3 empty;
  EXPECT_TRUE(StoreAt(QuickOptions(empty))->IsThere().value()) << "a bucket that answers";
  EXPECT_EQ(StoreAt(QuickOptions(empty, "s3://other"))->IsThere().error().code, Code::kNotFound);
}

TEST(S3StoreList, AnEmptyPrefixIsEmptyAndABucketThatIsNotThereAnError) {
  SmallS3 server;
  server.Put("a", "");
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server, "s3://bucket/none"))).names, ElementsAre());
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server, "s3://other"))).error,
              HasSubstr("there is no bucket other at 127.0.0.1"));
}

TEST(S3StoreList, AServerThatDoesNotKeepTheOrderIsNotBelieved) {
  const auto page = [](const std::string& keys) {
    return SmallS3::Reply(200, "<ListBucketResult>" + keys + "</ListBucketResult>");
  };
  const auto key = [](const char* name) {
    return fmt::format("<Contents><Key>{}</Key><Size>0</Size></Contents>", name);
  };
  for (const std::string& keys :
       {key("in/b") + key("in/a"), key("in/a") + key("in/a"), key("ink")}) {
    SmallS3 server([&](PlainConnection& connection, const Heard&, size_t) {
      return connection.Write(page(keys));
    });
    const auto store = StoreAt(QuickOptions(server, "s3://bucket/in"));
    EXPECT_THAT(ListAll(*store).error, HasSubstr("does not list keys in the order")) << keys;
  }
}

// 100 pages, of folders and beside them.
std::vector<std::string> PutMany(SmallS3& server) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(fmt::format("{}/{:03}", "abc"[i / 100], i));
  for (const std::string& key : keys) server.Put(key, key);
  return keys;
}

// Lets a request that only who lists one page after the other would send wait for one that is sent
// ahead: behind what is no key of PutMany.
class Ahead {
 public:
  // Whether this one is sent ahead.
  bool Is(const Heard& heard, size_t number) {
    const std::string after = QueryParameter(heard.query, "start-after").value_or("");
    std::unique_lock lock(mutex_);
    if (!after.empty() && (after.size() != 5 || after[1] != '/')) {
      met_ = true;
      changed_.notify_all();
      return true;
    }
    if (number > 4) Wait(lock);
    return false;
  }
  bool Met() {
    std::unique_lock lock(mutex_);
    return Wait(lock);
  }

 private:
  bool Wait(std::unique_lock<std::mutex>& lock) {
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return met_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool met_ = false;
};

TEST(S3StoreList, OfALongListingSeveralPagesAreAskedForAtOnce) {
  Ahead ahead;
  SmallS3 server([&](PlainConnection&, const Heard& heard, size_t number) {
    ahead.Is(heard, number);
    return false;
  });
  const std::vector<std::string> keys = PutMany(server);
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_EQ(ListAll(*store).names, keys);
  EXPECT_TRUE(ahead.Met());
  EXPECT_EQ(ListAll(*store, keys[123]).names,
            std::vector<std::string>(keys.begin() + 124, keys.end()));
}

// Whoever lists page by page is not refused: so nobody is who would list several at once.
TEST(S3StoreList, WhatIsRefusedAheadIsAskedForWhenItIsItsTurn) {
  Ahead ahead;
  std::mutex mutex;
  std::set<std::string> refused;
  SmallS3 server([&](PlainConnection& connection, const Heard& heard, size_t number) {
    if (!ahead.Is(heard, number)) return false;
    const std::lock_guard lock(mutex);
    if (!refused.insert(heard.query).second) return false;  // the second time it is answered
    return connection.Write(SmallS3::Reply(403, SmallS3::ErrorXml("AccessDenied")));
  });
  const std::vector<std::string> keys = PutMany(server);
  const AllNames all = ListAll(*StoreAt(QuickOptions(server)));
  EXPECT_EQ(all.error, "");
  EXPECT_EQ(all.names, keys);
  EXPECT_FALSE(refused.empty());
}

TEST(S3StoreList, TheEndOfAListingEndsTheWaitsOfWhatWasAskedForAhead) {
  Ahead ahead;
  SmallS3 server([&](PlainConnection& connection, const Heard& heard, size_t number) {
    return ahead.Is(heard, number) &&
           connection.Write(SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown")));
  });
  PutMany(server);
  StoreOptions options = QuickOptions(server);
  options.limits.shortest = options.limits.longest = std::chrono::hours(24);
  options.limits.in_all = std::chrono::hours(24 * 365);
  const auto store = StoreAt(options);
  auto listing = store->List(Everything(), "");
  ASSERT_TRUE(listing.ok());
  for (int i = 0; i < 13; ++i) ASSERT_TRUE((*listing)->Next().ok());
  ASSERT_TRUE(ahead.Met());
  listing->reset();
}

TEST(S3StoreRead, AnyRangeAndFewerBytesOnlyAtTheEnd) {
  SmallS3 server;
  server.Put("in/a", "0123456789");
  server.Put("in/empty", "");
  const auto store = StoreAt(QuickOptions(server, "s3://bucket/in"));
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok()) << object.error().message;
  EXPECT_EQ((*object)->found().size, 10u);
  EXPECT_EQ(ReadSome(**object, 0, 10), "0123456789");
  EXPECT_EQ(ReadSome(**object, 3, 4), "3456");
  EXPECT_EQ(ReadSome(**object, 8, 4), "89");
  EXPECT_EQ(ReadSome(**object, 10, 4), "");
  EXPECT_EQ(ReadSome(**object, UINT64_MAX, 4), "");
  EXPECT_EQ(ReadSome(**object, 0, 0), "");
  EXPECT_EQ(ReadSome(**store->Open("empty"), 0, 4), "");
  EXPECT_EQ(store->Location("a"), "s3://bucket/in/a");
  EXPECT_EQ(store->Difference(Version("a"), Version("b")), "had ETag a, has b");
}

TEST(S3StoreRead, AnotherSizeIsAnotherVersionAlsoWhereAllObjectsHaveOneEtag) {
  SmallS3 server;
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

TEST(S3StoreRead, WhatWasChangedOrDeletedMeanwhileIsToldAndNotRead) {
  SmallS3 server;
  for (const char* key : {"grown", "same", "gone"}) server.Put(key, "12345678");
  const auto store = StoreAt(QuickOptions(server));
  const auto grown = store->Open("grown");
  const auto same = store->Open("same");
  const auto gone = store->Open("gone");
  server.Put("grown", "123456789");
  server.Put("same", "abcdefgh");
  server.Remove("gone");
  Error error = ReadError(**grown);
  EXPECT_EQ(error.code, Code::kStale);
  EXPECT_THAT(error.message,
              testing::MatchesRegex("s3://bucket/grown was changed since it was opened: "
                                    "it had 8 bytes, ETag .*; has 9 bytes, ETag .*"));
  error = ReadError(**same);
  EXPECT_EQ(error.code, Code::kStale);
  EXPECT_THAT(error.message, HasSubstr("s3://bucket/same was changed"));
  error = ReadError(**gone);
  EXPECT_EQ(error.code, Code::kStale);
  EXPECT_EQ(error.message, "s3://bucket/gone was deleted since it was opened");
}

// A small object took two round trips, of which the first only told what the plan knows.
TEST(S3StoreRead, AVersionThatIsKnownIsReadWithoutALook) {
  SmallS3 server;
  server.Put("in/a", "0123456789");
  server.Put("in/empty", "");
  const auto store = StoreAt(QuickOptions(server, "s3://bucket/in"));
  const AllNames all = ListAll(*store);
  ASSERT_THAT(all.names, ElementsAre("a", "empty"));
  const size_t before = server.heard().size();
  const auto object = store->OpenUnseen("a", all.found[0].version);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->found().size, 10u);
  EXPECT_EQ(server.heard().size(), before);
  EXPECT_EQ(ReadSome(*object, 0, 100), "0123456789");
  EXPECT_EQ(ReadSome(*object, 8, 100), "89");
  const std::vector<Heard> heard = server.heard();
  ASSERT_EQ(heard.size(), before + 2);
  for (size_t i = before; i < heard.size(); ++i) EXPECT_EQ(heard[i].method, "GET");
  EXPECT_FALSE(store->OpenUnseen("empty", all.found[1].version)) << "nobody reads anything of it";
  EXPECT_FALSE(store->OpenUnseen("a", Version("etag"))) << "as earlier releases planned it";
}

TEST(S3StoreRead, AVersionThatIsThereNoMoreIsToldWithoutALookToo) {
  SmallS3 server;
  for (const char* key : {"changed", "gone"}) server.Put(key, "12345678");
  // All objects of some servers have one ETag.
  for (const char* key : {"emptied", "grown", "shrunk"}) server.PutAs(key, "12345678", "one");
  const auto store = StoreAt(QuickOptions(server));
  const AllNames all = ListAll(*store);
  ASSERT_THAT(all.names, ElementsAre("changed", "emptied", "gone", "grown", "shrunk"));
  server.Put("changed", "abcdefgh");
  server.PutAs("emptied", "", "one");
  server.PutAs("grown", "123456789", "one");
  server.PutAs("shrunk", "1234", "one");
  server.Remove("gone");
  for (size_t i = 0; i < all.names.size(); ++i) {
    const auto object = store->OpenUnseen(all.names[i], all.found[i].version);
    ASSERT_TRUE(object) << all.names[i];
    std::string bytes(8, '?');
    const size_t before = server.heard().size();
    const Result<size_t> read = object->ReadAt(0, bytes);
    ASSERT_FALSE(read.ok()) << all.names[i];
    EXPECT_EQ(read.error().code, Code::kStale) << read.error().message;
    EXPECT_THAT(read.error().message, HasSubstr("since it was opened")) << all.names[i];
    EXPECT_LE(server.heard().size(), before + 2) << "what would give the same is not repeated";
  }
}

TEST(S3StoreRead, WhatIsNotThere) {
  SmallS3 server;
  const auto store = StoreAt(QuickOptions(server));
  const auto stat = store->Stat("a");
  ASSERT_TRUE(stat.ok()) << stat.error().message;
  EXPECT_FALSE(*stat);
  const auto object = store->Open("a");
  ASSERT_FALSE(object.ok());
  EXPECT_EQ(object.error().code, Code::kNotFound);
  EXPECT_EQ(object.error().message, "s3://bucket/a: there is no such object");
}

TEST(S3StoreRead, AServerThatDoesNotKnowRangesGivesNoWrongBytes) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    return heard.method == "GET" && connection.Write(SmallS3::Reply(200, "0123456789"));
  });
  server.Put("a", "0123456789");
  const auto store = StoreAt(QuickOptions(server));
  const auto object = store->Open("a");
  EXPECT_EQ(ReadSome(**object, 0, 100), "0123456789");
  std::string bytes(5, '?');
  for (const uint64_t offset : {0, 5}) {
    const Result<size_t> read = (*object)->ReadAt(offset, bytes);
    ASSERT_FALSE(read.ok()) << offset;
    EXPECT_THAT(read.error().message, HasSubstr("(Range)"));
  }
}

TEST(S3StoreRead, AnObjectWithoutAnETagCannotBePinned) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write("HTTP/1.1 200 X\r\nContent-Length: 3\r\n\r\n");
  });
  const auto stat = StoreAt(QuickOptions(server))->Stat("a");
  ASSERT_FALSE(stat.ok());
  EXPECT_THAT(stat.error().message, HasSubstr("no ETag"));
}

}  // namespace
}  // namespace parallelrun::store::s3
