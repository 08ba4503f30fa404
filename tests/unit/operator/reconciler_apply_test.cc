// How the actions of a plan are carried out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "operator/apply.h"
#include "operator/builders/objects.h"
#include "operator/facts.h"
#include "tests/unit/operator/fake_api.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kUid[] = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

constexpr char kPodPath[] = "/api/v1/namespaces/team/pods";
constexpr char kSecretPath[] = "/api/v1/namespaces/team/secrets/digits-3f250-access";

json Owned(const std::string& name, const std::string& uid) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata",
           {{"name", name},
            {"namespace", "team"},
            {"ownerReferences",
             {{{"apiVersion", "parallelrun.dev/v1alpha1"},
               {"kind", "ParallelRunJob"},
               {"name", "digits"},
               {"uid", uid},
               {"controller", true}}}}}}};
}

Action CreatePod(const std::string& name) {
  Action action;
  action.kind = Action::Kind::kCreate;
  action.resource = "pods";
  action.name = name;
  action.object = Owned(name, kUid);
  return action;
}

// One that has a status already, unless `phase` is "".
ObservedJob JobIn(const std::string& phase = "Running") {
  ObservedJob job;
  job.status.phase = phase;
  job.name_space = "team";
  job.name = "digits";
  job.uid = kUid;
  job.created = WallTime(std::chrono::seconds(1'800'000'000));
  return job;
}

Action Access() {
  Action action;
  action.kind = Action::Kind::kEnsureAccess;
  action.resource = "secrets";
  action.name = "digits-3f250-access";
  action.access.job.metadata.name = "digits";
  return action;
}

struct ApplierTest : testing::Test {
  Applied Apply(const std::vector<Action>& actions) {
    return applier.Apply(JobIn(), actions, state);
  }
  Applied First(const std::vector<Action>& actions) {
    return applier.Apply(JobIn(""), actions, state);
  }
  FakeApi api;
  Applier applier{api.client(), {std::string(32, 'k')}, {}, std::make_shared<SystemClock>()};
  ApplyState state;
};

TEST_F(ApplierTest, CreatedPodsAreRememberedWithTheirVersion) {
  const Applied applied = Apply({CreatePod("a"), CreatePod("b"), CreatePod("c")});
  ASSERT_THAT(applied.pods, SizeIs(3));
  EXPECT_EQ(applied.pods[0].first.name, "a");
  EXPECT_EQ(applied.pods[0].first.job_uid, kUid);
  EXPECT_GT(applied.pods[0].second, 100U);
  EXPECT_TRUE(applied.done.contains("pods/b"));
  EXPECT_FALSE(applied.again);
}

TEST_F(ApplierTest, ARefusedCreateIsRefusedOnceNotForEveryPod) {
  api.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "POST") return std::nullopt;
    return StatusAnswer(403, "Forbidden", "exceeded quota: pods=2");
  });
  std::vector<Action> actions;
  for (int i = 0; i < 50; ++i) actions.push_back(CreatePod("p" + std::to_string(i)));
  const Applied applied = Apply(actions);
  EXPECT_THAT(api.Requests(), SizeIs(1));
  ASSERT_THAT(applied.refused, SizeIs(1));
  EXPECT_EQ(applied.refused[0].object, "pods/p0");
  EXPECT_EQ(applied.refused[0].reason, "Forbidden");
  EXPECT_NE(applied.refused[0].message.find("exceeded quota"), std::string::npos);
  EXPECT_FALSE(applied.again);
}

TEST_F(ApplierTest, BatchesGrowFromPlanToPlanWhilePodsAreMadeAndNoLonger) {
  auto make = [this, next = 0](int count) mutable {
    std::vector<Action> actions;
    for (int i = 0; i < count; ++i) actions.push_back(CreatePod("p" + std::to_string(next++)));
    Apply(actions);
    return state.batch;
  };
  EXPECT_EQ(make(3), 4U) << "1 and 2";
  EXPECT_EQ(make(16), 8U);
  EXPECT_EQ(make(0), 1U) << "a refusal may have come since";
  EXPECT_EQ(make(1), 2U);
  api.Refuse([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.method != "POST") return std::nullopt;
    return StatusAnswer(403, "Forbidden", "exceeded quota: pods=20");
  });
  EXPECT_EQ(make(1), 1U);
}

TEST_F(ApplierTest, AnOwnPodThatIsThereAlreadyIsASuccess) {
  api.Put(std::string(kPodPath) + "/a", Owned("a", kUid));
  const Applied applied = Apply({CreatePod("a")});
  EXPECT_TRUE(applied.done.contains("pods/a"));
  EXPECT_THAT(applied.pods, SizeIs(1));
}

TEST_F(ApplierTest, AForeignObjectUnderOurNameIsNeverAdopted) {
  api.Put(std::string(kPodPath) + "/a", Owned("a", "somebody-else"));
  const Applied applied = Apply({CreatePod("a")});
  ASSERT_THAT(applied.refused, SizeIs(1));
  EXPECT_EQ(applied.refused[0].reason, "NameTaken");
  EXPECT_THAT(applied.pods, IsEmpty());
}

TEST_F(ApplierTest, ANameThatIsStillTerminatingIsTriedAgain) {
  api.Put(std::string(kPodPath) + "/a", Owned("a", "an-earlier-job"));
  api.Refuse([](const HttpRequest&) {
    return StatusAnswer(409, "AlreadyExists", "object is being deleted: pods \"a\" already exists");
  });
  const Applied applied = Apply({CreatePod("a")});
  EXPECT_TRUE(applied.again);
  EXPECT_THAT(applied.refused, IsEmpty()) << "nobody has taken the name";
  EXPECT_THAT(applied.pods, IsEmpty());
}

TEST_F(ApplierTest, WhatMayPassIsTriedAgain) {
  api.Refuse([](const HttpRequest&) { return StatusAnswer(500, "InternalError", "etcd"); });
  const Applied applied = Apply({CreatePod("a")});
  EXPECT_TRUE(applied.again);
  EXPECT_THAT(applied.refused, IsEmpty());
}

TEST_F(ApplierTest, DeletesCarryTheUidAndWhatIsGoneIsASuccess) {
  Action action;
  action.kind = Action::Kind::kDelete;
  action.resource = "pods";
  action.name = "a";
  action.uid = "uid-of-a";
  api.Put(std::string(kPodPath) + "/a", Owned("a", kUid));
  EXPECT_TRUE(Apply({action}).done.contains("pods/a"));
  EXPECT_EQ(api.last_body()["preconditions"]["uid"], "uid-of-a");
  for (const auto& [code, reason] : {std::pair{404, "NotFound"}, std::pair{409, "Conflict"}}) {
    api.Refuse([code = code, reason = reason](const HttpRequest&) {
      return StatusAnswer(code, reason, "gone");
    });
    EXPECT_TRUE(Apply({action}).done.contains("pods/a")) << reason;
  }
}

TEST_F(ApplierTest, TheAccessSecretIsMadeReadBeforePodsAndMadeAgain) {
  EXPECT_TRUE(Apply({Access(), CreatePod("a")}).done.contains("pods/a"));
  const json first = api.Stored(kSecretPath);
  ASSERT_TRUE(first.is_object());
  api.Requests();

  Apply({Access()});
  EXPECT_THAT(api.Requests(), IsEmpty()) << "nothing was to be made, and it was just looked at";

  api.Erase(kSecretPath);
  Apply({Access(), CreatePod("b")});
  EXPECT_EQ(api.Stored(kSecretPath)["data"], first["data"]);
  EXPECT_THAT(api.Requests(),
              ElementsAre("GET " + std::string(kSecretPath), "POST /api/v1/namespaces/team/secrets",
                          "POST " + std::string(kPodPath)));
}

struct MovedClock final : Clock {
  Instant Now() const override { return Instant(moved); }
  WallTime WallNow() const override { return JobIn().created + moved; }
  Duration moved{};
};

TEST_F(ApplierTest, ACertificateThatIsDueIsRenewedInTheSecret) {
  const auto clock = std::make_shared<MovedClock>();
  Applier renewing(api.client(), {std::string(32, 'k')}, {}, clock);
  const auto data_after = [&](Duration moved) {
    clock->moved = moved;
    EXPECT_THAT(renewing.Apply(JobIn(), {Access()}, state).refused, IsEmpty());
    return api.Stored(kSecretPath)["data"];
  };
  const json first = data_after(Duration::zero());
  api.Requests();
  EXPECT_EQ(data_after(std::chrono::minutes(5)), first);
  EXPECT_THAT(api.Requests(), IsEmpty());
  EXPECT_EQ(data_after(kTlsPeriod - seconds(1)), first);
  const json renewed = data_after(kTlsPeriod);
  EXPECT_NE(renewed["tls.crt"], first["tls.crt"]);
  EXPECT_EQ(renewed["ca.crt"], first["ca.crt"]) << "which agents never read again";
  EXPECT_EQ(renewed["tls.key"], first["tls.key"]);
  EXPECT_EQ(renewed["node-0.json"], first["node-0.json"]);
}

TEST_F(ApplierTest, AJobWithoutAStatusIsGivenItsSecretWithoutALook) {
  const std::string post = "POST /api/v1/namespaces/team/secrets";
  EXPECT_TRUE(First({Access()}).done.contains("secrets/digits-3f250-access"));
  EXPECT_THAT(api.Requests(), ElementsAre(post));
  // A crash before the status was written: the next operator meets it.
  state = {};
  EXPECT_TRUE(First({Access()}).done.contains("secrets/digits-3f250-access"));
  EXPECT_THAT(api.Requests(), ElementsAre(post, "GET " + std::string(kSecretPath)));
}

TEST_F(ApplierTest, ATerminatingNamespaceIsToldApartFromAMissingRight) {
  api.Refuse([](const HttpRequest&) {
    return StatusAnswer(403, "Forbidden",
                        "pods \"a\" is forbidden: unable to create new content in namespace team "
                        "because it is being terminated");
  });
  const Applied applied = Apply({CreatePod("a")});
  ASSERT_THAT(applied.refused, SizeIs(1));
  EXPECT_EQ(applied.refused[0].reason, kNamespaceTerminating);
}

TEST_F(ApplierTest, AChangedAccessSecretIsBroughtUpToDate) {
  Apply({Access()});
  Action scaled = Access();
  scaled.access.highest_nodes = 3;
  Apply({scaled});
  EXPECT_TRUE(api.Stored(kSecretPath)["data"].contains("node-2.json"));
}

TEST_F(ApplierTest, AnAccessSecretFollowsEverythingItIsMadeOf) {
  Action access = Access();
  Apply({access});
  const auto changes = [&](const char* what) {
    const json before = api.Stored(kSecretPath)["data"];
    api.Requests();
    Apply({access});
    EXPECT_NE(api.Stored(kSecretPath)["data"], before) << what;
    Apply({access});
    EXPECT_THAT(api.Requests(), SizeIs(2)) << what << ": looked at and written, once";
  };
  access.access.job.metadata.generation = 2;
  changes("the spec");
  access.access.job.metadata.labels["team"] = "vision";
  changes("a label");
  access.access.job.metadata.annotations["note"] = "x";
  changes("an annotation");
  access.access.code_digest = "00ab";
  changes("the code");
  access.access.nodes = 7;
  changes("nodeCount");
  access.access.processes = 3;
  changes("the processes");
  access.access.coordinator_port = 9443;
  changes("the port");
}

TEST_F(ApplierTest, OfAUsersSecretOnlyTheMetadataIsRead) {
  std::string accepted;
  api.Refuse([&accepted](const HttpRequest& request) -> std::optional<HttpResponse> {
    accepted = request.Header("accept");
    return std::nullopt;
  });
  api.Put("/api/v1/namespaces/team/secrets/pull", {{"metadata", {{"name", "pull"}}}});
  const SystemClock clock;
  EXPECT_EQ(ReadFact(api.client(), "team", {FactKind::kSecret, "pull"}, clock).state,
            Fact::State::kPresent);
  EXPECT_NE(accepted.find("as=PartialObjectMetadata;"), std::string::npos) << accepted;
  EXPECT_EQ(ReadFact(api.client(), "team", {FactKind::kSecret, "none"}, clock).state,
            Fact::State::kAbsent);
}

TEST_F(ApplierTest, WithoutItsAccessSecretNoPodIsCreated) {
  json foreign = Owned("digits-3f250-access", "somebody-else");
  api.Put(kSecretPath, foreign);
  const Applied applied = Apply({Access(), CreatePod("a")});
  ASSERT_THAT(applied.refused, SizeIs(1));
  EXPECT_EQ(applied.refused[0].reason, "NameTaken");
  EXPECT_EQ(applied.refused[0].object, "secrets/digits-3f250-access");
  EXPECT_TRUE(api.Stored(std::string(kPodPath) + "/a").is_null());
  EXPECT_EQ(api.Stored(kSecretPath), foreign);
}

TEST_F(ApplierTest, CodeIsCopiedOnce) {
  Action action;
  action.kind = Action::Kind::kSnapshotCode;
  action.resource = "configmaps";
  action.name = "code";
  const Applied none = Apply({action});
  EXPECT_THAT(none.refused, IsEmpty()) << "a fact, of which the plan makes a condition";
  ASSERT_THAT(none.facts, SizeIs(1));
  EXPECT_EQ(none.facts[0].first, (FactKey{FactKind::kConfigMap, "code"}));
  EXPECT_EQ(none.facts[0].second->state, Fact::State::kAbsent);
  const std::string folder = "/api/v1/namespaces/team/configmaps/";
  api.Put(folder + "code", {{"metadata", {{"name", "code"}, {"namespace", "team"}}},
                            {"data", {{"score.py", "def run(b): return b"}}}});
  EXPECT_THAT(Apply({action}).refused, IsEmpty());
  const json copy = api.Stored(folder + "digits-3f250-code");
  EXPECT_EQ(copy["immutable"], true);
  EXPECT_EQ(copy["data"]["score.py"], "def run(b): return b");
  const std::string digest = copy["metadata"]["annotations"][kContentAnnotation];
  api.Put(folder + "code", {{"metadata", {{"name", "code"}, {"namespace", "team"}}},
                            {"data", {{"score.py", "changed since"}}}});
  const Applied again = Apply({action});
  ASSERT_THAT(again.facts, SizeIs(1)) << "it is there, and ours";
  EXPECT_EQ(again.facts[0].second->owner_uid, kUid);
  EXPECT_EQ(again.facts[0].second->content, digest) << "that of the copy";
}

TEST(OperatorFacts, WhatCannotBeReadSaysWhetherThatMayPass) {
  FakeApi api;
  const FactKey key{FactKind::kConfigMap, "digits-3f250-code"};
  int status = 500;
  api.Refuse([&status](const HttpRequest&) { return StatusAnswer(status, "", "not now"); });
  Fact fact = ReadFact(api.client(), "team", key, SystemClock());
  EXPECT_EQ(fact.state, Fact::State::kUnreadable);
  EXPECT_TRUE(fact.passing) << fact.error;
  status = 403;
  fact = ReadFact(api.client(), "team", key, SystemClock());
  EXPECT_EQ(fact.state, Fact::State::kUnreadable);
  EXPECT_FALSE(fact.passing) << fact.error;
  status = 404;
  EXPECT_EQ(ReadFact(api.client(), "team", key, SystemClock()).state, Fact::State::kAbsent);
}

}  // namespace
}  // namespace parallelrun::operators
