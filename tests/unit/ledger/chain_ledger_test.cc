// A ledger in a store: claims, commits and what becomes of both where answers get lost, others come
// in between, and links are missing.
#include "ledger/chain_ledger.h"

#include <gmock/gmock.h>

#include "tests/support/fault_files.h"
#include "tests/unit/ledger/ledger_testing.h"
#include "tests/unit/ledger/memory_links.h"

namespace parallelrun::ledger {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Fault = MemoryLinks::Fault;

constexpr char kCopy[] = "/scratch/chain";

class ChainLedgerTest : public ::testing::Test {
 protected:
  ChainLedgerTest() { EXPECT_TRUE(files_.MakeFolders("/scratch").ok()); }

  static ChainLedgerOptions Options() {
    static uint64_t nonce = 0;
    ChainLedgerOptions options;
    options.chain.owner = "default/photos (uid 1)";
    options.chain.nonce = ++nonce;
    options.chain.new_run_id = kTestRun;
    return options;
  }

  Result<Claimed> TryClaimChain(const ChainLedgerOptions& options) {
    Claimed claimed;
    Result<std::unique_ptr<Ledger>> ledger =
        ClaimChain(links_, files_, options,
                   [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
                     if (const auto* seal = std::get_if<job::SealRecord>(&record)) {
                       claimed.seals.push_back(*seal);
                       return Status();
                     }
                     claimed.records.push_back(Encoded(record));
                     claimed.places.push_back(place);
                     claimed.rows.push_back(rows);
                     return Status();
                   });
    if (!ledger.ok()) return ledger.error();
    claimed.ledger = std::move(*ledger);
    return claimed;
  }
  Claimed ClaimIt(const ChainLedgerOptions& options) {
    Result<Claimed> claimed = TryClaimChain(options);
    EXPECT_TRUE(claimed.ok()) << claimed.error().message;
    return std::move(*claimed);
  }
  Claimed ClaimIt() { return ClaimIt(Options()); }
  // Claims and begins, with settings where there are none.
  Claimed Begin() {
    Claimed claimed = ClaimIt();
    const Status begun = claimed.ledger->Begin(
        claimed.ledger->fresh() ? std::optional(TestSettings()) : std::nullopt, std::nullopt);
    EXPECT_TRUE(begun.ok()) << begun.error().message;
    return claimed;
  }
  // What the next epoch would count.
  std::vector<std::string> Records() {
    std::vector<std::string> records;
    const Result<uint64_t> run =
        InspectChain(links_, [&](const job::Record& record, const job::Place&, const job::Place&) {
          if (!std::holds_alternative<job::SealRecord>(record)) records.push_back(Encoded(record));
          return Status();
        });
    EXPECT_TRUE(run.ok()) << run.error().message;
    return records;
  }
  // The next request of that kind meets it.
  void FailNext(const std::string& what, Fault fault) {
    links_.SetFaults([what, fault, met = false](const std::string& asked, uint64_t) mutable {
      if (met || asked != what) return Fault::kNone;
      met = true;
      return fault;
    });
  }
  // Right before the next link is made.
  void ComeInBeforeCreate(std::function<void()> other) {
    links_.SetFaults(
        [other = std::move(other), came = false](const std::string& asked, uint64_t) mutable {
          if (!came && asked == "create") {
            came = true;
            other();
          }
          return Fault::kNone;
        });
  }

  FaultFiles files_;
  MemoryLinks links_;
};

TEST_F(ChainLedgerTest, AFreshChainIsClaimedWithItsOwner) {
  const Claimed claimed = ClaimIt();
  const Ledger& ledger = *claimed.ledger;
  EXPECT_EQ(ledger.epoch(), 1u);
  EXPECT_EQ(ledger.run_id(), kTestRun);
  EXPECT_TRUE(ledger.fresh());
  EXPECT_EQ(ledger.token_path(), "");
  EXPECT_EQ(ledger.durable(), ledger.appended());
  EXPECT_TRUE(ledger.CheckNewest().ok());
  EXPECT_THAT(claimed.records, IsEmpty());
  ASSERT_EQ(links_.links.size(), 1u);
  const Result<Link> link = DecodeLink(links_.links.at(1));
  ASSERT_TRUE(link.ok());
  EXPECT_EQ(link->header.kind, LinkKind::kClaim);
  EXPECT_EQ(link->header.digest, kTestRun);
  EXPECT_EQ(link->content, "default/photos (uid 1)");
}

TEST_F(ChainLedgerTest, TheNextEpochFindsWhatWasCommitted) {
  const Claimed first = Begin();
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(0), FailureOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2)}).ok());
  EXPECT_EQ(links_.links.size(), 4u);
  const Claimed next = ClaimIt();
  EXPECT_EQ(next.ledger->epoch(), 2u);
  EXPECT_EQ(next.ledger->run_id(), kTestRun);
  EXPECT_FALSE(next.ledger->fresh());
  EXPECT_THAT(next.records,
              ElementsAre(Encoded(TestSettings()), ResultOf(0), FailureOf(1), ResultOf(2)));
  ASSERT_EQ(next.seals.size(), 1u);
  EXPECT_EQ(next.seals[0].predecessor, 0u);
  ASSERT_TRUE(next.ledger->Begin(std::nullopt, std::nullopt).ok());
  ASSERT_TRUE(Commit(*next.ledger, {ResultOf(3)}).ok());
  const Claimed third = ClaimIt();
  EXPECT_EQ(third.records.size(), 5u);
  ASSERT_EQ(third.seals.size(), 2u);
  EXPECT_EQ(third.seals[1].predecessor, 1u);
}

TEST_F(ChainLedgerTest, WhatIsReadIsWhatWasWritten) {
  for (const bool copied : {false, true}) {
    links_.links.clear();
    ChainLedgerOptions options = Options();
    if (copied) options.copy_path = kCopy;
    const Claimed first = ClaimIt(options);
    ASSERT_TRUE(first.ledger->Begin(TestSettings(), std::nullopt).ok());
    const std::string result = ResultOf(7);
    const Ledger::Appended appended = first.ledger->AppendEncoded(result);
    EXPECT_EQ(first.ledger->Read(appended.record).error().code, Code::kUnavailable);
    ASSERT_TRUE(first.ledger->Flush().ok());
    const std::string rows = result.substr(result.size() - appended.rows.length);
    EXPECT_EQ(*first.ledger->Read(appended.record), result);
    EXPECT_EQ(*first.ledger->Read(appended.rows), rows);
    options.chain.nonce += 1000;
    const Claimed next = ClaimIt(options);
    EXPECT_THAT(next.places.back(), appended.record);
    EXPECT_THAT(next.rows.back(), appended.rows);
    EXPECT_EQ(*next.ledger->Read(next.places.back()), result);
    EXPECT_EQ(*next.ledger->Read(next.rows.back()), rows);
    // Not beyond what its link holds.
    const job::Place beyond{1, appended.rows.offset, appended.rows.length + 1};
    EXPECT_EQ(first.ledger->Read(beyond).error().code, Code::kUnavailable);
  }
}

TEST_F(ChainLedgerTest, WhatTheCopyHasNoRoomForIsReadFromTheStore) {
  ChainLedgerOptions options = Options();
  options.copy_path = kCopy;
  const Claimed claimed = ClaimIt(options);
  ASSERT_TRUE(claimed.ledger->Begin(TestSettings(), std::nullopt).ok());
  const Ledger::Appended kept = claimed.ledger->AppendEncoded(ResultOf(1));
  ASSERT_TRUE(claimed.ledger->Flush().ok());
  files_.SetCapacity(files_.used());
  const Ledger::Appended beyond = claimed.ledger->AppendEncoded(ResultOf(2));
  ASSERT_TRUE(claimed.ledger->Flush().ok());
  bool asked = false;
  links_.SetFaults([&](const std::string& what, uint64_t) {
    asked = asked || what == "read";
    return Fault::kNone;
  });
  EXPECT_EQ(*claimed.ledger->Read(kept.record), ResultOf(1));
  EXPECT_FALSE(asked);
  EXPECT_EQ(*claimed.ledger->Read(beyond.record), ResultOf(2));
  EXPECT_TRUE(asked);
}

TEST_F(ChainLedgerTest, WhatGathersIsOneLinkUpToItsLimit) {
  const Claimed claimed = Begin();
  for (uint64_t i = 0; i < 1000; ++i) claimed.ledger->AppendEncoded(ResultOf(i));
  ASSERT_TRUE(claimed.ledger->Flush().ok());
  EXPECT_EQ(links_.links.size(), 3u);
  std::vector<std::string> large;
  for (uint64_t i = 0; i < 5; ++i) large.push_back(ResultOf(i, size_t{1} << 20));
  ASSERT_TRUE(Commit(*claimed.ledger, large).ok());
  EXPECT_EQ(links_.links.size(), 5u);
  for (const auto& [number, bytes] : links_.links) EXPECT_LE(bytes.size(), size_t{4} << 20);
  // A single record may be larger than that.
  ASSERT_TRUE(Commit(*claimed.ledger, {ResultOf(9, size_t{6} << 20)}).ok());
  EXPECT_EQ(Records().size(), 1u + 1000 + 5 + 1);
}

TEST_F(ChainLedgerTest, ACommitWhoseAnswerIsLostIsDoneOnce) {
  const Claimed claimed = Begin();
  for (const Fault fault : {Fault::kLostAnswer, Fault::kRepeated, Fault::kAway, Fault::kLate}) {
    const size_t before = links_.links.size();
    FailNext("create", fault);
    claimed.ledger->AppendEncoded(ResultOf(before));
    const Result<uint64_t> flushed = claimed.ledger->Flush();
    EXPECT_EQ(flushed.ok(), fault == Fault::kRepeated);
    if (!flushed.ok()) {
      EXPECT_EQ(flushed.error().code, Code::kUnavailable);
      EXPECT_LT(claimed.ledger->durable(), claimed.ledger->appended());
      // What comes meanwhile has a link of its own behind it: the same bytes are put again.
      claimed.ledger->AppendEncoded(FailureOf(before));
      links_.Arrive();
      ASSERT_TRUE(claimed.ledger->Flush().ok());
      EXPECT_EQ(links_.links.size(), before + 2);
    }
    EXPECT_EQ(claimed.ledger->durable(), claimed.ledger->appended());
  }
  EXPECT_THAT(Records(),
              ElementsAre(Encoded(TestSettings()), ResultOf(2), FailureOf(2), ResultOf(4),
                          ResultOf(5), FailureOf(5), ResultOf(7), FailureOf(7)));
}

TEST_F(ChainLedgerTest, AStoreThatIsAwayForLongLosesNothing) {
  const Claimed claimed = Begin();
  std::vector<std::string> expected = {Encoded(TestSettings())};
  for (uint64_t i = 0; i < 20; ++i) {
    links_.SetFaults([&](const std::string&, uint64_t) { return Fault::kAway; });
    claimed.ledger->AppendEncoded(ResultOf(i));
    EXPECT_EQ(claimed.ledger->Flush().error().code, Code::kUnavailable);
    links_.SetFaults({});
    if (i % 3 == 0) {
      ASSERT_TRUE(claimed.ledger->Flush().ok());
    }
    expected.push_back(ResultOf(i));
  }
  ASSERT_TRUE(claimed.ledger->Flush().ok());
  EXPECT_THAT(Records(), ElementsAreArray(expected));
}

TEST_F(ChainLedgerTest, AClaimWhoseAnswerIsLostIsOnesOwn) {
  FailNext("create", Fault::kRepeated);
  const Claimed first = ClaimIt();
  EXPECT_EQ(first.ledger->epoch(), 1u);
  // Where nobody hears of it the coordinator ends, and its claim is an epoch without records.
  FailNext("create", Fault::kLostAnswer);
  EXPECT_EQ(TryClaimChain(Options()).error().code, Code::kUnavailable);
  links_.SetFaults({});
  EXPECT_EQ(ClaimIt().ledger->epoch(), 3u);
}

TEST_F(ChainLedgerTest, AStaleCoordinatorCommitsNothingMore) {
  const Claimed stale = Begin();
  ASSERT_TRUE(Commit(*stale.ledger, {ResultOf(1)}).ok());
  const Claimed newer = Begin();
  EXPECT_THAT(newer.records, ElementsAre(Encoded(TestSettings()), ResultOf(1)));
  EXPECT_EQ(stale.ledger->CheckNewest().error().code, Code::kStale);
  stale.ledger->AppendEncoded(ResultOf(2));
  const Result<uint64_t> refused = stale.ledger->Flush();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kStale);
  EXPECT_THAT(refused.error().message, HasSubstr("s3://bucket/00000004 is another coordinator's"));
  EXPECT_EQ(stale.ledger->Flush().error().code, Code::kStale) << "for ever";
  ASSERT_TRUE(Commit(*newer.ledger, {ResultOf(3)}).ok());
  EXPECT_TRUE(newer.ledger->CheckNewest().ok());
  EXPECT_THAT(Records(), ElementsAre(Encoded(TestSettings()), ResultOf(1), ResultOf(3)));
}

// A request that is under way for minutes: its sender was acknowledged nothing.
TEST_F(ChainLedgerTest, WhatArrivesBehindANewerClaimChangesNothing) {
  const Claimed stale = Begin();
  FailNext("create", Fault::kLate);
  stale.ledger->AppendEncoded(ResultOf(1));
  EXPECT_FALSE(stale.ledger->Flush().ok());
  const Claimed newer = Begin();
  links_.Arrive();
  ASSERT_TRUE(Commit(*newer.ledger, {ResultOf(2)}).ok());
  EXPECT_EQ(stale.ledger->Flush().error().code, Code::kStale);
  EXPECT_THAT(Records(), ElementsAre(Encoded(TestSettings()), ResultOf(2)));
}

TEST_F(ChainLedgerTest, OfTwoThatClaimAtOnceTheLaterOneHasTheHistoryOfTheOther) {
  Claimed other;
  ComeInBeforeCreate([&] {
    other = Begin();
    ASSERT_TRUE(Commit(*other.ledger, {ResultOf(1)}).ok());
  });
  const Claimed claimed = ClaimIt();
  EXPECT_EQ(other.ledger->epoch(), 1u);
  EXPECT_EQ(claimed.ledger->epoch(), 2u);
  EXPECT_FALSE(claimed.ledger->fresh());
  EXPECT_THAT(claimed.records, ElementsAre(Encoded(TestSettings()), ResultOf(1)));
  EXPECT_EQ(other.ledger->CheckNewest().error().code, Code::kStale);
}

TEST_F(ChainLedgerTest, ACommitBeforeTheClaimIsCounted) {
  const Claimed first = Begin();
  ComeInBeforeCreate([&] { ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok()); });
  const Claimed next = ClaimIt();
  EXPECT_THAT(next.records, ElementsAre(Encoded(TestSettings()), ResultOf(1)));
}

// One that is at work makes a link by one request, and a claim needs two for each number.
TEST_F(ChainLedgerTest, WhoTakesEachNumberFirstGivesWay) {
  const Claimed busy = Begin();
  std::vector<std::string> expected = {Encoded(TestSettings())};
  bool commits = false;
  links_.SetFaults([&](const std::string& what, uint64_t number) {
    if (what == "create" && !commits && busy.ledger->CheckNewest().ok()) {
      commits = true;
      expected.push_back(ResultOf(number));
      EXPECT_TRUE(Commit(*busy.ledger, {expected.back()}).ok());
      commits = false;
    }
    return Fault::kNone;
  });
  const Claimed claimed = ClaimIt();
  EXPECT_EQ(claimed.ledger->epoch(), 2u);
  EXPECT_EQ(expected.size(), 1u + 3) << "then it was told";
  EXPECT_THAT(claimed.records, ElementsAreArray(expected));
  EXPECT_TRUE(claimed.ledger->CheckNewest().ok());
}

TEST_F(ChainLedgerTest, AListThatIsLateIsNoEnd) {
  const Claimed first = Begin();
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2)}).ok());
  links_.ListUpTo(2);
  const Claimed next = ClaimIt();
  EXPECT_EQ(next.records.size(), 3u);
  EXPECT_EQ(links_.links.size(), 5u);
  links_.ListUpTo(0);
  EXPECT_EQ(ClaimIt().ledger->epoch(), 3u);
}

TEST_F(ChainLedgerTest, AStoreThatIgnoresConditionsIsRefused) {
  links_.IgnoreConditions();
  const Result<Claimed> refused = TryClaimChain(Options());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("ignores If-None-Match"));
}

TEST_F(ChainLedgerTest, AMissingLinkIsCorruptionAndNoEnd) {
  const Claimed first = Begin();
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(Commit(*first.ledger, {ResultOf(i)}).ok());
  const auto whole = links_.links;
  for (uint64_t missing = 1; missing < whole.size(); ++missing) {
    links_.links = whole;
    links_.links.erase(missing);
    const Result<Claimed> refused = TryClaimChain(Options());
    ASSERT_FALSE(refused.ok()) << missing;
    EXPECT_EQ(refused.error().code, Code::kCorrupt);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr(LinkName(missing) + ": this link is missing"),
                      HasSubstr("a rule of the store or a person")));
    EXPECT_EQ(links_.links.size(), whole.size() - 1) << "nothing was made";
  }
}

TEST_F(ChainLedgerTest, AChainThatEndsBelowWhatWasSeenIsCorrupt) {
  Begin();
  Begin();
  ChainLedgerOptions options = Options();
  options.chain.seen_epoch = 2;
  links_.ListUpTo(2);  // late is not removed
  EXPECT_EQ(ClaimIt(options).ledger->epoch(), 3u);
  links_.ListUpTo(kMostLinks);
  options.chain.seen_epoch = 3;
  links_.links.erase(4);
  const Result<Claimed> shorter = TryClaimChain(options);
  ASSERT_FALSE(shorter.ok());
  EXPECT_EQ(shorter.error().code, Code::kCorrupt);
  EXPECT_THAT(shorter.error().message, HasSubstr("epoch 3 was seen before"));
  links_.links.clear();
  EXPECT_EQ(TryClaimChain(options).error().code, Code::kCorrupt) << "no fresh start";
  EXPECT_THAT(links_.links, IsEmpty());
}

TEST_F(ChainLedgerTest, ALinkThatWasPutInAnothersPlaceIsCorrupt) {
  Claimed first = Begin();
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(2)}).ok());
  const auto whole = links_.links;
  const auto refused = [&](const std::string& why) {
    const Result<Claimed> claimed = TryClaimChain(Options());
    EXPECT_EQ(claimed.error().code, Code::kCorrupt);
    EXPECT_THAT(claimed.error().message, HasSubstr(why));
    links_.links = whole;
  };
  links_.links[3][200] = '~';
  refused("00000003: this is no link: what it holds is damaged");
  links_.links[3] = "short";
  refused("00000003: this is no link");
  links_.links[3] = whole.at(4);
  refused("00000003: this is link 4 under another name");
  // One of another run of the same length, whole in itself.
  links_.links.clear();
  ChainLedgerOptions options = Options();
  options.chain.new_run_id = kTestRun + 1;
  first = ClaimIt(options);
  ASSERT_TRUE(first.ledger->Begin(TestSettings(), std::nullopt).ok());
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  const std::string foreign = links_.links.at(3);
  links_.links = whole;
  links_.links[3] = foreign;
  refused("00000003: this link does not continue the one in front of it");
}

// What two requests at once could leave behind a newer claim.
TEST_F(ChainLedgerTest, ALinkOfAnEarlierEpochBehindAClaimIsCorrupt) {
  const Claimed stale = Begin();
  const Claimed newer = ClaimIt();
  const Result<Link> claim = DecodeLink(links_.links.at(3));
  ASSERT_TRUE(claim.ok());
  LinkHeader header = claim->header;
  header.log = DecodeLink(links_.links.at(2))->header.log;
  header.kind = LinkKind::kRecords;
  header.number = 4;
  header.offset = claim->end();
  header.digest = claim->digest();
  std::string link(kLinkHeaderSize, '\0');
  WriteLinkHeader(header, link);
  links_.links[4] = link;
  const Result<Claimed> refused = TryClaimChain(Options());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("this link is of epoch 1, and the one in front of it of 2"));
}

TEST_F(ChainLedgerTest, TheChainOfAnotherJobIsRefusedWithBothNames) {
  Begin();
  ChainLedgerOptions other = Options();
  other.chain.owner = "default/photos (uid 2)";
  const auto refuses = [&] {
    const size_t before = links_.links.size();
    const Result<Claimed> refused = TryClaimChain(other);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kExists);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("photos (uid 1)"), HasSubstr("photos (uid 2)")));
    EXPECT_EQ(links_.links.size(), before);
  };
  refuses();
  // Also where the history begins behind the first link.
  const Claimed again = ClaimIt();
  ASSERT_TRUE(again.ledger->Begin(TestSettings(), 77).ok());
  refuses();
}

TEST_F(ChainLedgerTest, OverwriteBeginsAnotherHistory) {
  const Claimed first = Begin();
  ASSERT_TRUE(Commit(*first.ledger, {ResultOf(1)}).ok());
  const Claimed again = ClaimIt();
  ASSERT_TRUE(again.ledger->Begin(TestSettings(2), 77).ok());
  EXPECT_EQ(again.ledger->run_id(), 77u);
  ASSERT_TRUE(Commit(*again.ledger, {ResultOf(2)}).ok());
  const Claimed next = ClaimIt();
  EXPECT_EQ(next.ledger->epoch(), 3u);
  EXPECT_EQ(next.ledger->run_id(), 77u);
  EXPECT_THAT(next.records, ElementsAre(Encoded(TestSettings(2)), ResultOf(2)));
  ASSERT_FALSE(next.seals.empty());
  EXPECT_EQ(next.seals[0].predecessor, 0u);
  EXPECT_EQ(next.seals[0].digest, 77u);
  EXPECT_EQ(*next.ledger->Read(next.places.back()), ResultOf(2));
}

TEST_F(ChainLedgerTest, ARunThatIsBegunAnewMeanwhileEndsTheClaim) {
  Begin();
  ComeInBeforeCreate([&] {
    const Claimed other = ClaimIt();
    ASSERT_TRUE(other.ledger->Begin(TestSettings(2), 77).ok());
  });
  const Result<Claimed> ended = TryClaimChain(Options());
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().code, Code::kStale);
}

TEST_F(ChainLedgerTest, WhatIsOnItsWayFromHereIsNoNewerEpoch) {
  const Claimed claimed = Begin();
  FailNext("create", Fault::kLostAnswer);
  claimed.ledger->AppendEncoded(ResultOf(1));
  EXPECT_FALSE(claimed.ledger->Flush().ok());
  EXPECT_TRUE(claimed.ledger->CheckNewest().ok());
  Begin();
  EXPECT_EQ(claimed.ledger->CheckNewest().error().code, Code::kStale);
}

TEST_F(ChainLedgerTest, AnOwnLinkThatIsGoneIsSeen) {
  const Claimed claimed = Begin();
  links_.links.clear();
  const Status gone = claimed.ledger->CheckNewest();
  EXPECT_EQ(gone.error().code, Code::kNotFound);
  EXPECT_THAT(gone.error().message, HasSubstr("s3://bucket/00000002 is not there any more"));
}

// 412, and nothing there to be read.
TEST_F(ChainLedgerTest, ALinkThatIsTakenAwayAtOnceEndsTheEpoch) {
  const Claimed claimed = Begin();
  links_.SetFaults([&](const std::string& what, uint64_t number) {
    if (what == "read") links_.links.erase(number);
    return what == "create" ? Fault::kRepeated : Fault::kNone;
  });
  claimed.ledger->AppendEncoded(ResultOf(1));
  const Result<uint64_t> flushed = claimed.ledger->Flush();
  ASSERT_FALSE(flushed.ok());
  EXPECT_EQ(flushed.error().code, Code::kCorrupt);
}

TEST_F(ChainLedgerTest, AnErrorOfTheStoreEndsTheClaimWithoutALink) {
  Begin();
  for (const char* what : {"list", "read", "create"}) {
    FailNext(what, Fault::kAway);
    EXPECT_EQ(TryClaimChain(Options()).error().code, Code::kUnavailable) << what;
    EXPECT_EQ(links_.links.size(), 2u);
  }
}

TEST_F(ChainLedgerTest, ALongChainIsReadInItsOrder) {
  const Claimed first = Begin();
  std::vector<std::string> expected = {Encoded(TestSettings())};
  for (uint64_t i = 0; i < 200; ++i) {
    expected.push_back(ResultOf(i));
    ASSERT_TRUE(Commit(*first.ledger, {expected.back()}).ok());
  }
  EXPECT_THAT(ClaimIt().records, ElementsAreArray(expected));
}

TEST_F(ChainLedgerTest, ResultsWaitForMoreOnceThereAreManyLinksAndNothingElseDoes) {
  ChainLedgerOptions options = Options();
  options.pace.allowance = 0;
  const Claimed claimed = ClaimIt(options);
  Ledger& ledger = *claimed.ledger;
  ASSERT_TRUE(ledger.Begin(TestSettings(), std::nullopt).ok());
  constexpr Duration kAtOnce{0};
  const Instant now{seconds(100)};
  ledger.AppendEncoded(ResultOf(1));
  EXPECT_GT(ledger.FlushIn(now), kAtOnce);
  EXPECT_EQ(ledger.FlushIn(now + seconds(2)), kAtOnce);
  ASSERT_TRUE(ledger.Flush().ok());
  ledger.AppendEncoded(FailureOf(2));
  EXPECT_GT(ledger.FlushIn(now + seconds(2)), kAtOnce);
  ledger.Append(job::PlanEndRecord{0, 0});
  EXPECT_EQ(ledger.FlushIn(now + seconds(2)), kAtOnce);
  ASSERT_TRUE(ledger.Flush().ok());
  // What a store that is away has not taken is not put off again.
  ledger.AppendEncoded(ResultOf(3));
  FailNext("create", Fault::kAway);
  EXPECT_FALSE(ledger.Flush().ok());
  EXPECT_EQ(ledger.FlushIn(now + seconds(2)), kAtOnce);
}

TEST_F(ChainLedgerTest, InspectingMakesNothing) {
  const auto nothing = [](const job::Record&, const job::Place&, const job::Place&) {
    return Status();
  };
  EXPECT_EQ(InspectChain(links_, nothing).error().code, Code::kNotFound);
  Begin();
  const size_t made = links_.creates();
  EXPECT_EQ(*InspectChain(links_, nothing), kTestRun);
  EXPECT_EQ(links_.creates(), made);
}

}  // namespace
}  // namespace parallelrun::ledger
