// The pool that talks to coordinators, against real servers with the certificates of a job.
#include "operator/coordinator_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/operator/fake_coordinator.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

// Counts what the pool tells of jobs, and waits for it.
class Told {
 public:
  CoordinatorPool::Changed callback() {
    return [this](const std::string& job) {
      const std::lock_guard lock(mutex_);
      ++counts_[job];
      changed_.notify_all();
    };
  }
  void WaitFor(const std::string& job, int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                                  [&] { return counts_[job] >= count; }))
        << job << " was told " << counts_[job] << " times";
  }
  int count(const std::string& job) {
    const std::lock_guard lock(mutex_);
    return counts_[job];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> counts_;
};

constexpr Duration kPeriod = milliseconds(20);

CoordinatorPoolOptions Quick() {
  CoordinatorPoolOptions options;
  options.longest_backoff = milliseconds(50);
  options.quiet = seconds(3600);
  return options;
}

TEST(CoordinatorPool, PullsWithTheOperatorsTokenAndTheJobsName) {
  FakeCoordinator coordinator("aaaaa");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("team/digits", coordinator.address(), kPeriod);
  told.WaitFor("team/digits", 1);
  const auto answer = pool.Latest("team/digits");
  ASSERT_TRUE(answer && answer->progress) << (answer ? answer->error : "");
  EXPECT_EQ((*answer->progress)["state"], "Running");
  EXPECT_EQ(answer->pod_uid, "pod-aaaaa");
  EXPECT_GT(answer->asked_since, WallTime{});
  EXPECT_LE(answer->asked_since, answer->at);
  EXPECT_EQ(coordinator.requests()[0],
            "GET /v1/progress Bearer " + coordinator.address().token + " ");
}

TEST(CoordinatorPool, TellsOnlyOfChangesThatMatter) {
  FakeCoordinator coordinator("aaaab");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  coordinator.Answer(200, R"({"state": "Running", "rows": 7})");
  coordinator.WaitFor(coordinator.requests().size() + 3);
  EXPECT_EQ(told.count("j"), 1);
  ASSERT_TRUE(pool.Latest("j")->progress);
  EXPECT_EQ((*pool.Latest("j")->progress)["rows"], 7);
  coordinator.Answer(200, R"({"state": "Succeeded", "rows": 7})");
  told.WaitFor("j", 2);
}

TEST(CoordinatorPool, AnotherJobsCertificateIsNotTrusted) {
  FakeCoordinator coordinator("aaaac");
  FakeCoordinator other("bbbbc");
  CoordinatorAddress address = coordinator.address();
  address.ca_pem = other.address().ca_pem;
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("ca", address, kPeriod);
  address = coordinator.address();
  address.server_name = other.address().server_name;
  pool.Watch("name", address, kPeriod);
  for (const char* job : {"ca", "name"}) {
    told.WaitFor(job, 1);
    EXPECT_FALSE(pool.Latest(job)->progress);
    EXPECT_NE(pool.Latest(job)->error, "");
  }
  EXPECT_TRUE(coordinator.requests().empty());
}

TEST(CoordinatorPool, RedirectsAreNotFollowed) {
  FakeCoordinator coordinator("aaaad");
  FakeCoordinator target("bbbbd");
  coordinator.Answer(307, "", {{"Location", target.address().url + "/v1/progress"}});
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  EXPECT_NE(pool.Latest("j")->error.find("answered 307"), std::string::npos);
  EXPECT_TRUE(target.requests().empty());
}

TEST(CoordinatorPool, LargeDeepAndMalformedAnswersAreRefused) {
  FakeCoordinator coordinator("aaaae");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  int tells = 1;
  for (const std::string& body :
       {std::string(3 << 20, ' ') + "{}",
        "{\"a\": " + std::string(1000, '[') + std::string(1000, ']') + "}",
        std::string("nonsense")}) {
    coordinator.Answer(200, body);
    told.WaitFor("j", ++tells);
    EXPECT_NE(pool.Latest("j")->error, "");
    coordinator.Answer(200, R"({"state": "Running"})");
    told.WaitFor("j", ++tells);
    EXPECT_EQ(pool.Latest("j")->error, "");
  }
}

TEST(CoordinatorPool, ControlIsPutOnceAndAcknowledged) {
  FakeCoordinator coordinator("aaaaf");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  pool.Control("j", R"({"drain":true})");
  told.WaitFor("j", 2);
  EXPECT_EQ(pool.Latest("j")->acknowledged, R"({"drain":true})");
  told.WaitFor("j", 3);  // what came of it, though nothing else has changed
  coordinator.WaitFor(coordinator.requests().size() + 2);
  int puts = 0;
  for (const std::string& request : coordinator.requests()) {
    if (request.starts_with("PUT /v1/control")) ++puts;
  }
  EXPECT_EQ(puts, 1);
}

int Puts(const FakeCoordinator& coordinator) {
  const std::vector<std::string> all = coordinator.requests();
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const std::string& request) {
    return request.starts_with("PUT /v1/control");
  }));
}

TEST(CoordinatorPool, AControlThatWasTakenIsPutAgainOnlyOnceItIsForgotten) {
  FakeCoordinator coordinator("aaaai");
  coordinator.Answer(200, R"({"state": "Running", "controlGeneration": 3})");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  const std::string control = R"({"generation":3})";
  EXPECT_TRUE(pool.Control("j", control));
  EXPECT_FALSE(pool.Control("j", control)) << "it is on its way";
  told.WaitFor("j", 2);
  EXPECT_FALSE(pool.Control("j", control)) << "it has arrived";
  coordinator.WaitFor(coordinator.requests().size() + 2);
  EXPECT_EQ(Puts(coordinator), 1);

  coordinator.Answer(200, R"({"state": "Running", "controlGeneration": 0})");
  told.WaitFor("j", 4);  // what came of the control, and the change
  EXPECT_TRUE(pool.Control("j", control)) << "the coordinator was restarted in its pod";
  const size_t before = coordinator.requests().size();
  coordinator.WaitFor(before + 3);
  EXPECT_EQ(Puts(coordinator), 2);
}

TEST(CoordinatorPool, ARefusedControlDoesNotStopThePulls) {
  FakeCoordinator coordinator("aaaag");
  coordinator.Answer(400, "no");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  pool.Control("j", R"({"nodeCount":-1})");
  // One of the next two calls is the refused one.
  coordinator.WaitFor(coordinator.requests().size() + 2);
  coordinator.Answer(200, R"({"state": "Running"})");
  told.WaitFor("j", 2);
  EXPECT_TRUE(pool.Latest("j")->progress);
  EXPECT_EQ(pool.Latest("j")->acknowledged, "");
}

TEST(CoordinatorPool, SilentCoordinatorsHoldUpNobody) {
  FakeCoordinator silent("aaaah", /*silent=*/true);
  FakeCoordinator quick("bbbbh");
  Told told;
  CoordinatorPoolOptions options = Quick();
  options.threads = 4;
  options.deadline = seconds(3600);
  CoordinatorPool pool(options, told.callback());
  pool.Watch("quick", quick.address(), kPeriod);
  told.WaitFor("quick", 1);
  for (int i = 0; i < 20; ++i) pool.Watch("silent" + std::to_string(i), silent.address(), kPeriod);
  silent.WaitFor(2);  // half the threads
  quick.WaitFor(quick.requests().size() + 5);
  EXPECT_EQ(silent.requests().size(), 2U);
}

TEST(CoordinatorPool, AForgottenJobIsNotAskedAgain) {
  FakeCoordinator coordinator("aaaai");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", coordinator.address(), kPeriod);
  told.WaitFor("j", 1);
  pool.Forget("j");
  EXPECT_FALSE(pool.Latest("j"));
  EXPECT_EQ(pool.size(), 0U);
  pool.Forget("j");
  pool.Control("j", "{}");
}

TEST(CoordinatorPool, ANewPodIsAskedInPlaceOfTheOld) {
  FakeCoordinator first("aaaaj", /*silent=*/true);
  FakeCoordinator second("bbbbj");
  Told told;
  CoordinatorPool pool(Quick(), told.callback());
  pool.Watch("j", first.address(), kPeriod);
  first.WaitFor(1);
  pool.Watch("j", second.address(), kPeriod);
  told.WaitFor("j", 1);
  EXPECT_EQ(pool.Latest("j")->pod_uid, "pod-bbbbj");
  EXPECT_TRUE(pool.Latest("j")->progress);
}

}  // namespace
}  // namespace parallelrun::operators
