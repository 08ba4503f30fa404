#include "output/output_claim.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "ledger/chain_note.h"
#include "ledger/claim.h"
#include "ledger/ledger.h"
#include "tests/support/fault_files.h"

namespace parallelrun::output {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kOut = "/out";
const std::string kClaim = "/out/.rows.txt.parallelrun-claim";

class OutputClaimTest : public ::testing::Test {
 protected:
  // A job with a ledger of its own, and its claim's options.
  ClaimOptions JobOf(const std::string& name, uint64_t run, Files& files) {
    ledger::LedgerOptions ledger;
    ledger.state_folder = "/" + name + "/state";
    ledger.output_folder = kOut;
    ledger.output_file = "rows.txt";
    ledger.nonce = run + 100;
    ledger.new_run_id = run;
    Result<std::unique_ptr<ledger::Ledger>> opened = ledger::Ledger::Claim(
        files, ledger,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    ClaimOptions options;
    options.owner = {name,   "uid-" + name, run, (*opened)->epoch(),    ledger.state_folder, "",
                     "host", false,         "",  "2026-11-21T09:00:00Z"};
    options.output_folder = kOut;
    options.output_file = "rows.txt";
    options.at_work = [this](const std::string& state) { return state == at_work_; };
    ledgers_.push_back(std::move(*opened));
    return options;
  }
  ClaimOptions Job(const std::string& name, uint64_t run) { return JobOf(name, run, files_); }

  FaultFiles files_;
  std::vector<std::unique_ptr<ledger::Ledger>> ledgers_;
  std::string at_work_;  // state folder that a command holds
};

TEST_F(OutputClaimTest, AFreeOutputIsTakenAndGivenBack) {
  const ClaimOptions job = Job("a", 1);
  const Result<HeldOutput> held = ClaimOutput(files_, job);
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_EQ(held->path, kClaim);
  files_.Crash(CrashMode::kLoseAll);
  EXPECT_EQ(files_.Contents(kClaim), ClaimText(job.owner));
  EXPECT_TRUE(KeepHeld(files_, *held).ok());
  ASSERT_TRUE(ReleaseOutput(files_, *held).ok());
  EXPECT_FALSE(files_.Has(kClaim));
}

TEST_F(OutputClaimTest, ARunAtWorkIsNamed) {
  const Result<HeldOutput> held = ClaimOutput(files_, Job("a", 1));
  at_work_ = "/a/state";
  const Result<HeldOutput> other = ClaimOutput(files_, Job("b", 2));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, Code::kExists);
  EXPECT_THAT(other.error().message, AllOf(HasSubstr("/out/rows.txt"), HasSubstr("at work: job a"),
                                           HasSubstr("uid-a"), HasSubstr("/a/state")));
  EXPECT_TRUE(KeepHeld(files_, *held).ok());
}

// One whose ledger lies in a store has a note of it in its state folder.
TEST_F(OutputClaimTest, ARunWithItsLedgerInAStoreIsKnownByItsNote) {
  ClaimOptions a = Job("a", 1);
  ASSERT_TRUE(files_.MakeFolders("/c/state").ok());
  a.owner.state_folder = "/c/state";
  a.owner.run_id = 7;
  a.owner.epoch = 3;
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  at_work_ = "/c/state";
  ASSERT_TRUE(ledger::WriteChainNote(files_, "/c/state", {"s3://b/c", 3, 7}).ok());
  EXPECT_FALSE(ClaimOutput(files_, Job("b", 2)).ok());
  // It has begun anew there, and this claim is left of before.
  ASSERT_TRUE(ledger::WriteChainNote(files_, "/c/state", {"s3://b/c", 4, 8}).ok());
  EXPECT_TRUE(ClaimOutput(files_, Job("d", 4)).ok());
}

// No killed job keeps its output for good; and if it was not dead, it publishes nothing any more.
TEST_F(OutputClaimTest, AnOwnerThatIsOverLosesClaimAndTokens) {
  const Result<HeldOutput> held = ClaimOutput(files_, Job("a", 1));
  const ClaimOptions b = Job("b", 2);
  const std::string token = ledgers_[0]->token_path();
  ASSERT_TRUE(files_.Has(token));
  const Result<HeldOutput> taken = ClaimOutput(files_, b);
  ASSERT_TRUE(taken.ok()) << taken.error().message;
  EXPECT_FALSE(files_.Has(token));
  EXPECT_TRUE(files_.Has(ledgers_[1]->token_path()));
  const Status still = KeepHeld(files_, *held);
  ASSERT_FALSE(still.ok());
  EXPECT_THAT(still.error().message, HasSubstr("job b"));
  // A release of what is another one's by now changes nothing.
  ASSERT_TRUE(ReleaseOutput(files_, *held).ok());
  EXPECT_EQ(files_.Contents(kClaim), ClaimText(b.owner));
}

TEST_F(OutputClaimTest, TheNextEpochOfARunTakesItsClaim) {
  ASSERT_TRUE(ClaimOutput(files_, Job("a", 1)).ok());
  at_work_ = "/a/state";  // by the command that has started this one
  ClaimOptions next = Job("a", 1);
  EXPECT_EQ(next.owner.epoch, 2U);
  next.owner.uid = "another";  // a resume
  EXPECT_TRUE(ClaimOutput(files_, next).ok());
}

TEST_F(OutputClaimTest, WhoseStateIsGoneIsOverOnTheSameHostOnly) {
  ASSERT_TRUE(ClaimOutput(files_, Job("a", 1)).ok());
  files_.Drop("/a/state/epochs/000001.log");
  at_work_ = "/a/state";
  ClaimOptions b = Job("b", 2);
  b.owner.host = "elsewhere";
  const Result<HeldOutput> refused = ClaimOutput(files_, b);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("remove " + kClaim));
  b.owner.host = "host";
  EXPECT_TRUE(ClaimOutput(files_, b).ok());
}

TEST_F(OutputClaimTest, APodIsOverWithItsVerdict) {
  ClaimOptions a = Job("a", 1);
  a.owner.in_pod = true;
  ASSERT_TRUE(ledgers_[0]->Begin(job::SettingsRecord{}, std::nullopt).ok());
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  ClaimOptions b = Job("b", 2);
  b.owner.in_pod = true;
  ASSERT_FALSE(ClaimOutput(files_, b).ok());
  job::VerdictRecord verdict;
  verdict.outcome = job::Outcome::kFailed;
  ledgers_[0]->Append(verdict);
  ASSERT_TRUE(ledgers_[0]->Flush().ok());
  EXPECT_TRUE(ClaimOutput(files_, b).ok());
}

// Its volume has another path in this pod, but lies beside the output.
TEST_F(OutputClaimTest, TheStateIsFoundBesideTheOutput) {
  ClaimOptions a = Job("a", 1);
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  a.owner.state_folder = "/mnt/elsewhere/state";
  a.owner.near_state = "../a/state";
  files_.Put(kClaim, ClaimText(a.owner));
  ClaimOptions b = Job("b", 2);
  b.owner.host = "another";
  at_work_ = "/a/state";
  EXPECT_THAT(ClaimOutput(files_, b).error().message, HasSubstr("at work"));
  at_work_ = "";
  EXPECT_TRUE(ClaimOutput(files_, b).ok());
}

// The operator starts no job while another one with that address is not over.
TEST_F(OutputClaimTest, WhatTheOperatorHasSeenToBeOverIsOverForAFirstStartAlone) {
  ClaimOptions a = Job("a", 1);
  a.owner.in_pod = true;
  a.owner.address = "[ns, claim, path]";
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  ClaimOptions b = Job("b", 2);
  b.owner.in_pod = true;
  b.owner.address = a.owner.address;
  EXPECT_FALSE(ClaimOutput(files_, b).ok()) << "it has begun before a did";
  b.first_start = true;
  EXPECT_TRUE(ClaimOutput(files_, b).ok());
}

TEST_F(OutputClaimTest, AUsersFileOfThatNameIsNotTouched) {
  for (const char* text : {"my own\n", "{}", "{\"parallelrunClaim\":2}"}) {
    FaultFiles files;
    const ClaimOptions job = JobOf("a", 1, files);
    files.Put(kClaim, text);
    const Result<HeldOutput> held = ClaimOutput(files, job);
    ASSERT_FALSE(held.ok());
    EXPECT_EQ(held.error().code, Code::kInvalid);
    EXPECT_THAT(held.error().message, HasSubstr("move it away"));
    EXPECT_EQ(files.Contents(kClaim), text);
  }
}

// Where the claim cannot appear at one go, a crash may leave a part of it.
TEST_F(OutputClaimTest, ATornClaimIsTakenOver) {
  const ClaimOptions job = Job("a", 1);
  const std::string whole = ClaimText(job.owner);
  for (const size_t size : {size_t{0}, size_t{5}, whole.size() / 2}) {
    files_.Put(kClaim, whole.substr(0, size));
    EXPECT_TRUE(ClaimOutput(files_, job).ok()) << size;
  }
}

TEST_F(OutputClaimTest, WithoutARenameThatTellsItIsMadeByExclusiveCreate) {
  files_.SetRenameNewWorks(false);
  const Result<HeldOutput> held = ClaimOutput(files_, Job("a", 1));
  ASSERT_TRUE(held.ok()) << held.error().message;
  at_work_ = "/a/state";
  EXPECT_FALSE(ClaimOutput(files_, Job("b", 2)).ok());
  at_work_ = "";
  EXPECT_TRUE(ClaimOutput(files_, Job("b", 2)).ok());
}

TEST_F(OutputClaimTest, AnEndAtAnyOperationLeavesNothingThatStays) {
  for (uint64_t n = 1; n < 20; ++n) {
    FaultFiles files;
    const ClaimOptions a = JobOf("a", 1, files);
    files.FailOperation(n, {Code::kInternal, "died"}, FaultMoment::kBefore);
    static_cast<void>(ClaimOutput(files, a).ok());
    files.ClearFaults();
    files.Crash(CrashMode::kLoseSome);
    const ClaimOptions b = JobOf("b", 2, files);
    ASSERT_TRUE(ClaimOutput(files, b).ok()) << n;
    const std::vector<std::string> names = *files.List(kOut);
    EXPECT_EQ(std::count_if(names.begin(), names.end(),
                            [](const std::string& name) {
                              return name.find("parallelrun-claim") != std::string::npos;
                            }),
              1)
        << n;
  }
}

// Whatever a second run does between two operations of the first: one of them has the output, as it
// learns when it looks again.
TEST_F(OutputClaimTest, OfTwoTakeOversAtOnceOneHoldsTheOutput) {
  for (uint64_t n = 1; n < 20; ++n) {
    FaultFiles files;
    ASSERT_TRUE(ClaimOutput(files, JobOf("dead", 1, files)).ok());
    const ClaimOptions a = JobOf("a", 2, files);
    const ClaimOptions b = JobOf("b", 3, files);
    std::optional<Result<HeldOutput>> second;
    files.RunBefore(n, [&] {
      second = ClaimOutput(files, b);
      at_work_ = second->ok() ? "/b/state" : "";
    });
    const Result<HeldOutput> first = ClaimOutput(files, a);
    at_work_ = "";
    int holders = first.ok() && KeepHeld(files, *first).ok() ? 1 : 0;
    holders += second && second->ok() && KeepHeld(files, **second).ok() ? 1 : 0;
    EXPECT_EQ(holders, 1) << n;
  }
}

TEST_F(OutputClaimTest, WhatIsLeftGoesIfItIsOwn) {
  const ClaimOptions a = Job("a", 1);
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  files_.Put("/out/.rows.txt.backup.tmp", "a user's");
  files_.Put("/out/.rows.txt.00000000000000aa.1.tmp", "another run's");
  ASSERT_TRUE(RemoveLeftBeside(files_, "/a/state", kOut, "rows.txt", "rows.txt").ok());
  EXPECT_THAT(*files_.List(kOut),
              ElementsAre(".rows.txt.00000000000000aa.1.tmp", ".rows.txt.backup.tmp"));
  ASSERT_TRUE(ClaimOutput(files_, a).ok());
  ASSERT_TRUE(RemoveLeftBeside(files_, "/b/state", kOut, "rows.txt", "rows.txt").ok());
  EXPECT_TRUE(files_.Has(kClaim));
}

TEST(OutputClaimText, IsReadBack) {
  const OutputOwner owner = {"ns/a", "u", 255,  7,    "/state \xff",
                             "../s", "h", true, "[]", "2026-11-21T09:00:00Z"};
  const std::optional<OutputOwner> read = ParseClaim(ClaimText(owner));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->job, "ns/a");
  EXPECT_EQ(read->run_id, 255U);
  EXPECT_EQ(read->epoch, 7U);
  EXPECT_TRUE(read->in_pod);
  for (const char* bad : {"{\"parallelrunClaim\":1,\"run\":\"xx\",\"epoch\":1}",
                          "{\"parallelrunClaim\":1,\"run\":\"00000000000000ff\",\"epoch\":-1}",
                          "{\"parallelrunClaim\":1,\"run\":\"00000000000000ff\"}",
                          "{\"parallelrunClaim\":1,\"run\":3,\"epoch\":1}"}) {
    EXPECT_FALSE(ParseClaim(bad)) << bad;
  }
}

}  // namespace
}  // namespace parallelrun::output
