#include "output/store/store_claim.h"

#include <gmock/gmock.h>

#include <memory>

#include "ledger/ledger.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_write_store.h"

namespace parallelrun::output {
namespace {

using ::testing::HasSubstr;
using Fault = MemoryWriteStore::Fault;

constexpr char kClaimed[] = "out/rows.txt";
constexpr char kClaimObject[] = "out/.rows.txt.parallelrun-claim";

class StoreClaimTest : public ::testing::Test {
 protected:
  ClaimOptions Job(const std::string& name, uint64_t run) {
    ledger::LedgerOptions ledger;
    ledger.state_folder = "/" + name + "/state";
    ledger.nonce = run + 100;
    ledger.new_run_id = run;
    Result<std::unique_ptr<ledger::Ledger>> opened = ledger::Ledger::Claim(
        files_, ledger,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    ClaimOptions options;
    options.owner = {name,   "uid-" + name, run, (*opened)->epoch(),    ledger.state_folder, "",
                     "host", false,         "",  "2026-11-21T09:00:00Z"};
    options.at_work = [this](const std::string& state) { return state == at_work_; };
    return options;
  }
  Result<HeldOutput> Claim(const ClaimOptions& options) {
    return ClaimInStore(store_, files_, kClaimed, options);
  }

  FaultFiles files_;
  MemoryWriteStore store_;
  std::string at_work_;
};

TEST_F(StoreClaimTest, AFreeOutputIsTakenAndGivenBack) {
  const ClaimOptions job = Job("a", 1);
  const auto held = Claim(job);
  ASSERT_TRUE(held.ok()) << held.error().message;
  EXPECT_EQ(held->path, kClaimObject);
  EXPECT_EQ(store_.Find(kClaimObject)->bytes, ClaimText(job.owner));
  EXPECT_EQ(store_.uploads(), 0u) << "the probe has left nothing";
  EXPECT_TRUE(KeepInStore(store_, *held).ok());
  ASSERT_TRUE(ReleaseInStore(store_, *held).ok());
  EXPECT_EQ(store_.objects(), 0u);
}

TEST_F(StoreClaimTest, OfTwoRunsTheSecondIsRefusedAndNamesTheFirst) {
  ASSERT_TRUE(Claim(Job("a", 1)).ok());
  at_work_ = "/a/state";
  const auto second = Claim(Job("b", 2));
  EXPECT_EQ(second.error().code, Code::kExists);
  EXPECT_THAT(second.error().message, HasSubstr("s3://bucket/out/rows.txt is what another run"));
  EXPECT_THAT(second.error().message, HasSubstr("job a (uid uid-a"));
  at_work_.clear();
  const auto after = Claim(Job("b", 2));
  ASSERT_TRUE(after.ok()) << after.error().message;
  EXPECT_THAT(store_.Find(kClaimObject)->bytes, HasSubstr("uid-b"));
}

TEST_F(StoreClaimTest, OneOfAnotherHostSaysWhatToRemove) {
  ClaimOptions job = Job("a", 1);
  ASSERT_TRUE(Claim(job).ok());
  ClaimOptions other = Job("b", 2);
  other.owner.host = "another";
  store_.Write(kClaimObject, ClaimText([&] {
                 OutputOwner far = job.owner;
                 far.state_folder = "/nowhere";
                 return far;
               }()));
  const auto refused = Claim(other);
  EXPECT_THAT(refused.error().message,
              HasSubstr("remove s3://bucket/out/.rows.txt.parallelrun-claim and start again"));
}

TEST_F(StoreClaimTest, ItsOwnerIsTold) {
  EXPECT_FALSE(OwnerInStore(store_, kClaimed)->has_value());
  const ClaimOptions job = Job("a", 1);
  ASSERT_TRUE(Claim(job).ok());
  const auto owner = OwnerInStore(store_, kClaimed);
  ASSERT_TRUE(owner.ok() && *owner);
  EXPECT_EQ((*owner)->uid, "uid-a");
  EXPECT_EQ((*owner)->epoch, job.owner.epoch);
  store_.Write(kClaimObject, "a user's");
  EXPECT_FALSE(OwnerInStore(store_, kClaimed)->has_value());
}

TEST_F(StoreClaimTest, WhatNoRunHasMadeIsNotTouched) {
  store_.Write(kClaimObject, "a user's");
  const auto refused = Claim(Job("a", 1));
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(store_.Find(kClaimObject)->bytes, "a user's");
}

TEST_F(StoreClaimTest, OfTwoThatTakeOverAtOnceOneSucceeds) {
  const ClaimOptions a = Job("a", 1);
  ASSERT_TRUE(Claim(a).ok());
  const ClaimOptions b = Job("b", 2);
  const ClaimOptions c = Job("c", 3);
  // The other one comes between the look and the condition.
  bool came = false;
  store_.SetFaults([&](size_t, const std::string& what) {
    if (what == "put" && !came && store_.requests().size() > 8) {
      came = true;
      store_.Write(kClaimObject, ClaimText(c.owner));
      at_work_ = "/c/state";
    }
    return Fault::kNone;
  });
  const auto lost = Claim(b);
  EXPECT_EQ(lost.error().code, Code::kExists);
  EXPECT_THAT(lost.error().message, HasSubstr("job c"));
}

TEST_F(StoreClaimTest, ALostAnswerIsKnownByTheText) {
  bool lost = false;
  store_.SetFaults([&](size_t, const std::string& what) {
    if (what != "put" || lost) return Fault::kNone;
    lost = true;
    return Fault::kLostAnswer;
  });
  const auto held = Claim(Job("a", 1));
  EXPECT_TRUE(held.ok()) << held.error().message;
}

TEST_F(StoreClaimTest, AStoreThatIgnoresConditionsIsRefused) {
  store_.IgnoreConditions();
  const auto refused = Claim(Job("a", 1));
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message,
              HasSubstr("s3://bucket/out/rows.txt: its store ignores the condition of a write"));
  EXPECT_EQ(store_.objects(), 0u) << "nothing stays";
}

TEST_F(StoreClaimTest, WhatAKilledRunLeftGoesWithItsCommand) {
  const ClaimOptions job = Job("a", 1);
  ASSERT_TRUE(Claim(job).ok());
  ASSERT_TRUE(RemoveClaimInStore(store_, files_, "/b/state", kClaimed).ok());
  EXPECT_NE(store_.Find(kClaimObject), nullptr) << "another's";
  ASSERT_TRUE(RemoveClaimInStore(store_, files_, "/a/state", kClaimed).ok());
  EXPECT_EQ(store_.Find(kClaimObject), nullptr);
}

}  // namespace
}  // namespace parallelrun::output
