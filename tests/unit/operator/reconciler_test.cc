// The reconciler on caches that were filled once: which requests a turn makes, in which order, and
// what it does about answers that a plan does not see.
#include "operator/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "operator/resources.h"
#include "tests/unit/operator/fake_api.h"
#include "tests/unit/operator/fake_coordinator.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::IsEmpty;
using testing::Le;

constexpr char kKey[] = "team/digits";
constexpr char kJobList[] = "/apis/parallelrun.dev/v1alpha1/parallelrunjobs";
constexpr char kPodList[] = "/api/v1/pods";
constexpr char kStatus[] =
    "PATCH /apis/parallelrun.dev/v1alpha1/namespaces/team/parallelrunjobs/digits/status";

json TheJob() {
  return json::parse(R"({
    "apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
    "metadata": {"name": "digits", "namespace": "team", "generation": 1, "resourceVersion": "1",
      "uid": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
      "creationTimestamp": "2026-11-21T09:00:00Z"},
    "spec": {"entryScript": "score.py", "code": {"configMap": {"name": "code"}},
      "environment": {"image": "i"},
      "volumes": [{"name": "out", "persistentVolumeClaim": {"claimName": "results"}}],
      "output": {"volume": "out"}, "rankMiniBatchCount": 3, "nodeCount": 2}})");
}

// As a kubelet of this host shows it: its coordinator can be called.
json ItsCoordinatorPod(const json& job) {
  json pod = json::parse(R"({
    "metadata": {"name": "digits-3f250-coordinator-1", "namespace": "team", "uid": "pod-1",
      "resourceVersion": "1",
      "labels": {"parallelrun.dev/job": "digits", "parallelrun.dev/role": "coordinator",
        "parallelrun.dev/incarnation": "1"},
      "ownerReferences": [{"kind": "ParallelRunJob", "name": "digits", "controller": true}]},
    "status": {"phase": "Running", "podIP": "127.0.0.1",
      "conditions": [{"type": "Ready", "status": "True"}],
      "containerStatuses": [{"name": "coordinator", "ready": true, "state": {"running": {}}}]}})");
  pod["metadata"]["creationTimestamp"] = job["metadata"]["creationTimestamp"];
  pod["metadata"]["ownerReferences"][0]["uid"] = job["metadata"]["uid"];
  return pod;
}

// The queue's: moved by hand.
struct QueueClock final : Clock {
  Instant Now() const override { return Instant(moved); }
  WallTime WallNow() const override { return start + moved.load(); }
  const WallTime start = SystemClock().WallNow();
  std::atomic<Duration> moved{seconds(1)};
};

class ReconcilerTest : public testing::Test {
 protected:
  ReconcilerTest() {
    api_.List(kJobList, {TheJob()});
    api_.List(kPodList, {});
    api_.Put(Path("persistentvolumeclaims/results"),
             {{"metadata", {{"name", "results"}}}, {"spec", {{"accessModes", {"ReadWriteMany"}}}}});
    api_.Put(Path("configmaps/code"),
             {{"metadata", {{"name", "code"}, {"namespace", "team"}}}, {"data", {{"a.py", "x"}}}});
  }
  ~ReconcilerTest() override { api_.client().Cancel(); }

  static std::string Path(const std::string& rest) { return "/api/v1/namespaces/team/" + rest; }

  // Fills the caches from the lists, and makes the reconciler.
  void Start() {
    kube::InformerOptions<ObservedJob> jobs;
    jobs.resource = kJobs;
    jobs.watch_list = false;
    jobs.digest = [](const json& job) -> std::optional<ObservedJob> {
      return ReadObservedJob(job);
    };
    jobs.index = [](const ObservedJob& job) { return job.output_address; };
    jobs_ = std::make_unique<JobInformer>(api_.client(), jobs);
    kube::InformerOptions<HeldPod> pods;
    pods.resource = kPods;
    pods.watch_list = false;
    pods.digest = DigestHeldPod;
    pods.index = [](const HeldPod& pod) { return pod.job_key; };
    pods_ = std::make_unique<PodInformer>(api_.client(), pods);
    WaitUntil([this] { return jobs_->HasSynced() && pods_->HasSynced(); });
    options_.runtime_image = "runtime:1";
    reconciler_ = std::make_unique<Reconciler>(
        Reconciler::Parts{api_.client(), *jobs_, *pods_, queue_, pool_, events_, metrics_},
        options_, OperatorKey{std::string(32, 'k')}, job_clock_);
  }
  static void WaitUntil(const std::function<bool()>& so) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!so()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << "it does not happen";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // The requests of one turn, but those for events.
  std::vector<std::string> Turn() {
    api_.Requests();
    reconciler_->Reconcile(kKey);
    std::vector<std::string> made = api_.Requests();
    std::erase(made, "POST " + Path("events"));
    return made;
  }

  // What a worker does with the job in that time, while the cache follows what it writes.
  void WorkFor(Duration span) {
    const Duration end = clock_->moved.load() + span;
    while (clock_->moved.load() < end) {
      queue_.Add("tick");  // so that Get never waits
      do {
        const std::string key = *queue_.Get();
        if (key == kKey) {
          reconciler_->Reconcile(kKey);
          FollowStatus();
        }
        queue_.Done(key);
      } while (queue_.depth() > 0);
      clock_->moved = clock_->moved.load() + milliseconds(50);
    }
  }
  void FollowStatus() {
    const json stored = api_.Stored(std::string(kStatus).substr(std::string("PATCH ").size()));
    if (!stored.is_object()) return;
    const std::string version = stored["metadata"]["resourceVersion"];
    if (jobs_->Get(kKey)->resource_version == version) return;
    json job = TheJob();
    job["status"] = stored["status"];
    job["metadata"]["resourceVersion"] = version;
    api_.Tell(kJobList, "MODIFIED", job);
    WaitUntil([&] { return jobs_->HasSeen("team", std::stoull(version)); });
    queue_.Add(kKey);
  }

  // How often creates of that resource are tried when each is refused in other words.
  int DeniedWithin(Duration span, const std::string& resource) {
    int denied = 0;
    api_.Refuse([&](const HttpRequest& request) -> std::optional<HttpResponse> {
      if (request.method != "POST" || request.path != Path(resource)) return std::nullopt;
      return StatusAnswer(403, "Forbidden", "denied, for the time " + std::to_string(++denied));
    });
    job_clock_ = clock_;
    Start();
    queue_.Add(kKey);
    WorkFor(span);
    api_.Refuse(nullptr);
    return denied;
  }

  json WrittenStatus() {
    return api_.Stored(std::string(kStatus).substr(std::string("PATCH ").size()))["status"];
  }

  FakeApi api_;
  OperatorOptions options_;
  const std::shared_ptr<QueueClock> clock_ = std::make_shared<QueueClock>();
  std::shared_ptr<const Clock> job_clock_ = std::make_shared<SystemClock>();
  kube::WorkQueue queue_{clock_};
  CoordinatorPool pool_{{}, [](const std::string&) {}};
  kube::EventRecorder events_{api_.client(), "test", std::make_shared<SystemClock>()};
  Metrics metrics_{"host", 1};
  std::unique_ptr<JobInformer> jobs_;
  std::unique_ptr<PodInformer> pods_;
  std::unique_ptr<Reconciler> reconciler_;
};

TEST_F(ReconcilerTest, ANewJobIsStartedInOneTurnWithOneStatus) {
  Start();
  const std::vector<std::string> made = Turn();
  ASSERT_EQ(made.size(), 9U) << json(made).dump(1);
  const std::vector<std::string> before_pods(made.begin(), made.begin() + 5);
  EXPECT_THAT(before_pods,
              ElementsAre("GET " + Path("persistentvolumeclaims/results"),
                          "GET " + Path("configmaps/code"), "POST " + Path("configmaps"),
                          "POST " + Path("secrets"), "POST " + Path("services")));
  for (size_t i = 5; i < 8; ++i) EXPECT_EQ(made[i], "POST " + Path("pods"));
  EXPECT_EQ(made[8], kStatus);
  const json status = WrittenStatus();
  EXPECT_EQ(status["phase"], "Starting");
  EXPECT_EQ(status["replicas"], 2) << "it shows the pods that were just made";
  EXPECT_EQ(status["coordinator"]["incarnation"], 1) << "so that no other write tells only that";
}

TEST_F(ReconcilerTest, AJobWhoseOutputIsAnothersHasNoPods) {
  json mine = TheJob();
  mine["spec"]["output"]["path"] = "shared";
  json other = mine;
  other["metadata"]["name"] = "first";
  other["metadata"]["uid"] = "3f2504e0-4f89-11d3-9a0c-0305e82c3302";
  other["status"]["startTime"] = "2026-11-21T09:00:01Z";
  api_.List(kJobList, {mine, other});
  Start();
  const std::vector<std::string> made = Turn();
  EXPECT_THAT(made, testing::Not(testing::Contains("POST " + Path("pods"))));
  EXPECT_NE(WrittenStatus().dump().find("job team/first publishes to the same output"),
            std::string::npos);
}

TEST_F(ReconcilerTest, NothingIsDoneBeforeTheCacheShowsItsOwnStatus) {
  Start();
  Turn();
  EXPECT_THAT(Turn(), IsEmpty()) << "the cache still has the job without a status";
}

TEST_F(ReconcilerTest, AStatusThatCameTooLateIsNotForced) {
  Start();
  api_.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "PATCH") return std::nullopt;
    return StatusAnswer(409, "Conflict", "the object has been modified");
  });
  EXPECT_EQ(Turn().back(), kStatus);
  api_.Refuse(nullptr);
  // Its pods are known although the cache has none.
  const std::vector<std::string> again = Turn();
  for (const std::string& request : again) EXPECT_NE(request, "POST " + Path("pods"));
  EXPECT_EQ(again.back(), kStatus);
}

TEST_F(ReconcilerTest, WhatTheServerMayTakeLaterIsRetriedWithBackOff) {
  Start();
  api_.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path != Path("pods")) return std::nullopt;
    return StatusAnswer(500, "InternalError", "etcdserver: leader changed");
  });
  Turn();
  EXPECT_EQ(queue_.Failures(kKey), 1);
  Turn();
  EXPECT_EQ(queue_.Failures(kKey), 1) << "its status is not in the cache yet: not a failure";
}

TEST_F(ReconcilerTest, HoweverLongItsBackOffAJobComesBackInTime) {
  Start();
  for (int i = 0; i < 20; ++i) queue_.AddRateLimited(kKey);
  clock_->moved = std::chrono::hours(1);
  EXPECT_EQ(queue_.Get(), kKey);
  queue_.Done(kKey);
  api_.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path != Path("pods")) return std::nullopt;
    return StatusAnswer(500, "InternalError", "failed calling webhook");
  });
  Turn();
  EXPECT_EQ(queue_.Failures(kKey), 21) << "the next back-off is 1,000 s";
  queue_.AddAfter("team/other", seconds(31));
  clock_->moved = std::chrono::hours(1) + seconds(40);
  EXPECT_EQ(queue_.Get(), kKey) << "before the other";
}

TEST_F(ReconcilerTest, WhatKeepsFailingIsInTheStatus) {
  Start();
  std::string status;
  bool fails = true;
  api_.Refuse([&](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method == "PATCH") {
      status = request.body;
      return StatusAnswer(409, "Conflict", "modified");  // so that every turn writes one
    }
    if (request.path != Path("pods") || !fails) return std::nullopt;
    return StatusAnswer(500, "InternalError", "failed calling webhook \"pods.example\"");
  });
  for (int i = 0; i < 10; ++i) Turn();
  EXPECT_EQ(status.find("failed calling webhook"), std::string::npos) << "it may pass at once";
  Turn();
  EXPECT_NE(status.find("failed calling webhook"), std::string::npos) << status;
  EXPECT_NE(status.find("ApplyFailed"), std::string::npos) << status;
  fails = false;
  const std::vector<std::string> made = Turn();
  EXPECT_EQ(std::count(made.begin(), made.end(), "POST " + Path("pods")), 3)
      << "all of them, not one as a probe";
  Turn();
  EXPECT_EQ(status.find("failed calling webhook"), std::string::npos);
}

TEST_F(ReconcilerTest, ARefusedPodIsInTheStatusOfTheNextTurn) {
  Start();
  api_.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path == Path("pods")) return StatusAnswer(403, "Forbidden", "exceeded quota: q");
    if (request.method == "PATCH") return StatusAnswer(409, "Conflict", "modified");
    return std::nullopt;
  });
  Turn();
  api_.Refuse(nullptr);
  Turn();
  const json conditions = WrittenStatus()["conditions"];
  EXPECT_NE(conditions.dump().find("QuotaExceeded"), std::string::npos) << conditions.dump(1);
}

// Some refusals name a time or a count, and so read differently each time.
TEST_F(ReconcilerTest, ARefusalInNewWordsEachTimeIsNotTriedAgainAtOnce) {
  EXPECT_THAT(DeniedWithin(seconds(10), "services"), AllOf(Ge(2), Le(4)));
}

TEST_F(ReconcilerTest, NorIsOneOfWhatPodsNeed) {
  EXPECT_THAT(DeniedWithin(seconds(10), "secrets"), AllOf(Ge(2), Le(25)));
}

TEST_F(ReconcilerTest, APodIsItsControllersWhateverItsLabelsSay) {
  json pod = json::parse(R"({"metadata": {"name": "digits-3f250-node-0-1", "namespace": "team",
    "labels": {"app.kubernetes.io/managed-by": "parallelrun", "parallelrun.dev/job": "digits",
      "parallelrun.dev/job-uid": "3f2504e0-4f89-11d3-9a0c-0305e82c3301"}}})");
  EXPECT_FALSE(DigestHeldPod(pod)) << "nobody's";
  json& owners = pod["metadata"]["ownerReferences"];
  owners = {{{"kind", "ParallelRunJob"}, {"name", "digits"}, {"uid", "u"}}};
  EXPECT_FALSE(DigestHeldPod(pod)) << "an owner does not control it";
  owners[0]["controller"] = true;
  ASSERT_TRUE(DigestHeldPod(pod));
  EXPECT_EQ(DigestHeldPod(pod)->job_key, kKey);
  EXPECT_EQ(DigestHeldPod(pod)->pod.job_uid, "u") << "not what the label says";
  owners[0]["kind"] = "Job";
  EXPECT_FALSE(DigestHeldPod(pod)) << "somebody else's";
}

TEST_F(ReconcilerTest, AJobThatIsGoneIsForgotten) {
  api_.List(kJobList, {});
  Start();
  EXPECT_THAT(Turn(), IsEmpty());
}

// A deleted job held its hosts for most of a minute: its agents looked for a coordinator that was
// gone, and a job applied again under the name waited for them.
TEST_F(ReconcilerTest, NodesOfADeletedJobHaveFiveSeconds) {
  const auto pod = [](const char* name, const char* role, const char* owner, Duration grace) {
    json made = ItsCoordinatorPod(TheJob());
    made["metadata"]["name"] = name;
    made["metadata"]["uid"] = std::string("uid-of-") + name;
    made["metadata"]["labels"]["parallelrun.dev/role"] = role;
    made["metadata"]["ownerReferences"][0]["uid"] = owner;
    if (grace > Duration::zero()) {
      made["metadata"]["deletionTimestamp"] = Rfc3339(SystemClock().WallNow() + grace);
    }
    return made;
  };
  const std::string living = TheJob()["metadata"]["uid"];
  const char* const deleted = "9c858901-8a57-4791-81fe-4c455b099bc9";
  api_.List(kPodList, {pod("of-old", "node", deleted, seconds(60)),
                       pod("of-this", "node", living.c_str(), seconds(60)),
                       pod("coordinator", "coordinator", deleted, seconds(30)),
                       pod("not-told", "node", deleted, Duration::zero()),
                       pod("hurried", "node", deleted, seconds(3))});
  const auto hurried = [this] {
    std::vector<std::string> made = Turn();
    std::erase_if(made, [](const std::string& one) { return !one.starts_with("DELETE "); });
    return made;
  };
  const std::string old = "DELETE " + Path("pods/of-old");
  const std::string own = "DELETE " + Path("pods/of-this");
  api_.List(kJobList, {});
  Start();
  EXPECT_THAT(hurried(), testing::UnorderedElementsAre(old, own)) << "no job is there";
  EXPECT_EQ(api_.last_body()["gracePeriodSeconds"], 5);
  const std::string uid = api_.last_body()["preconditions"]["uid"];
  EXPECT_TRUE(uid.starts_with("uid-of-of-")) << uid;

  json job = TheJob();
  job["metadata"]["deletionTimestamp"] = Rfc3339(SystemClock().WallNow());
  job["metadata"]["resourceVersion"] = "9001";
  api_.Tell(kJobList, "ADDED", job);
  WaitUntil([this] { return jobs_->HasSeen("team", 9001); });
  EXPECT_THAT(hurried(), testing::UnorderedElementsAre(old, own)) << "it goes, in the foreground";

  job = TheJob();
  job["metadata"]["resourceVersion"] = "9002";
  api_.Tell(kJobList, "MODIFIED", job);
  WaitUntil([this] { return jobs_->HasSeen("team", 9002); });
  EXPECT_THAT(hurried(), ElementsAre(old)) << "of an earlier job of the name";
}

TEST_F(ReconcilerTest, ANodeOfADeletedJobThatCouldNotBeHurriedIsTriedAgain) {
  json pod = ItsCoordinatorPod(TheJob());
  pod["metadata"]["labels"]["parallelrun.dev/role"] = "node";
  pod["metadata"]["deletionTimestamp"] = Rfc3339(SystemClock().WallNow() + seconds(3600));
  api_.List(kJobList, {});
  api_.List(kPodList, {pod});
  int asked = 0;
  api_.Refuse([&asked](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "DELETE") return std::nullopt;
    return ++asked == 1 ? StatusAnswer(403, "Forbidden", "denied")
                        : StatusAnswer(404, "NotFound", "gone");
  });
  Start();
  queue_.Add(kKey);
  WorkFor(seconds(30));
  api_.Refuse(nullptr);
  EXPECT_EQ(asked, 2);
}

TEST_F(ReconcilerTest, AJobMadeAgainUnderItsNameHeedsNothingOfTheOldCoordinator) {
  const WallTime made = SystemClock().WallNow();
  json job = TheJob();
  job["metadata"]["creationTimestamp"] = Rfc3339(made);
  const json pod = ItsCoordinatorPod(job);
  FakeCoordinator coordinator(
      JobIdentity{"team", "digits", job["metadata"]["uid"], *ParseRfc3339(Rfc3339(made))});
  coordinator.Answer(200, R"({"state": "Finalizing"})");
  options_.coordinator_port = coordinator.port();
  api_.List(kJobList, {job});
  api_.List(kPodList, {pod});
  Start();
  Turn();
  WaitUntil([this] {
    const auto answer = pool_.Latest(kKey);
    return answer && answer->progress;
  });

  // Its end and the new one's beginning come as one.
  job["metadata"]["uid"] = "9c858901-8a57-4791-81fe-4c455b099bc9";
  job["metadata"]["resourceVersion"] = "9001";
  api_.Tell(kPodList, "DELETED", pod);
  api_.Tell(kJobList, "MODIFIED", job);
  WaitUntil([&] { return pods_->size() == 0 && jobs_->Get(kKey)->uid == job["metadata"]["uid"]; });
  Turn();
  EXPECT_EQ(WrittenStatus()["phase"], "Starting");
  const json next = api_.Stored(Path("pods/digits-9c858-coordinator-1"));
  ASSERT_TRUE(next.is_object());
  EXPECT_EQ(next["spec"]["containers"][0]["image"], "runtime:1");
}

TEST_F(ReconcilerTest, AnUnreadableJobOnlyGetsAStatus) {
  json job = TheJob();
  job["spec"]["miniBatchSize"] = "10Mi";
  api_.List(kJobList, {job});
  Start();
  EXPECT_THAT(Turn(), ElementsAre(kStatus));
}

}  // namespace
}  // namespace parallelrun::operators
