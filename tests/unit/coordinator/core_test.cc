#include "tests/unit/coordinator/core_harness.h"

#include <gmock/gmock.h>
#include <spdlog/fmt/fmt.h>

#include "ledger/log_format.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = job::Finished::Kind;
using Phase = Coordinator::Phase;

TEST(CoordinatorCore, GrantsOnlyWhatIsDurablyPlanned) {
  CoordinatorHarness h;
  h.SlicesInto(2);
  const job::Incarnation in = h.Join(0);
  EXPECT_THAT(h.Send(0, h.Request(in, 1))->leased, IsEmpty());
  h.Sync();
  EXPECT_THAT(h.Send(0, h.Request(in, 1))->leased, SizeIs(1));
}

TEST(CoordinatorCore, AParkedRequestIsAnsweredWhenThereIsWorkOrItsTimeIsOver) {
  CoordinatorHarness h;
  const job::Incarnation in = h.Join(0);
  const auto early = h.Send(0, h.Request(in, 1, 1000));
  EXPECT_EQ(early->answers, 0);
  h.Plan(1, false);
  EXPECT_THAT(early->leased, SizeIs(1));
  const auto late = h.Send(0, h.Request(in, 1, 1000));
  h.Advance(seconds(1));
  EXPECT_EQ(late->answers, 1);
  EXPECT_THAT(late->leased, IsEmpty());
}

TEST(CoordinatorCore, ANewerRequestReleasesTheParkedOne) {
  CoordinatorHarness h;
  const job::Incarnation in = h.Join(0);
  const auto parked = h.Send(0, h.Request(in, 1, 20'000));
  h.Send(0, h.Request(in));
  EXPECT_EQ(parked->answers, 1);
}

TEST(CoordinatorCore, AnotherIncarnationOrSettingIsStale) {
  CoordinatorHarness h;
  const job::Incarnation old = h.Join(0);
  h.Join(0);
  EXPECT_EQ(h.Send(0, h.Request(old))->error->code, Code::kStale);
  job::ExchangeRequest request = h.Request(h.Join(1));
  request.settings_digest = 1;
  EXPECT_EQ(h.Send(1, request)->error->code, Code::kStale);
  EXPECT_EQ(h.Send(5, h.Request({1, 1}))->error->code, Code::kStale);
  EXPECT_FALSE(h.core->newest().superseded());
}

TEST(CoordinatorCore, HearingOfAHigherEpochMakesItLook) {
  CoordinatorHarness h;
  h.Join(0);  // it has just looked
  h.files.Put("/job/state/epochs/" + ledger::LogName(2), "");
  h.Send(0, h.Request({2, 1}));
  EXPECT_TRUE(h.core->newest().superseded());
}

// A volume that hangs: what a look saw counts from when it began, and grows old.
TEST(CoordinatorCore, NobodyIsAnsweredOnALookThatIsTooOld) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  h.looks = false;
  const Instant begun = h.now();
  h.core->OnLooked(begun, {}, h.now());
  EXPECT_THAT(h.Send(0, h.Request(in, 1))->leased, SizeIs(1));
  h.Advance(h.limits.look / 2);
  EXPECT_TRUE(h.core->WantsLook(h.now())) << "in good time";
  h.Advance(h.limits.look / 2);
  const auto parked = h.Send(0, h.Request(in, 1));
  EXPECT_EQ(parked->answers, 0);
  const Instant later = h.now();
  h.Advance(seconds(1));
  h.core->OnLooked(begun, {}, h.now());  // it was on its way for all that time
  EXPECT_EQ(parked->answers, 0) << "it had not arrived when that look began";
  const auto after = h.Send(0, h.Request(in, 1));  // releases the parked one
  h.core->OnLooked(later, {}, h.now());
  EXPECT_EQ(parked->answers, 1) << "slow as it was, that look began in time for it";
  EXPECT_EQ(after->answers, 0);
  h.core->OnLooked(h.now(), {}, h.now());
  EXPECT_EQ(after->answers, 1);
  EXPECT_FALSE(h.core->WantsLook(h.now()));
  h.core->OnLooked(h.now(), Error{Code::kInternal, "stat: Stale file handle"}, h.now());
  EXPECT_FALSE(h.core->WantsLook(h.now())) << "not again at once";
  h.Advance(milliseconds(200));
  EXPECT_TRUE(h.core->WantsLook(h.now()));
}

// The state folder was emptied while nodes lived on, or somebody made it up.
TEST(CoordinatorCore, AHigherEpochWithoutALogIsStale) {
  CoordinatorHarness h;
  h.Plan(1);
  EXPECT_EQ(h.Send(0, h.Request({2, 1}))->error->code, Code::kStale);
  EXPECT_FALSE(h.core->newest().superseded());
  EXPECT_THAT(h.Send(0, h.Request(h.Join(0), 1))->leased, SizeIs(1));
  h.files.FailOperation(1, {Code::kInternal, "stat: Stale file handle"});
  EXPECT_EQ(h.Send(0, h.Request({2, 1}))->error->code, Code::kStale);
  EXPECT_FALSE(h.core->newest().superseded());
}

TEST(CoordinatorCore, AResultIsSettledOnceDurableAndARepeatGetsTheSameAnswer) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  const auto said = h.Report(0, in, lease);
  EXPECT_EQ(said->answers, 0);
  const auto repeat = h.Report(0, in, lease);
  EXPECT_EQ(repeat->answers, 0);
  h.Sync();
  EXPECT_THAT(said->settled, ElementsAre(lease));
  EXPECT_THAT(repeat->settled, ElementsAre(lease));
  EXPECT_THAT(h.Report(0, in, lease)->settled, ElementsAre(lease));
  EXPECT_EQ(h.state.counts().succeeded, 1U);
}

TEST(CoordinatorCore, SkippedItemsAreToldRightInFrontOfTheirResult) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  job::ExchangeRequest request = h.Request(in);
  for (const uint32_t skipped : {0U, 1U}) {
    job::Finished done = h.Done(h.Lease(0, in));
    done.items_succeeded = 1 - skipped;
    done.items_skipped = skipped;
    request.finished.push_back(done);
  }
  h.Send(0, request);
  h.Sync();
  std::vector<std::string> told;
  const auto read = ledger::Ledger::Inspect(
      h.files, "/job/state", [&](const job::Record& record, const job::Place&, const job::Place&) {
        if (const auto* skipped = std::get_if<job::SkippedRecord>(&record)) {
          told.push_back(fmt::format("{} of {}", skipped->items, skipped->id));
          EXPECT_EQ(skipped->fence, request.finished[1].fence);
        } else if (const auto* result = std::get_if<job::ResultRecord>(&record)) {
          told.push_back(fmt::format("result {}", result->id));
        }
        return Status();
      });
  EXPECT_TRUE(read.ok());
  EXPECT_THAT(told, ElementsAre("result 0", "1 of 1", "result 1"));
  h.Start();
  EXPECT_EQ(h.state.counts().items_failed, 1U);
  EXPECT_EQ(h.state.counts().items_missing, 0U);
  EXPECT_EQ(h.state.verdict()->reason, "CompletedWithFailures");
}

TEST(CoordinatorCore, ReturnedMiniBatchesAreLeasedAgain) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  EXPECT_THAT(h.Report(0, in, lease, Kind::kReturned)->settled, ElementsAre(lease));
  EXPECT_EQ(h.Lease(0, in).id, lease.id);
  EXPECT_EQ(h.state.batches()[0].failed_attempts, 0U);
}

TEST(CoordinatorCore, AResultOfAFenceThatWasLeasedToAnotherNodeIsRefused) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation a = h.Join(0);
  const job::LeaseName lease = h.Lease(0, a);
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  const job::Incarnation again = h.Join(0, "a");
  EXPECT_EQ(h.Lease(1, h.Join(1)).id, lease.id);
  EXPECT_THAT(h.Report(0, again, lease)->refused, ElementsAre(lease));
  EXPECT_EQ(h.state.counts().succeeded, 0U);
}

TEST(CoordinatorCore, AFailedAttemptIsTriedAgainUntilTheTriesAreUsed) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 2;
  limits.rules.thresholds.allowed_failed_count = 0;
  CoordinatorHarness h(limits);
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  for (int attempt = 0; attempt < 2; ++attempt) {
    const job::LeaseName lease = h.Lease(0, in);
    EXPECT_EQ(lease.id, 0U);
    h.Report(0, in, lease, Kind::kFailed);
    EXPECT_EQ(h.state.verdict().has_value(), attempt == 1);
    h.Sync();
  }
  EXPECT_EQ(h.state.verdict()->reason, "AllowedFailedCountExceeded");
  EXPECT_EQ(h.core->phase(), Phase::kEnded);
}

TEST(CoordinatorCore, OffersAreAdoptedByTheirDigestOnly) {
  CoordinatorHarness h;
  h.Plan(2);
  job::Incarnation in = h.Join(0);
  const auto first = h.Send(0, h.Request(in, 1));
  h.Start();
  in = h.Join(0);
  job::ExchangeRequest request = h.Request(in);
  request.offered.push_back({first->leased[0].id, first->leased[0].fence, first->digests[0] + 1});
  EXPECT_THAT(h.Send(0, request)->refused, SizeIs(1));
  request.offered[0].digest = first->digests[0];
  const auto said = h.Send(0, request);
  ASSERT_THAT(said->adopted, SizeIs(1));
  EXPECT_EQ(said->adopted[0].fence.epoch, 2U);
  EXPECT_THAT(h.Report(0, in, {0, said->adopted[0].fence})->refused, IsEmpty());
  EXPECT_EQ(h.state.counts().succeeded, 1U);
  request.offered[0].id = 99;
  EXPECT_THAT(h.Send(0, request)->refused, SizeIs(1));
}

TEST(CoordinatorCore, PartsOfRowsAreTakenOnceAndInOrder) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  job::ExchangeRequest request = h.Request(in);
  request.parts.push_back({lease.id, lease.fence, 0, "one\n"});
  h.Send(0, request);
  h.Send(0, request);  // a repeat
  EXPECT_EQ(h.state.PartBytes(lease.id, lease.fence), 4U);
  job::ExchangeRequest last = h.Request(in);
  last.finished.push_back(h.Done(lease));
  last.finished[0].rows_offset = 4;
  h.Send(0, last);
  EXPECT_THAT(h.state.RowsOf(0), SizeIs(2));
}

TEST(CoordinatorCore, AResultWhosePartIsMissingIsRefused) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  job::ExchangeRequest request = h.Request(in);
  request.finished.push_back(h.Done(lease));
  request.finished[0].rows_offset = 4;
  EXPECT_THAT(h.Send(0, request)->refused, ElementsAre(lease));
  EXPECT_EQ(h.state.counts().succeeded, 0U);
}

TEST(CoordinatorCore, DrainLeasesNothingMore) {
  CoordinatorHarness h;
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  h.core->Drain(h.now());
  const auto said = h.Send(0, h.Request(in, 1, 1000));
  EXPECT_THAT(said->leased, IsEmpty());
  EXPECT_EQ(said->directive, job::Directive::kDrain);
  h.core->Leave(0, in, h.now());
  EXPECT_EQ(h.core->nodes().registered(), 0U);
}

TEST(CoordinatorCore, NoProgressFailsTheJobButNotWhileNobodyWorks) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  CoordinatorHarness h(limits);
  h.Plan(1);
  for (int i = 0; i < 20; ++i) h.Advance(seconds(1));
  EXPECT_EQ(h.core->phase(), Phase::kRunning);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  for (int i = 0; i < 7 && !h.state.verdict(); ++i) {
    h.Hold(0, in, lease);
    h.Advance(seconds(1));
  }
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
}

// Each process of each node says so, of more than one mini-batch, and nothing has succeeded.
TEST(CoordinatorCore, AnErrorOfTheProgramEndsTheJobOnceEveryProcessHasIt) {
  CoordinatorLimits limits;
  limits.nodes = 2;
  limits.spec.run_max_try = 3;
  for (const bool one_succeeds : {false, true}) {
    CoordinatorHarness h(limits);
    h.Plan(9);
    const job::Incarnation nodes[] = {h.Join(0), h.Join(1, "b")};
    const auto end = [&](uint32_t node, bool succeeds) {
      const job::LeaseName lease = h.Lease(node, nodes[node]);
      job::ExchangeRequest request = h.Request(nodes[node]);
      request.finished = {
          h.Done(lease, succeeds ? job::Finished::Kind::kSucceeded : job::Finished::Kind::kFailed)};
      request.finished[0].error_kind = "Exception";
      request.finished[0].message = "NameError: name 'x' is not defined (score.py:4)";
      h.Send(node, request);
      h.Sync();
    };
    if (one_succeeds) end(1, true);
    for (int i = 0; i < 4; ++i) end(0, false);
    EXPECT_FALSE(h.state.verdict()) << "it may be this node alone that has it";
    end(1, false);
    ASSERT_EQ(h.state.verdict().has_value(), !one_succeeds);
    if (one_succeeds) continue;
    EXPECT_EQ(h.state.verdict()->reason, "ScriptUnusable");
    EXPECT_THAT(h.state.verdict()->message, HasSubstr("NameError: name 'x' is not defined"));
    EXPECT_THAT(h.state.verdict()->message, HasSubstr("rows of /in/rows.csv"));
  }
}

TEST(CoordinatorCore, ANodeWithoutRoomIsNoLackOfProgress) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  CoordinatorHarness h(limits);
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const auto say = [&](job::ProcessEvent::Kind kind, const char* what) {
    job::ExchangeRequest request = h.Request(in);
    request.events.push_back({0, kind, what, ""});
    h.Send(0, request);
  };
  say(job::ProcessEvent::Kind::kNoRoom, "no space is left in /tmp/x");
  for (int i = 0; i < 20; ++i) {
    h.Send(0, h.Request(in));
    h.Advance(seconds(1));
  }
  EXPECT_FALSE(h.state.verdict());
  EXPECT_EQ(h.core->WaitsFor(), "node 0: no space is left in /tmp/x");
  say(job::ProcessEvent::Kind::kNoRoom, "");
  EXPECT_EQ(h.core->WaitsFor(), "");
  say(job::ProcessEvent::Kind::kRanOut, "OSError: [Errno 28]");
  for (int i = 0; i < 7 && !h.state.verdict(); ++i) {
    h.Send(0, h.Request(in));
    h.Advance(seconds(1));
  }
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
  EXPECT_THAT(h.state.verdict()->message,
              HasSubstr("node 0: the script ran out of space: OSError: [Errno 28]"));
}

TEST(CoordinatorCore, ANodeThatFetchesSideInputsMovesTheJobForAsLongAsBytesCome) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  CoordinatorHarness h(limits);
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const auto say = [&](const char* what, const char* bytes) {
    job::ExchangeRequest request = h.Request(in);
    request.events.push_back({0, job::ProcessEvent::Kind::kFetching, what, bytes});
    h.Send(0, request);
    h.Advance(seconds(1));
  };
  EXPECT_EQ(h.core->nodes().Fetching(), "");
  for (const char* bytes : {"1", "2", "3", "4", "5", "6", "7", "8"}) say("fetching a", bytes);
  EXPECT_FALSE(h.state.verdict());
  EXPECT_EQ(h.core->nodes().Fetching(), "node 0: fetching a");
  for (int i = 0; i < 7 && !h.state.verdict(); ++i) say("fetching a: refused", "8");
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
  EXPECT_THAT(h.state.verdict()->message, HasSubstr("node 0: fetching a: refused"));
}

TEST(CoordinatorCore, WhatNodesFetchIsToldForTheFirstOfThem) {
  CoordinatorLimits limits;
  limits.nodes = 2;
  CoordinatorHarness h(limits);
  const job::Incarnation first = h.Join(0);
  const job::Incarnation second = h.Join(1);
  const auto say = [&](uint32_t node, const job::Incarnation& in, const char* what) {
    job::ExchangeRequest request = h.Request(in);
    request.events.push_back({0, job::ProcessEvent::Kind::kFetching, what, "1"});
    h.Send(node, request);
  };
  say(0, first, "fetching a");
  say(1, second, "fetching b");
  EXPECT_EQ(h.core->nodes().Fetching(), "node 0: fetching a, and 1 other node");
  say(0, first, "");
  EXPECT_EQ(h.core->nodes().Fetching(), "node 1: fetching b");
  say(1, second, "");
  EXPECT_EQ(h.core->nodes().Fetching(), "");
}

TEST(CoordinatorCore, WhichStoreKeepsNodesWaitingIsToldForTheFirstOfThem) {
  CoordinatorLimits limits;
  limits.nodes = 2;
  CoordinatorHarness h(limits);
  const job::Incarnation first = h.Join(0);
  const job::Incarnation second = h.Join(1);
  const auto say = [&](uint32_t node, const job::Incarnation& in, const char* what) {
    job::ExchangeRequest request = h.Request(in);
    request.events.push_back({0, job::ProcessEvent::Kind::kStoreWait, what, ""});
    h.Send(node, request);
  };
  EXPECT_EQ(h.core->nodes().StoreWaits(), "");
  say(0, first, "throttled by the store s3://a");
  say(1, second, "throttled by the store s3://b");
  EXPECT_EQ(h.core->nodes().StoreWaits(),
            "node 0: throttled by the store s3://a, and 1 other node");
  EXPECT_EQ(h.core->WaitsFor(), "") << "the job goes on";
  say(0, first, "");
  EXPECT_EQ(h.core->nodes().StoreWaits(), "node 1: throttled by the store s3://b");
  h.Join(1);
  EXPECT_EQ(h.core->nodes().StoreWaits(), "") << "an agent that registers tells it anew";
}

TEST(CoordinatorCore, ASideInputThatIsGoneEndsTheJobOnce) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  job::ExchangeRequest request = h.Request(in);
  request.events.push_back(
      {0, job::ProcessEvent::Kind::kFetchFailed, "the side input model: s3://m/w was deleted", ""});
  h.Send(0, request);
  h.Sync();
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "InputUnusable");
  EXPECT_EQ(h.state.verdict()->message, "the side input model: s3://m/w was deleted");
}

TEST(CoordinatorCore, AModelThatTakesSixMinutesIsLoadedAndSaysWhereItIs) {
  CoordinatorLimits limits;
  limits.nodes = 2;
  CoordinatorHarness h(limits);
  h.Plan(2);
  const std::vector<job::Incarnation> nodes = {h.Join(0), h.Join(1, "b")};
  int asked = 0;
  for (int i = 0; i < 360; ++i) {
    for (const uint32_t node : {0U, 1U}) {
      job::ExchangeRequest request = h.Request(nodes[node]);
      if (i == 35) {
        request.events.push_back(
            {0, job::ProcessEvent::Kind::kWhere, "init score.py:3 (score.py:3)", ""});
      }
      const auto said = h.Send(node, request);
      const bool where = said->directive == job::Directive::kWhere;
      if (where) ++asked;
      EXPECT_FALSE(where && node == 1) << "one is enough";
    }
    h.Advance(seconds(1));
    if (i == 8) {
      EXPECT_EQ(h.core->InitText(h.now()), "");
    }
    if (i == 93) {
      EXPECT_EQ(h.core->InitText(h.now()),
                "init() has been running for 1m30s on 2 nodes; node 0, process000: init score.py:3 "
                "(score.py:3)");
    }
  }
  EXPECT_EQ(asked, 4);
  ASSERT_FALSE(h.state.verdict()) << h.state.verdict()->message;
  job::ExchangeRequest ready = h.Request(nodes[0], 1);
  ready.events.push_back({0, job::ProcessEvent::Kind::kReady, "", ""});
  EXPECT_THAT(h.Send(0, ready)->leased, SizeIs(1));
  EXPECT_EQ(h.core->InitText(h.now()), "init() has been running for 6m00s on 1 node");
  for (int i = 0; i < 299; ++i) {
    for (const uint32_t node : {0U, 1U}) h.Send(node, h.Request(nodes[node]));
    h.Advance(seconds(1));
  }
  EXPECT_FALSE(h.state.verdict()) << "mini-batches have all of their time";
  for (int i = 0; i < 3 && !h.state.verdict(); ++i) h.Advance(seconds(1));
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
}

// It is not told again that they are ready.
TEST(CoordinatorCore, ANewCoordinatorSeesByWhatANodeTakesOrHoldsThatItIsReady) {
  for (const bool takes : {true, false}) {
    CoordinatorHarness h;
    h.Plan(1);
    const job::Incarnation before = h.Join(0);
    const job::LeaseName lease = takes ? job::LeaseName{} : h.Lease(0, before);
    h.Start();
    const job::Incarnation in = h.Join(0);
    EXPECT_EQ(h.core->nodes().in_init().nodes, 1U);
    h.Send(0, h.Request(in));
    EXPECT_EQ(h.core->nodes().in_init().nodes, 1U);
    job::ExchangeRequest request = h.Request(in, takes ? 1 : 0);
    if (!takes) request.offered.push_back({lease.id, lease.fence, 0});
    h.Send(0, request);
    EXPECT_EQ(h.core->nodes().in_init().nodes, 0U);
    EXPECT_TRUE(h.core->nodes().any_ready());
  }
}

// Its agent was stopped, or its host is frozen: nobody would ever hear of it otherwise.
TEST(CoordinatorCore, ANodeThatFallsSilentEndsTheJobInTheEnd) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(30);
  for (const bool left : {false, true}) {
    CoordinatorHarness h(limits);
    h.Plan(1);
    const job::Incarnation in = h.Join(0);
    h.Lease(0, in);
    if (left) h.core->Leave(0, in, h.now());
    for (int i = 0; i < 31; ++i) h.Advance(seconds(1));
    EXPECT_EQ(h.core->nodes().registered(), 0U);
    ASSERT_EQ(h.state.verdict().has_value(), !left);
    if (left) continue;
    EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
    EXPECT_THAT(h.state.verdict()->message, HasSubstr("node 0 has said nothing"));
  }
}

// With partition keys nothing of an input is planned before all of it is listed.
TEST(CoordinatorCore, WhereAllThatIsPlannedIsDoneItIsTheListingThatIsSlow) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  limits.spec.first_task_creation_timeout = seconds(9);
  for (const bool planned : {true, false}) {
    CoordinatorHarness h(limits);
    const job::Incarnation in = h.Join(0);
    if (planned) {
      h.Plan(1, false);
      h.Report(0, in, h.Lease(0, in));
      h.Sync();
    }
    for (int i = 0; i < 9; ++i) {
      h.Send(0, h.Request(in, 1));
      h.Advance(seconds(1));
      EXPECT_FALSE(h.state.verdict()) << i;
    }
    h.Advance(seconds(1));
    ASSERT_TRUE(h.state.verdict());
    EXPECT_EQ(h.state.verdict()->reason, "FirstTaskTimeout");
    EXPECT_THAT(h.state.verdict()->message, HasSubstr("firstTaskCreationTimeoutSeconds"));
  }
}

// No job fails sooner by its listing than by its work.
TEST(CoordinatorCore, ALaterListingHasTheLongerOfTheTwoTimes) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  limits.spec.first_task_creation_timeout = seconds(2);
  CoordinatorHarness h(limits);
  const job::Incarnation in = h.Join(0);
  h.Plan(1, false);
  h.Report(0, in, h.Lease(0, in));
  h.Sync();
  for (int i = 0; i < 5; ++i) {
    h.Send(0, h.Request(in, 1));
    h.Advance(seconds(1));
    EXPECT_FALSE(h.state.verdict()) << i;
  }
  h.Plan(1);
  h.Advance(seconds(1));
  EXPECT_EQ(h.core->phase(), Phase::kRunning);
  EXPECT_THAT(h.Send(0, h.Request(in, 1))->leased, SizeIs(1));
}

TEST(CoordinatorCore, ANodeThatGaveUpFailsTheJobWhenItWasTheLast) {
  CoordinatorHarness h;
  h.Plan(1);
  job::ExchangeRequest request = h.Request(h.Join(0));
  request.events.push_back({0, job::ProcessEvent::Kind::kGaveUp, "no model", ""});
  h.Send(0, request);
  EXPECT_EQ(h.state.verdict()->reason, "InitFailed");
}

TEST(CoordinatorCore, AFrozenCoordinatorExpiresNobodyWhenItWakes) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName lease = h.Lease(0, in);
  h.Advance(seconds(60));
  EXPECT_EQ(h.core->running(), 1U);
  EXPECT_EQ(h.core->nodes().registered(), 1U);
  EXPECT_THAT(h.Hold(0, in, lease)->refused, IsEmpty());
}

TEST(CoordinatorCore, TimeThatTheCoordinatorLostIsNoLackOfProgress) {
  for (const bool planned : {true, false}) {
    CoordinatorHarness h;
    const job::Incarnation in = h.Join(0);
    if (planned) h.Plan(1);
    const job::LeaseName lease = planned ? h.Lease(0, in) : job::LeaseName{};
    h.Advance(seconds(3600));  // stopped, or waiting for a mount
    EXPECT_EQ(h.core->phase(), Phase::kRunning) << h.state.verdict()->message;
    // Its own time counts on.
    for (int i = 0; i < 700 && !h.state.verdict(); ++i) {
      if (planned) h.Hold(0, in, lease);
      h.Advance(seconds(1));
    }
    ASSERT_TRUE(h.state.verdict());
    EXPECT_EQ(h.state.verdict()->reason, planned ? "NoProgress" : "FirstTaskTimeout");
  }
}

TEST(CoordinatorCore, WhatIsFinishedRightBeforeALateTickIsProgressOfNow) {
  CoordinatorLimits limits;
  limits.spec.progress_update_timeout = seconds(5);
  CoordinatorHarness h(limits);
  h.Plan(2);
  const job::Incarnation in = h.Join(0);
  const job::LeaseName first = h.Lease(0, in);
  h.Pass(seconds(3600));
  h.Report(0, in, first);
  h.Sync();
  const job::LeaseName second = h.Lease(0, in);
  h.Advance(seconds(0));
  for (int i = 0; i < 7 && !h.state.verdict(); ++i) {
    h.Hold(0, in, second);
    h.Advance(seconds(1));
  }
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(h.state.verdict()->reason, "NoProgress");
}

TEST(CoordinatorCore, ASilentNodeIsForgottenAndItsLeaseExpires) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  h.Lease(0, in);
  for (int i = 0; i < 11; ++i) h.Advance(seconds(1));
  EXPECT_EQ(h.core->nodes().registered(), 0U);
  EXPECT_EQ(h.core->running(), 0U);
  EXPECT_EQ(h.core->pending(), 1U);
}

// --- found by the simulation

TEST(CoordinatorCore, NobodyIsToldOfAVerdictBeforeItIsDurable) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const job::Incarnation other = h.Join(1);
  const job::LeaseName lease = h.Lease(0, in);
  const auto parked = h.Send(1, h.Request(other, 1, 20'000));
  h.Report(0, in, lease);
  ASSERT_TRUE(h.state.verdict());
  EXPECT_EQ(parked->answers, 0);
  EXPECT_EQ(h.Send(1, h.Request(other))->answers, 0);
  h.Sync();
  EXPECT_EQ(parked->directive, job::Directive::kFinish);
}

TEST(CoordinatorCore, AVerdictWaitsForALookThatBeganOnceItWasDurable) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  h.Report(0, in, h.Lease(0, in));
  h.looks = false;
  const Instant before = h.now();
  h.Pass(milliseconds(1));
  h.Sync();
  h.Sync();
  ASSERT_EQ(h.core->phase(), Phase::kDeciding);
  EXPECT_TRUE(h.core->WantsLook(h.now()));
  h.core->OnLooked(before, {}, h.now());
  EXPECT_EQ(h.core->phase(), Phase::kDeciding) << "it may not have seen who read the verdict";
  EXPECT_TRUE(h.core->WantsLook(h.now()));
  h.core->OnLooked(h.now(), {}, h.now());
  EXPECT_EQ(h.core->phase(), Phase::kFinalizing);
}

TEST(CoordinatorCore, AVerdictWaitsUntilItCanBeSeenThatNoNewerEpochIsThere) {
  for (const bool newer : {false, true}) {
    CoordinatorHarness h;
    h.Plan(1);
    const job::Incarnation in = h.Join(0);
    const auto said = h.Report(0, in, h.Lease(0, in));
    ASSERT_TRUE(h.ledger->Flush().ok());
    h.files.FailOperation(1, {Code::kInternal, "stat: Stale file handle"});
    h.core->OnDurable(h.now());
    h.Look();
    EXPECT_FALSE(h.core->newest().superseded());
    EXPECT_EQ(h.core->phase(), Phase::kDeciding);
    EXPECT_EQ(said->answers, 0);
    if (newer) h.files.Put("/job/state/epochs/" + ledger::LogName(2), "");
    h.Advance(seconds(1));
    EXPECT_EQ(h.core->newest().superseded(), newer);
    EXPECT_EQ(h.core->phase(), newer ? Phase::kDeciding : Phase::kFinalizing);
    EXPECT_EQ(said->answers, newer ? 0 : 1);
  }
}

TEST(CoordinatorCore, AResultOfAMiniBatchThatWasLostTooOftenIsNotCalledDurable) {
  CoordinatorLimits limits;
  limits.max_losses = 1;
  CoordinatorHarness h(limits);
  h.Plan(2);
  job::Incarnation in = h.Join(0, "first");
  const job::LeaseName lease = h.Lease(0, in);
  h.Hold(0, in, lease);
  h.Join(0, "second");
  ASSERT_EQ(h.state.counts().failed, 1U);
  in = h.Join(0, "first");
  const auto said = h.Report(0, in, lease);
  h.Sync();
  EXPECT_THAT(said->settled, IsEmpty());
  EXPECT_THAT(said->refused, ElementsAre(lease));
}

TEST(CoordinatorCore, ALateResultOfAnEarlierGenerationIsNotCalledDurable) {
  CoordinatorLimits limits;
  limits.spec.run_max_try = 1;
  CoordinatorHarness h(limits);
  h.Plan(2);
  const job::LeaseName lease = h.Lease(0, h.Join(0));
  h.Report(0, {1, 1}, lease, Kind::kFailed);
  h.Sync();
  h.Start(2);
  const job::Incarnation in = h.Join(0);
  const auto said = h.Report(0, in, lease);
  EXPECT_THAT(said->settled, IsEmpty());
  EXPECT_THAT(said->adopted, SizeIs(1));
}

TEST(CoordinatorCore, WhatANodeSaysOfAFailureIsBounded) {
  CoordinatorHarness h;
  h.Plan(1);
  const job::Incarnation in = h.Join(0);
  const std::string text = std::string(4095, 'x') + "\u00e9" + std::string(10'000, 'y');
  job::ExchangeRequest request = h.Request(in);
  request.finished.push_back(h.Done(h.Lease(0, in), Kind::kFailed));
  request.finished[0].message = text;
  h.Send(0, request);
  ASSERT_EQ(h.state.errors().total(), 1U);
  EXPECT_EQ(h.state.errors().Top(1)[0].message, std::string(4095, 'x'));
  request = h.Request(in);
  request.events.push_back({0, job::ProcessEvent::Kind::kGaveUp, text, ""});
  h.Send(0, request);
  ASSERT_TRUE(h.state.verdict());
  EXPECT_THAT(h.state.verdict()->message, EndsWith(": " + std::string(4095, 'x')));
}

TEST(CoordinatorCore, AFailedAttemptThatIsToldAgainAfterAnotherOneCountsOnce) {
  CoordinatorHarness h;
  h.Plan(1);
  job::Incarnation in = h.Join(0);
  const job::LeaseName first = h.Lease(0, in);
  h.Report(0, in, first, Kind::kFailed);
  h.Sync();
  h.Report(0, in, h.Lease(0, in), Kind::kFailed);
  h.Sync();
  h.Start();
  in = h.Join(0);
  const auto said = h.Report(0, in, first, Kind::kFailed);
  h.Sync();
  EXPECT_THAT(said->settled, ElementsAre(first));
  EXPECT_EQ(h.state.batches()[0].failed_attempts, 2U);
}

TEST(CoordinatorCore, NothingIsPlannedAfterTheVerdict) {
  CoordinatorHarness h;
  h.Plan(2, false);
  ControlRequest cancel;
  cancel.cancel = true;
  h.core->Control(cancel, h.now());
  h.Sync();
  ASSERT_TRUE(h.state.verdict());
  h.Plan(3, true);
  EXPECT_EQ(h.state.counts().planned, 2U) << "reports are made of a state that changes no more";
}

}  // namespace
}  // namespace parallelrun::coordinator
