// The pool that talks to coordinators, against real servers with the certificates of a job.
#include "operator/coordinator_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/credentials.h"
#include "tests/unit/base/http/fixture.h"

namespace parallelrun {
namespace {

using nlohmann::json;

// A coordinator of one job: TLS with the job's certificate, and an answer that the test sets.
class FakeCoordinator {
 public:
  explicit FakeCoordinator(const std::string& uid, bool silent = false)
      : folder_(std::filesystem::temp_directory_path() /
                ("operator_client." + std::to_string(getpid()) + "." + uid)),
        // Clients judge certificates by the real time.
        identity_{"team", "digits", uid, SystemClock().WallNow()},
        credentials_(
            *DeriveCredentials({std::string(32, 'k')}, identity_, SystemClock().WallNow())),
        silent_(silent) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "tls.crt") << credentials_.tls_pem;
    std::ofstream(folder_ / "tls.key") << credentials_.tls_key_pem;
    HttpServerOptions options;
    options.tls_chain_file = folder_ / "tls.crt";
    options.tls_key_file = folder_ / "tls.key";
    server_ = std::make_unique<TestServer>(
        options, [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(exchange); });
  }
  ~FakeCoordinator() {
    server_.reset();
    held_.clear();
    std::filesystem::remove_all(folder_);
  }

  CoordinatorAddress address() const {
    return {"pod-" + identity_.uid, "https://127.0.0.1:" + std::to_string(server_->port()),
            credentials_.server_name, credentials_.ca_pem, credentials_.operator_token};
  }
  void Answer(int status, const std::string& body, HttpHeaders headers = {}) {
    const std::lock_guard lock(mutex_);
    response_.status = status;
    response_.body = body;
    response_.headers = std::move(headers);
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Waits for `count` requests.
  void WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                               [&] { return requests_.size() >= count; }));
  }

 private:
  void Handle(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.path + " " +
                        std::string(request.Header("authorization")) + " " + request.body);
    came_.notify_all();
    if (silent_) {
      held_.push_back(exchange);
    } else {
      exchange->Respond(response_);
    }
  }

  const std::filesystem::path folder_;
  const JobIdentity identity_;
  const JobCredentials credentials_;
  const bool silent_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  HttpResponse response_{200, "application/json", {}, R"({"state": "Running"})"};
  std::vector<std::string> requests_;
  std::vector<std::shared_ptr<HttpExchange>> held_;
  std::unique_ptr<TestServer> server_;
};

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
}  // namespace parallelrun
