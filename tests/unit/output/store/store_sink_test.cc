#include "output/store/store_sink.h"

#include <gmock/gmock.h>
#include <spdlog/fmt/fmt.h>

#include <functional>
#include <memory>
#include <utility>

#include "output/output_file.h"
#include "output/output_index.h"
#include "output/store/store_claim.h"
#include "output/store/upload_notes.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::output {
namespace {

using ::testing::HasSubstr;
using Fault = MemoryWriteStore::Fault;

constexpr char kRowsName[] = "out/rows.txt";
constexpr char kIndexOfRows[] = "out/rows.txt.index.jsonl";
const std::string kThreeRows = "zero\none\ntwo\n";
// As an index begins, and what it says of these rows.
std::string IndexOf(const std::string& bytes) {
  std::string text;
  OutputIndex index(
      [&text](std::string_view line) {
        text += line;
        return Status();
      },
      OutputIndex::Rows::kApart);
  EXPECT_TRUE(index.Begin("rows.txt", "").ok());
  return text + bytes;
}

job::Published Written(const std::string& bytes = kThreeRows) {
  Sha256 digest;
  digest.Add(bytes);
  return {"s3://bucket/out/rows.txt", bytes.size(), 3, digest.Finish()};
}

// Epochs of one run, over one store and one state folder.
class StoreSinkTest : public ::testing::Test {
 protected:
  struct Epoch {
    std::unique_ptr<Sink> sink;
    Status ready;
  };

  StoreSinkTest() { EXPECT_TRUE(files_.MakeFolders("/state").ok()); }

  // As a coordinator that starts does: from then on it is the newest.
  Epoch Start(uint32_t epoch) {
    newest_ = epoch;
    Epoch started;
    started.ready = EndNotedUploads(*notes_, epoch - 1, store_, kRowsName);
    if (!started.ready.ok()) return started;
    const auto there = store_.Look(kRowsName);
    if (!there.ok()) {
      started.ready = there.error();
      return started;
    }
    StoreSinkOptions options;
    options.name = kRowsName;
    options.epoch = epoch;
    options.mark = {7, generation_};
    if (*there) options.at_start = (*there)->found.version;
    options.newest = [this, epoch]() -> Status {
      if (newest_ == epoch) return {};
      return Error{Code::kStale, "a newer coordinator has taken over"};
    };
    started.sink = MakeStoreSink(*notes_, store_, options);
    return started;
  }

  static Status Fill(Writer& writer, const std::string& bytes = kThreeRows) {
    if (Status added = writer.Append(bytes); !added.ok()) return added;
    return writer.AppendIndex(IndexOf(bytes));
  }
  // Right before that completion, the first of which is the index's.
  void AtCompletion(int number, std::function<void()> action) {
    store_.SetFaults(
        [number, action = std::move(action), met = 0](size_t, const std::string& what) mutable {
          if (what == "complete" && ++met == number) action();
          return Fault::kNone;
        });
  }

  Result<Commit> Publish(Sink& sink, const std::string& bytes = kThreeRows) {
    Result<std::unique_ptr<Writer>> writer = sink.Begin(bytes.size());
    if (!writer.ok()) return writer.error();
    if (const Status added = Fill(**writer, bytes); !added.ok()) return added.error();
    return (*writer)->End(Written(bytes), replaceable_);
  }

  std::string Contents() {
    const MemoryWriteStore::Object* const object = store_.Find(kRowsName);
    return object == nullptr ? "(none)" : object->bytes;
  }

  FaultFiles files_;
  const std::unique_ptr<ledger::StateNotes> notes_ = ledger::MakeFolderNotes(files_, "/state");
  MemoryWriteStore store_;
  uint32_t newest_ = 0;
  uint32_t generation_ = 1;
  Replaceable replaceable_;
};

TEST_F(StoreSinkTest, AnOutputAppearsWholeWithItsMarksAndLeavesNothing) {
  const Epoch epoch = Start(1);
  const auto writer = epoch.sink->Begin(kThreeRows.size());
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(Fill(**writer).ok());
  EXPECT_EQ(Contents(), "(none)") << "out of sight";
  EXPECT_TRUE(files_.Has("/state/uploads/000001.json"));
  const auto end = (*writer)->End(Written(), {});
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->end, Committed::kDone);
  EXPECT_EQ(Contents(), kThreeRows);
  EXPECT_EQ(MarkOf(store_.Find(kRowsName)->marks), (OutputMark{7, 1}));
  EXPECT_FALSE(files_.Has("/state/uploads/000001.json"));
  EXPECT_EQ(store_.uploads(), 0u);
  EXPECT_EQ(epoch.sink->Location(), "s3://bucket/out/rows.txt");
}

TEST_F(StoreSinkTest, AnEmptyOutputIsAnEmptyObject) {
  EXPECT_EQ(Publish(*Start(1).sink, "")->end, Committed::kDone);
  EXPECT_EQ(Contents(), "");
}

TEST_F(StoreSinkTest, TheUploadIsNotedBeforeItsFirstPart) {
  bool noted = false;
  store_.SetFaults([&](size_t, const std::string& what) {
    if (what == "send") noted = files_.Has("/state/uploads/000001.json");
    return Fault::kNone;
  });
  ASSERT_TRUE(Publish(*Start(1).sink).ok());
  EXPECT_TRUE(noted);
}

// The process dies at each request to the store, before that happened and after it; the next epoch
// publishes. What the older one still tries, if it was only slow, changes nothing.
TEST_F(StoreSinkTest, WhereverItIsKilledTheNextEpochPublishesOnce) {
  for (const Fault how : {Fault::kRefused, Fault::kLostAnswer}) {
    bool killed = true;
    for (size_t at = 0; killed; ++at) {
      SCOPED_TRACE(fmt::format("request {}, {}", at, how == Fault::kRefused ? "before" : "after"));
      store_.Drop(kRowsName);
      store_.Drop(kIndexOfRows);
      store_.DropUploads();
      const Epoch first = Start(1);
      const size_t begin = store_.requests().size();
      killed = false;
      store_.SetFaults([&](size_t number, const std::string&) {
        if (killed) return Fault::kRefused;
        if (number < begin + at) return Fault::kNone;
        killed = true;
        return how;
      });
      const Result<std::unique_ptr<Writer>> writer = first.sink->Begin(kThreeRows.size());
      if (writer.ok() && Fill(**writer).ok()) {
        static_cast<void>((*writer)->End(Written(), {}));
      }
      files_.Crash(CrashMode::kLoseAll);
      store_.SetFaults(nullptr);

      const Epoch second = Start(2);
      ASSERT_TRUE(second.ready.ok()) << second.ready.error().message;
      const std::string before = Contents();
      EXPECT_TRUE(before == "(none)" || before == kThreeRows) << before;
      if (before == kThreeRows) {
        EXPECT_NE(store_.Find(kIndexOfRows), nullptr) << "nowhere without its index";
      }
      if (writer.ok()) {
        static_cast<void>((*writer)->End(Written(), {}));
        EXPECT_EQ(Contents(), before);
      }
      const auto again = Publish(*second.sink);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(again->end, Committed::kDone);
      EXPECT_EQ(Contents(), kThreeRows);
      EXPECT_EQ(store_.Find(kIndexOfRows)->bytes, IndexOf(kThreeRows));
      // Those that were begun, and not noted, are for the bucket's rule.
      EXPECT_LE(store_.uploads(), 2u);
      ASSERT_LT(at, 100u);
    }
  }
}

TEST_F(StoreSinkTest, ADiskThatFailsAtAnyStepPublishesNothingTwice) {
  for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
    uint64_t at = 1;
    for (bool met = true; met; ++at) {
      SCOPED_TRACE(fmt::format("operation {}", at));
      store_.Drop(kRowsName);
      store_.DropUploads();
      const Epoch first = Start(1);
      const uint64_t begin = files_.operations();
      files_.FailOperation(at, {Code::kInternal, "the disk is gone"}, moment);
      const Result<Commit> end = Publish(*first.sink);
      met = files_.operations() - begin >= at;
      EXPECT_EQ(Contents(), end.ok() ? kThreeRows : "(none)");
      files_.ClearFaults();
      files_.Crash(CrashMode::kLoseAll);
      const Epoch second = Start(2);
      ASSERT_TRUE(second.ready.ok()) << second.ready.error().message;
      const auto again = Publish(*second.sink);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(again->end, Committed::kDone);
      EXPECT_EQ(Contents(), kThreeRows);
    }
    EXPECT_GT(at, 5u);
  }
}

TEST_F(StoreSinkTest, ANewerEpochEndsWhatAnOlderOneHasBegun) {
  const Epoch first = Start(1);
  const auto writer = first.sink->Begin(kThreeRows.size());
  ASSERT_TRUE(Fill(**writer).ok());
  const Epoch second = Start(2);
  EXPECT_EQ(store_.uploads(), 0u);
  EXPECT_EQ((*writer)->End(Written(), {})->end, Committed::kStale);
  EXPECT_EQ(Contents(), "(none)");
  EXPECT_EQ(first.sink->Begin(4).error().code, Code::kStale);
  EXPECT_EQ(store_.uploads(), 0u) << "what it has begun it has ended";
  EXPECT_EQ(Publish(*second.sink)->end, Committed::kDone);
}

TEST_F(StoreSinkTest, ASlowOneThatIsOvertakenRightBeforeTheEndIsStale) {
  const Epoch first = Start(1);
  const auto writer = first.sink->Begin(kThreeRows.size());
  ASSERT_TRUE(Fill(**writer).ok());
  // The newer one comes between the last look for it and the completion.
  AtCompletion(2, [this] {
    newest_ = 2;
    store_.DropUploads();
  });
  EXPECT_EQ((*writer)->End(Written(), {})->end, Committed::kStale);
  EXPECT_EQ(Contents(), "(none)");
}

TEST_F(StoreSinkTest, ALostAnswerToTheEndIsLookedUp) {
  store_.SetFaults([](size_t, const std::string& what) {
    return what == "complete" ? Fault::kLostAnswer : Fault::kNone;
  });
  EXPECT_EQ(Publish(*Start(1).sink)->end, Committed::kDone);
  EXPECT_EQ(Contents(), kThreeRows);
  EXPECT_FALSE(files_.Has("/state/uploads/000001.json"));
}

TEST_F(StoreSinkTest, AConflictAndARuleOfTheBucketHaveAllSentAgain) {
  const Epoch epoch = Start(1);
  store_.SetFaults([](size_t, const std::string& what) {
    return what == "complete" ? Fault::kConflict : Fault::kNone;
  });
  EXPECT_EQ(Publish(*epoch.sink).error().code, Code::kUnavailable);
  AtCompletion(2, [this] { store_.DropUploads(); });
  const auto rule = Publish(*epoch.sink);
  EXPECT_EQ(rule.error().code, Code::kUnavailable);
  EXPECT_THAT(rule.error().message, HasSubstr("it is sent again"));
  store_.SetFaults(nullptr);
  EXPECT_EQ(Publish(*epoch.sink)->end, Committed::kDone);
  EXPECT_EQ(store_.uploads(), 0u);
}

TEST_F(StoreSinkTest, AnObjectThatAppearsMeanwhileStays) {
  const Epoch epoch = Start(1);
  AtCompletion(2, [this] { store_.Write(kRowsName, "a user's"); });
  const auto end = Publish(*epoch.sink);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->end, Committed::kForeign);
  EXPECT_THAT(end->why, HasSubstr("s3://bucket/out/rows.txt (8 bytes, ETag v"));
  EXPECT_THAT(end->why, HasSubstr("has appeared since the run began"));
  EXPECT_EQ(Contents(), "a user's");
  EXPECT_EQ(store_.uploads(), 0u);
}

TEST_F(StoreSinkTest, OverwriteReplacesWhatWasThereAndNothingElse) {
  store_.Write(kRowsName, "of yesterday");
  replaceable_.whatever = true;
  EXPECT_EQ(Publish(*Start(1).sink)->end, Committed::kDone);
  EXPECT_EQ(Contents(), kThreeRows);

  store_.Write(kRowsName, "of yesterday");
  const Epoch epoch = Start(2);
  store_.Write(kRowsName, "of this minute");
  EXPECT_EQ(Publish(*epoch.sink)->end, Committed::kForeign);
  EXPECT_EQ(Contents(), "of this minute");

  // A rule of the bucket ends the upload, and what was to be replaced is still there. The index is
  // as it was, and is not completed again.
  const Epoch other = Start(3);
  AtCompletion(1, [this] { store_.DropUploads(); });
  EXPECT_THAT(Publish(*other.sink).error().message, HasSubstr("it is sent again"));

  // What was to be replaced was removed between the look and the end.
  const Epoch third = Start(4);
  AtCompletion(1, [this] { store_.Drop(kRowsName); });
  EXPECT_EQ(Publish(*third.sink)->end, Committed::kDone);
  EXPECT_EQ(Contents(), kThreeRows);
}

TEST_F(StoreSinkTest, ALaterGenerationReplacesWhatThisRunHasPublished) {
  ASSERT_TRUE(Publish(*Start(1).sink).ok());
  generation_ = 2;
  replaceable_.last = Written();
  EXPECT_EQ(Publish(*Start(2).sink, "all of it\n")->end, Committed::kDone);
  EXPECT_EQ(Contents(), "all of it\n");
  EXPECT_EQ(MarkOf(store_.Find(kRowsName)->marks), (OutputMark{7, 2}));

  generation_ = 3;
  replaceable_.last = Written("all of it\n");
  store_.Write(kRowsName, "somebody else's");
  const auto end = Publish(*Start(3).sink);
  EXPECT_EQ(end->end, Committed::kForeign);
  EXPECT_THAT(end->why, HasSubstr("is not what this run has published there"));
}

TEST_F(StoreSinkTest, AnIndexIsReplacedAndNothingElseOfItsName) {
  store_.Write(kIndexOfRows, IndexOf("of another output"));
  ASSERT_EQ(Publish(*Start(1).sink)->end, Committed::kDone);
  EXPECT_EQ(store_.Find(kIndexOfRows)->bytes, IndexOf(kThreeRows));

  store_.Drop(kRowsName);
  store_.Write(kIndexOfRows, "a user's");
  const auto end = Publish(*Start(2).sink);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->end, Committed::kForeign);
  EXPECT_THAT(end->why,
              HasSubstr("s3://bucket/out/rows.txt.index.jsonl is there, and is no index"));
  EXPECT_EQ(store_.Find(kIndexOfRows)->bytes, "a user's");
  EXPECT_EQ(Contents(), "(none)");
}

TEST_F(StoreSinkTest, AnotherRunsClaimEndsIt) {
  newest_ = 1;
  StoreSinkOptions options;
  options.name = kRowsName;
  options.epoch = 1;
  options.held = {"out/.rows.txt.parallelrun-claim", "mine"};
  options.newest = [] { return Status(); };
  const auto sink = MakeStoreSink(*notes_, store_, options);
  store_.Write(options.held.path, "another's");
  const auto end = Publish(*sink);
  EXPECT_EQ(end->end, Committed::kForeign);
  EXPECT_THAT(end->why, HasSubstr("another run has taken this output meanwhile"));
  store_.Drop(options.held.path);
  EXPECT_EQ(Publish(*sink)->end, Committed::kDone) << "one that somebody removed is made again";
  EXPECT_NE(store_.Find(options.held.path), nullptr);
}

TEST_F(StoreSinkTest, DamageIsTold) {
  const OutputMark mark{7, 1};
  EXPECT_EQ(*DamageInStore(store_, kRowsName, Written(), mark), "is not there");
  ASSERT_TRUE(Publish(*Start(1).sink).ok());
  EXPECT_EQ(*DamageInStore(store_, kRowsName, Written(), mark), "");
  // As a server that leaves the marks with the next object does.
  store_.Write(kRowsName, std::string(kThreeRows.size(), 'x'), MarksOf(mark));
  EXPECT_EQ(*DamageInStore(store_, kRowsName, Written(), mark),
            "has other bytes than were published");
  EXPECT_EQ(Publish(*Start(1).sink)->end, Committed::kForeign) << "nor is it taken for the output";
  store_.Write(kRowsName, std::string(kThreeRows.size(), 'x'));
  EXPECT_EQ(*DamageInStore(store_, kRowsName, Written(), mark),
            "is another object than was published");
  store_.Write(kRowsName, "x");
  EXPECT_EQ(*DamageInStore(store_, kRowsName, Written(), mark), "has 1 bytes, 13 were published");
}

TEST_F(StoreSinkTest, ANoteOfAnotherOutputStays) {
  ASSERT_TRUE(NoteUploads(*notes_, 1, {"s3://other/rows.txt", "one", "other"}).ok());
  EXPECT_TRUE(Start(2).ready.ok());
  EXPECT_TRUE(files_.Has("/state/uploads/000001.json"));
  files_.Put("/state/uploads/000001.json", "no note");
  const Status ready = Start(2).ready;
  EXPECT_EQ(ready.error().code, Code::kCorrupt);
  EXPECT_THAT(ready.error().message, HasSubstr("/state/uploads/000001.json"));
}

TEST(StoreStepTest, MarksOfOthersAreNone) {
  EXPECT_EQ(MarkOf({}), std::nullopt);
  EXPECT_EQ(MarkOf({{"parallelrun-run", "xyz"}, {"parallelrun-generation", "1"}}), std::nullopt);
  EXPECT_EQ(MarkOf({{"parallelrun-run", "0007"}, {"parallelrun-generation", "-1"}}), std::nullopt);
  EXPECT_EQ(MarkOf(MarksOf({UINT64_MAX, UINT32_MAX})), (OutputMark{UINT64_MAX, UINT32_MAX}));
}

TEST(StoreStepTest, TheSameMarkWithAnotherSizeIsForeign) {
  const store::Stored there{{5, store::Version("v")}, MarksOf({7, 1})};
  EXPECT_EQ(NextStep(there, {7, 1}, {}, Written(), {}).kind, StoreStep::Kind::kForeign);
  EXPECT_EQ(NextStep(there, {8, 1}, {}, Written("12345"), {}).kind, StoreStep::Kind::kForeign);
  EXPECT_EQ(NextStep(there, {7, 1}, {}, Written("12345"), {}).kind, StoreStep::Kind::kIsThere);
}

}  // namespace
}  // namespace parallelrun::output
