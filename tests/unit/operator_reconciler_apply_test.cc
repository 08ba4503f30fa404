// How the actions of a plan are carried out, against a server that keeps objects by path and
// refuses what the test says. What only a real API server can tell is in tests/controlplane.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/parse.h"
#include "operator/apply.h"
#include "operator/builders/objects.h"
#include "tests/unit/base_http_fixture.h"

namespace parallelrun {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kUid[] = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";

HttpResponse StatusAnswer(int code, const std::string& reason, const std::string& message) {
  HttpResponse response;
  response.status = code;
  response.content_type = "application/json";
  response.body = json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                       {"reason", reason}, {"message", message}, {"code", code}}
                      .dump();
  return response;
}

class FakeApi {
 public:
  // Answers in place of the store; nothing: the store answers.
  using Refusal = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  FakeApi() {
    std::promise<uint16_t> port;
    thread_ = std::thread([this, &port] {
      auto server = HttpServer::Start(
          loop_, {},
          [](const HttpRequest&) -> std::variant<size_t, HttpResponse> { return size_t{1} << 20; },
          [this](const std::shared_ptr<HttpExchange>& exchange) {
            exchange->Respond(Answer(exchange->request()));
          });
      port.set_value(server.ok() ? (*server)->port() : uint16_t{0});
      loop_.Run();
    });
    kube::ClientConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(port.get_future().get());
    config.source = "test";
    config.credentials = kube::FixedCredential({});
    config.ca_pem = [] { return std::string(); };
    auto made = kube::Client::Make(std::move(config));
    EXPECT_TRUE(made.ok());
    client_ = std::move(*made);
  }
  ~FakeApi() {
    client_.reset();
    loop_.Stop();
    thread_.join();
  }

  kube::Client& client() { return *client_; }
  void Refuse(Refusal refusal) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(refusal);
  }
  void Put(const std::string& path, json object) {
    const std::lock_guard lock(mutex_);
    objects_[path] = std::move(object);
  }
  void Erase(const std::string& path) {
    const std::lock_guard lock(mutex_);
    objects_.erase(path);
  }
  json Stored(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    return found == objects_.end() ? json() : found->second;
  }
  // "POST /api/v1/...", oldest first, and forgets them.
  std::vector<std::string> Requests() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }
  json last_body() {
    const std::lock_guard lock(mutex_);
    return last_body_;
  }

 private:
  HttpResponse Answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.path);
    last_body_ = json::parse(request.body, nullptr, false);
    if (refusal_) {
      if (auto refused = refusal_(request)) return *refused;
    }
    std::string path = request.path;
    if (request.method == "POST") path += "/" + last_body_["metadata"].value("name", "");
    const bool there = objects_.contains(path);
    if (request.method == "POST" && there) {
      return StatusAnswer(409, "AlreadyExists", path + " already exists");
    }
    if (request.method == "GET" && !there) return StatusAnswer(404, "NotFound", "not found");
    if (request.method == "POST" || request.method == "PATCH") {
      last_body_["metadata"]["resourceVersion"] = std::to_string(++version_);
      last_body_["metadata"]["uid"] = "uid-" + std::to_string(version_);
      objects_[path] = last_body_;
    }
    HttpResponse response;
    response.content_type = "application/json";
    response.body = objects_[path].dump();
    if (request.method == "DELETE") objects_.erase(path);
    return response;
  }

  EventLoop loop_;
  std::mutex mutex_;
  Refusal refusal_;
  std::map<std::string, json> objects_;
  std::vector<std::string> requests_;
  json last_body_;
  int version_ = 100;
  std::thread thread_;
  std::unique_ptr<kube::Client> client_;
};

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

ObservedJob TheJob() {
  ObservedJob job;
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
    return applier.Apply(TheJob(), actions, state);
  }
  FakeApi api;
  Applier applier{api.client(), {std::string(32, 'k')}, {}, std::make_shared<SystemClock>()};
  AccessState state;
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

TEST_F(ApplierTest, AChangedAccessSecretIsBroughtUpToDate) {
  Apply({Access()});
  Action scaled = Access();
  scaled.access.highest_nodes = 3;
  Apply({scaled});
  EXPECT_TRUE(api.Stored(kSecretPath)["data"].contains("node-2.json"));
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
  EXPECT_THAT(Apply({action, CreatePod("a")}).refused, SizeIs(1)) << "there is no such ConfigMap";
  EXPECT_TRUE(api.Stored(std::string(kPodPath) + "/a").is_null());
  const std::string folder = "/api/v1/namespaces/team/configmaps/";
  api.Put(folder + "code", {{"metadata", {{"name", "code"}, {"namespace", "team"}}},
                            {"data", {{"score.py", "def run(b): return b"}}}});
  EXPECT_THAT(Apply({action}).refused, IsEmpty());
  const json copy = api.Stored(folder + "digits-3f250-code");
  EXPECT_EQ(copy["immutable"], true);
  EXPECT_EQ(copy["data"]["score.py"], "def run(b): return b");
  EXPECT_THAT(Apply({action}).refused, IsEmpty()) << "it is there, and ours";
}

}  // namespace
}  // namespace parallelrun
