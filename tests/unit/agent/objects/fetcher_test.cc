// Objects of a store on a disk that hangs: what that holds up, and what it does not.
#include "agent/objects/fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "agent/objects/parts.h"
#include "job/record_codec.h"
#include "job/records.h"
#include "job/work.h"
#include "job/work_objects.h"
#include "store/objects/object_version.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLong = seconds(60);  // ends a test that hangs
constexpr uint64_t kRoom = 1 << 20;      // for all that is small

// Of the first byte that is read; an error takes the place of the bytes.
using OnRead = std::function<Status(uint64_t offset)>;

// Gives objects that were not looked at, as buckets do; each read looks.
class UnseenObject final : public store::Object {
 public:
  UnseenObject(store::Store& store, std::string name, store::Found found, const OnRead& on_read)
      : store_(store), name_(std::move(name)), found_(std::move(found)), on_read_(on_read) {}

  const store::Found& found() const override { return found_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    if (const Status may = on_read_ ? on_read_(offset) : Status(); !may.ok()) return may.error();
    const auto now = store_.Open(name_);
    if (!now.ok() || (*now)->found().version != found_.version) {
      return Error{Code::kStale, name_ + " was changed since it was opened"};
    }
    return (*now)->ReadAt(offset, to);
  }

 private:
  store::Store& store_;
  const std::string name_;
  const store::Found found_;
  const OnRead& on_read_;
};

// Counts what it is asked before anything is read.
class UnseenStore final : public store::Store {
 public:
  UnseenStore(std::unique_ptr<store::Store> store, uint64_t size, std::atomic<int>& looks,
              const OnRead& on_read, const std::atomic<uint64_t>& throttled)
      : store_(std::move(store)),
        size_(size),
        looks_(looks),
        on_read_(on_read),
        throttled_(throttled) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    return store_->List(std::move(wanted), after);
  }
  Result<bool> IsThere() override { return store_->IsThere(); }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    ++looks_;
    return store_->Stat(name);
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    ++looks_;
    return store_->Open(name);
  }
  std::unique_ptr<store::Object> OpenUnseen(const std::string& name,
                                            const store::Version& version) override {
    return std::make_unique<UnseenObject>(*store_, name, store::Found{size_, version}, on_read_);
  }
  std::string Location(std::string_view name) const override { return store_->Location(name); }
  Result<std::string> RealRoot() override { return store_->RealRoot(); }
  std::string Difference(const store::Version& was, const store::Version& is) const override {
    return store_->Difference(was, is);
  }
  store::Version AsBefore(const store::Version& version) const override {
    return store_->AsBefore(version);
  }
  store::AnswerCounts CountAnswers() const override { return {throttled_, throttled_}; }

 private:
  const std::unique_ptr<store::Store> store_;
  const uint64_t size_;  // of all its objects
  std::atomic<int>& looks_;
  const OnRead& on_read_;
  const std::atomic<uint64_t>& throttled_;
};

class ObjectFetcherTest : public ::testing::Test {
 protected:
  ObjectFetcherTest() { EXPECT_TRUE(disk_->MakeFolders("/work").ok()); }
  ~ObjectFetcherTest() override { disk_->Hang(""); }

  void Begin(uint64_t cache_bytes) {
    JobStore store;
    store.urls = urls_;
    store.name = "bucket";
    store.wished.url = "memory://bucket";
    JobStore other;
    other.name = "other";
    other.wished.url = "memory://other";
    fetcher_ = std::make_unique<ObjectFetcher>(
        loop_, disk_, "/work/objects-0", std::vector<JobStore>{store, other}, cache_bytes,
        [this, objects = objects_](const JobStore& of, std::stop_token stop) {
          if (of.name == "other") return Result(objects->Open("memory://other", std::move(stop)));
          if (gone_) {
            return Result<std::unique_ptr<store::Store>>(
                Error{Code::kUnavailable, "memory://bucket: connection refused"});
          }
          std::unique_ptr<store::Store> opened = objects->Open("memory://bucket", std::move(stop));
          if (unseen_ == 0) return Result(std::move(opened));
          return Result<std::unique_ptr<store::Store>>(std::make_unique<UnseenStore>(
              std::move(opened), unseen_, looks_, on_read_, throttled_));
        },
        [this](Key key, Result<std::string> work) {
          ended_.insert_or_assign(key, std::move(work));
          if (key == awaited_) loop_.Stop();
        },
        [this](Key key) {
          if (asks_.insert(key).second) loop_.Stop();
        });
  }
  void Put(const std::string& name, size_t bytes) {
    objects_->Put("memory://bucket/" + name, std::string(bytes, name[0]));
  }
  std::string VersionOf(const std::string& name) {
    const auto opened = objects_->Open("memory://bucket")->Open(name);
    return std::string((*opened)->found().version.bytes());
  }
  // Work of one file.
  std::string WorkOf(const std::string& name) { return WorkOf(name, VersionOf(name)); }
  static std::string WorkOf(const std::string& name, const std::string& version,
                            const std::string& store = "bucket") {
    const std::string root = "memory://" + store;
    job::FilesChunk files{1, root, name, {}};
    files.versions = {version};
    std::string record;
    job::EncodeRecord(job::PlanChunkRecord{0, 1, 0, files, store}, record);
    return job::WorkMaker::FromRecord(std::move(record))->Make(0);
  }
  void Want(Key key, const std::string& name) { fetcher_->Want(key, WorkOf(name)); }
  // Until that mini-batch has its objects, or has none.
  const Result<std::string>& Await(Key key) {
    awaited_ = key;
    const auto timer = loop_.After(kLong, [this] { loop_.Stop(); });
    if (!ended_.contains(key)) loop_.Run();
    loop_.Cancel(timer);
    return ended_.try_emplace(key, Error{Code::kTimeout, "nothing came of it"}).first->second;
  }

  // Until it is so, as another thread will see to.
  static void Yield(const std::function<bool()>& until) {
    const auto end = std::chrono::steady_clock::now() + kLong;
    while (!until() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  }
  // Wants 1 to `count` of a store that is known to throttle. What reads of it comes back once it is
  // open_.
  void WantWhereItThrottles(Key count) {
    unseen_ = 10;
    throttled_ = 1;
    on_read_ = [this](uint64_t) {
      const int now = ++reading_;
      for (int before = most_; before < now && !most_.compare_exchange_weak(before, now);) continue;
      Yield([this] { return open_.load(); });
      --reading_;
      return Status();
    };
    Begin(kRoom);
    Put("0", 10);
    Want(100, "0");
    ASSERT_TRUE(Await(100).ok());
    open_ = false;
    for (Key key = 1; key <= count; ++key) {
      Put(std::to_string(key), 10);
      Want(key, std::to_string(key));
    }
  }

  EventLoop loop_;
  std::shared_ptr<FaultFiles> disk_ = std::make_shared<FaultFiles>();
  std::shared_ptr<MemoryObjects> objects_ = std::make_shared<MemoryObjects>();
  std::atomic<uint64_t> throttled_ = 0;  // answers of objects that need no look
  OnRead on_read_;  // of objects that need no look; from before Begin on, on any thread
  std::atomic<bool> open_ = true;
  std::atomic<int> reading_ = 0;  // now, and at most so far
  std::atomic<int> most_ = 0;
  std::unique_ptr<ObjectFetcher> fetcher_;
  std::atomic<bool> gone_ = false;  // the store
  uint64_t unseen_ = 0;             // the size of all objects, which need no look; 0: each does
  std::atomic<int> looks_ = 0;
  std::shared_ptr<store::UrlTable> urls_;  // where it is read by URLs
  std::set<Key> asks_;                     // for URLs
  Key awaited_ = 0;
  std::map<Key, Result<std::string>> ended_;
};

TEST_F(ObjectFetcherTest, ObjectsBecomeFilesUntilItsEnd) {
  Put("a", 10);
  Begin(kRoom);
  Want(1, "a");
  const Result<std::string>& work = Await(1);
  ASSERT_TRUE(work.ok()) << work.error().message;
  EXPECT_THAT(*work, HasSubstr("/work/objects-0"));
  EXPECT_EQ(disk_->Contents("/work/objects-0/1/a"), "aaaaaaaaaa");
  EXPECT_TRUE(fetcher_->Finish(kLong));
  EXPECT_EQ(disk_->List("/work")->size(), 0U);
}

TEST_F(ObjectFetcherTest, AFileWhoseRemovalHangsHoldsUpOnlyWhatWaitsForItsRoom) {
  Put("a", 6 * 4096);
  Put("b", 4 * 4096);
  Put("c", 6 * 4096);
  Begin(12 * 4096);  // and a block for the folder of each
  Want(1, "a");
  ASSERT_TRUE(Await(1).ok());
  Want(2, "b");
  ASSERT_TRUE(Await(2).ok());
  fetcher_->LetGo(1);
  disk_->Hang("/work/objects-0/1");
  Want(3, "c");
  disk_->AwaitHanging();
  // The loop's calls come back, and who needs no room of it is served.
  Want(4, "b");
  EXPECT_TRUE(Await(4).ok());
  fetcher_->LetGo(4);
  EXPECT_FALSE(ended_.contains(3));
  disk_->Hang("");
  EXPECT_TRUE(Await(3).ok());
  EXPECT_FALSE(disk_->Has("/work/objects-0/1/a"));
}

TEST_F(ObjectFetcherTest, AStoreThatWentAwayIsToldUntilItAnswers) {
  Put("a", 10);
  gone_ = true;
  Begin(kRoom);
  EXPECT_EQ(fetcher_->WaitsFor(), "");
  Want(1, "a");
  Yield([this] { return !fetcher_->WaitsFor().empty(); });
  EXPECT_THAT(fetcher_->WaitsFor(),
              testing::AllOf(HasSubstr("the store memory://bucket has given nothing since "),
                             HasSubstr("; its last answer: memory://bucket: connection refused")));
  gone_ = false;
  EXPECT_TRUE(Await(1).ok());
  EXPECT_EQ(fetcher_->WaitsFor(), "");
}

TEST_F(ObjectFetcherTest, AKeyThatCannotBeAFileIsNamedWithWhatToDo) {
  Begin(kRoom);
  Key key = 0;
  for (const std::string& name : {std::string("a//b"), std::string("a/../b"), std::string("./a"),
                                  std::string("a/."), "a/" + std::string(256, 'n') + "/b"}) {
    Put(name, 10);
    Want(++key, name);
    ASSERT_FALSE(Await(key).ok()) << name;
    EXPECT_EQ(Await(key).error().code, Code::kInvalid) << name;
    EXPECT_EQ(Await(key).error().message,
              "memory://bucket/" + name +
                  ": its key cannot be the name of a file: copy the object to another key, or "
                  "leave it out with exclude");
  }
  const std::string longest = std::string(255, 'n') + "/b";
  Put(longest, 10);
  Want(++key, longest);
  EXPECT_TRUE(Await(key).ok());
}

TEST_F(ObjectFetcherTest, WhatThePlanKnowsIsAskedOfNobody) {
  Put("a", 10);
  Put("b", 10);
  unseen_ = 10;
  Begin(kRoom);
  Want(1, "a");
  ASSERT_TRUE(Await(1).ok()) << Await(1).error().message;
  EXPECT_EQ(disk_->Contents("/work/objects-0/1/a"), "aaaaaaaaaa");
  EXPECT_EQ(looks_, 0);
  // Only where it is another one by now: the message says how it differs from what was listed.
  const std::string work = WorkOf("b");
  Put("b", 10);
  fetcher_->Want(2, work);
  ASSERT_FALSE(Await(2).ok());
  EXPECT_EQ(Await(2).error().code, Code::kStale);
  EXPECT_THAT(Await(2).error().message,
              HasSubstr("memory://bucket/b is not what was listed: it was put 2, is put 3. Do "));
  EXPECT_EQ(looks_, 1);
}

// What a URL that has ended holds up is handed back, and leased again with another one.
TEST_F(ObjectFetcherTest, WithoutAUrlThatCountsAMiniBatchEndsAndWithOneItWaits) {
  urls_ = std::make_shared<store::UrlTable>();
  Put("a", 10);
  gone_ = true;
  Begin(kRoom);
  job::ObjectUrls none;
  none.why = "the keys have ended";
  fetcher_->TakeUrls(1, none);
  Want(1, "a");
  const Result<std::string>& ended = Await(1);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kUnavailable);
  EXPECT_THAT(ended.error().message, HasSubstr("it said: the keys have ended"));
  fetcher_->LetGo(1);

  job::ObjectUrls some;
  some.seconds = 3600;
  some.urls = {"https://s3/bucket/a?X-Amz-Signature=1"};
  fetcher_->TakeUrls(2, some);
  Want(2, "a");
  Yield([this] { return !fetcher_->WaitsFor().empty(); });
  EXPECT_THAT(fetcher_->WaitsFor(), testing::Not(HasSubstr("X-Amz-")));
  EXPECT_FALSE(ended_.contains(2)) << "a store that is away is asked again";
  gone_ = false;
  ASSERT_TRUE(Await(2).ok());
  EXPECT_THAT(*Await(2), testing::Not(HasSubstr("X-Amz-"))) << "the script reads it";
}

TEST_F(ObjectFetcherTest, OneWhoseUrlHasEndedAsksForAnotherAndGoesOn) {
  urls_ = std::make_shared<store::UrlTable>();
  Put("a", 10);
  gone_ = true;  // as a store without a URL is
  Begin(kRoom);
  job::ObjectUrls ended;
  ended.urls = {"https://s3/bucket/a?X-Amz-Signature=1"};  // for 0 seconds
  fetcher_->TakeUrls(1, ended);
  Want(1, "a");
  bool late = false;
  const auto timer = loop_.After(kLong, [&] {
    late = true;
    loop_.Stop();
  });
  while (asks_.empty() && !late) loop_.Run();
  loop_.Cancel(timer);
  EXPECT_TRUE(asks_.contains(1));
  EXPECT_FALSE(ended_.contains(1)) << "it is not handed back";
  job::ObjectUrls others = ended;
  others.seconds = 3600;
  gone_ = false;
  fetcher_->TakeUrls(1, others);
  EXPECT_TRUE(Await(1).ok()) << Await(1).error().message;
}

TEST_F(ObjectFetcherTest, AVersionAsAnEarlierReleaseHasPlannedIt) {
  for (const char* name : {"a", "b"}) Put(name, 10);
  Begin(kRoom);
  fetcher_->Want(1, WorkOf("a", "earlier " + VersionOf("a")));
  EXPECT_TRUE(Await(1).ok());
  const std::string before = "earlier " + VersionOf("b");
  Put("b", 10);
  fetcher_->Want(2, WorkOf("b", before));
  ASSERT_FALSE(Await(2).ok());
  EXPECT_EQ(Await(2).error().code, Code::kStale);
}

// A manifest may name what is not there yet.
TEST_F(ObjectFetcherTest, WhatWasNotThereWhenItWasPlannedIsTakenOnceItIs) {
  Put("a", 10);
  const std::string work = WorkOf("a", std::string(store::kNoObject));
  objects_->Remove("memory://bucket/a");
  Begin(kRoom);
  fetcher_->Want(1, work);
  ASSERT_FALSE(Await(1).ok());
  EXPECT_EQ(Await(1).error().code, Code::kStale);
  EXPECT_THAT(Await(1).error().message,
              HasSubstr("memory://bucket/a is not there, though the manifest names it: put it "
                        "there, and continue the run with --retry-failed"));
  Put("a", 3);
  fetcher_->Want(2, work);
  ASSERT_TRUE(Await(2).ok()) << Await(2).error().message;
}

// In the plans of earlier releases the versions of such objects may all be one.
TEST_F(ObjectFetcherTest, ATableOfAnotherSizeIsAnotherOne) {
  Put("a", 10);
  Begin(kRoom);
  const std::string version = VersionOf("a");
  for (const uint64_t size : {10U, 11U}) {
    const job::TabularChunk table{"memory://bucket/a", size, version, "x\n", "{}", {{0, 5, 1}}};
    std::string record;
    job::EncodeRecord(job::PlanChunkRecord{0, 0, 0, table, "bucket"}, record);
    fetcher_->Want(size, job::WorkMaker::FromRecord(std::move(record))->Make(0));
    EXPECT_EQ(Await(size).ok(), size == 10) << size;
  }
  EXPECT_EQ(Await(11).error().code, Code::kStale);
  EXPECT_THAT(Await(11).error().message,
              HasSubstr("memory://bucket/a is not what was listed: it had 11 bytes, has 10. Do "));
}

// The cache has no room for the object, and need not have any: a block of each slice and one
// of its folder are all.
TEST_F(ObjectFetcherTest, OfALargeTableItsSliceIsFetched) {
  constexpr uint64_t kSize = (uint64_t{16} << 20) + 100;
  Put("a", kSize);
  Begin(4 * 4096);
  const job::TabularChunk table{"memory://bucket/a",           kSize, VersionOf("a"), "x\n", "{}",
                                {{1000, 60, 1}, {1060, 30, 1}}};
  std::string record;
  job::EncodeRecord(job::PlanChunkRecord{0, 0, 0, table, "bucket"}, record);
  const auto maker = job::WorkMaker::FromRecord(std::move(record));
  fetcher_->Want(1, maker->Make(0));
  ASSERT_TRUE(Await(1).ok()) << Await(1).error().message;
  EXPECT_EQ(disk_->Contents("/work/objects-0/1/a"), std::string(1000, '\0') + std::string(60, 'a'));
  fetcher_->Want(2, maker->Make(1));
  ASSERT_TRUE(Await(2).ok()) << Await(2).error().message;
  EXPECT_EQ(disk_->Contents("/work/objects-0/2/a"), std::string(1060, '\0') + std::string(30, 'a'));
}

constexpr uint64_t kThreeParts = 2 * Parts::kBytes + 100;

// In which no two parts have the same bytes.
std::string LongText() {
  std::string text(kThreeParts, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i / 1000 % 26);
  return text;
}

TEST_F(ObjectFetcherTest, TheRangesOfALargeObjectAreReadAtOnce) {
  const std::string text = LongText();
  objects_->Put("memory://bucket/in/a", text);
  unseen_ = text.size();
  std::latch all(3);
  std::atomic<bool> together = true;
  on_read_ = [&](uint64_t) {
    all.count_down();
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (!all.try_wait()) {
      if (std::chrono::steady_clock::now() > until) return together = false, Status();
      std::this_thread::yield();
    }
    return Status();
  };
  Begin(2 * kThreeParts);
  Want(1, "in/a");
  ASSERT_TRUE(Await(1).ok()) << Await(1).error().message;
  EXPECT_TRUE(together);
  EXPECT_TRUE(disk_->Contents("/work/objects-0/1/in/a") == text);
  EXPECT_EQ(looks_, 0);
}

// 16 are read at once else.
TEST_F(ObjectFetcherTest, OfAStoreThatThrottlesHalfAsManyAreReadAtOnce) {
  constexpr int kHalf = 8;
  WantWhereItThrottles(20);
  Yield([this] { return most_ >= kHalf; });
  open_ = true;
  for (Key key = 1; key <= 20; ++key) EXPECT_TRUE(Await(key).ok()) << key;
  EXPECT_EQ(most_, kHalf);
}

// One figure for all would be used up by what hangs.
TEST_F(ObjectFetcherTest, AStoreThatThrottlesHoldsUpNothingOfAnother) {
  WantWhereItThrottles(40);
  Yield([this] { return reading_ >= 8; });
  const auto of_other = objects_->Open("memory://other");
  for (Key key = 41; key <= 60; ++key) {
    const std::string name = std::to_string(key);
    objects_->Put("memory://other/" + name, name);
    const auto opened = of_other->Open(name);
    const std::string version((*opened)->found().version.bytes());
    fetcher_->Want(key, WorkOf(name, version, "other"));
  }
  for (Key key = 41; key <= 60; ++key) EXPECT_TRUE(Await(key).ok()) << key;
  EXPECT_EQ(reading_, 8) << "of the first store, as many as it allows";
  open_ = true;
  for (Key key = 1; key <= 40; ++key) EXPECT_TRUE(Await(key).ok()) << key;
}

TEST_F(ObjectFetcherTest, ALargeObjectThatChangesMeanwhileIsNamedAndLeavesNothing) {
  const std::string text = LongText();
  objects_->Put("memory://bucket/a", text);
  unseen_ = text.size();
  const std::string work = WorkOf("a");
  on_read_ = [&](uint64_t offset) {
    if (offset == 2 * Parts::kBytes) objects_->Put("memory://bucket/a", text);
    return Status();
  };
  Begin(2 * kThreeParts);
  fetcher_->Want(1, work);
  ASSERT_FALSE(Await(1).ok());
  EXPECT_EQ(Await(1).error().code, Code::kStale);
  EXPECT_THAT(Await(1).error().message,
              HasSubstr("memory://bucket/a is not what was listed: it was put 1, is put 2. Do "));
  EXPECT_EQ(disk_->List("/work/objects-0")->size(), 0U);
}

TEST_F(ObjectFetcherTest, ALargeObjectOfWhichAPartDidNotComeIsAskedForAgain) {
  const std::string text = LongText();
  objects_->Put("memory://bucket/a", text);
  unseen_ = text.size();
  std::atomic<int> refused = 0;
  on_read_ = [&](uint64_t offset) {
    if (offset != Parts::kBytes || refused++ > 0) return Status();
    return Status(Error{Code::kUnavailable, "memory://bucket: busy"});
  };
  Begin(2 * kThreeParts);
  Want(1, "a");
  ASSERT_TRUE(Await(1).ok()) << Await(1).error().message;
  EXPECT_EQ(refused, 2);
  EXPECT_TRUE(disk_->Contents("/work/objects-0/1/a") == text);
}

TEST_F(ObjectFetcherTest, AFolderThatHangsHoldsUpNoCall) {
  Put("a", 10);
  disk_->Hang("/work");
  Begin(kRoom);
  disk_->AwaitHanging();
  Want(1, "a");
  disk_->Hang("");
  EXPECT_TRUE(Await(1).ok());
}

TEST_F(ObjectFetcherTest, ItsEndDoesNotWaitForADiskThatHangs) {
  Put("a", 10);
  Begin(kRoom);
  disk_->Hang("/work/objects-0/1");
  Want(1, "a");
  disk_->AwaitHanging();
  EXPECT_FALSE(fetcher_->Finish(milliseconds(1)));
  fetcher_.reset();
  // The thread that is left has all that it uses, and calls nobody.
  const std::weak_ptr<FaultFiles> disk = std::exchange(disk_, nullptr);
  disk.lock()->Hang("");
  while (!disk.expired()) std::this_thread::yield();
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_FALSE(ended_.contains(1));
  disk_ = std::make_shared<FaultFiles>();
}

}  // namespace
}  // namespace parallelrun::agent
