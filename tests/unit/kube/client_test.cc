// The client against a server that says what the test wants.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "tests/unit/kube/server_fixture.h"

namespace parallelrun::kube {
namespace {

std::string FirstLine(const std::string& request) { return request.substr(0, request.find('\r')); }

// A token that is replaced when it is refused.
class Tokens : public CredentialSource {
 public:
  Result<Credential> Get() override { return Latest(); }
  Credential Latest() override { return {good_ ? "good" : "stale", "", ""}; }
  void Refused(const std::string& token) override { good_ = good_ || token == "stale"; }

 private:
  std::atomic<bool> good_{false};
};

TEST_F(KubeServer, A401DropsTheTokenAndIsTriedOnce) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      const bool good = request.find("Bearer good") != std::string::npos;
      connection.Respond(good ? 200 : 401, good ? "{}" : "");
    }
  });
  const auto client = Connect(server, std::make_shared<Tokens>());
  EXPECT_TRUE(client->Get(kPods, {"ns", "a"}).ok());
  EXPECT_EQ(requests_, (std::vector<std::string>{"get pods 401", "get pods 200"}));
  const auto never = Connect(server, FixedCredential({"bad", "", ""}))->Get(kPods, {"ns", "a"});
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().status, 401);
  EXPECT_EQ(requests_.size(), 4u) << "tried once more, not for ever";
}

// Which may run a program for a minute, while the lease is renewed over the same connections.
TEST_F(KubeServer, CredentialsAreMadeOnTheCallersThread) {
  class Source : public CredentialSource {
   public:
    Result<Credential> Get() override {
      elsewhere = elsewhere || std::this_thread::get_id() != caller;
      return Credential{};
    }
    Credential Latest() override { return {}; }
    void Refused(const std::string&) override {}
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> elsewhere{false};
  };
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "{}", "Connection: close\r\n");
  });
  const auto source = std::make_shared<Source>();
  const auto client = Connect(server, source);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(client->Get(kPods, {"ns", "a"}).ok());
  EXPECT_GE(server.connections(), 3) << "each of which asked for a certificate";
  EXPECT_FALSE(source->elsewhere);
}

TEST_F(KubeServer, RetryAfterIsWaitedOutOnlyWhenTheCallerAllows) {
  std::atomic<int> calls{0};
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      const bool busy = calls++ < 2;
      connection.Respond(busy ? 429 : 200, busy ? "" : "{}", busy ? "Retry-After: 0\r\n" : "");
    }
  });
  const auto client = Connect(server);
  const auto refused = client->Get(kPods, {"ns", "a"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().retry_after, seconds(0));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(client->Get(kPods, {"ns", "a"}, {seconds(10), 3}).ok());
  EXPECT_EQ(calls, 3);
}

TEST_F(KubeServer, ARetryAfterBeyondTheTimeoutIsNotWaitedFor) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      connection.Respond(503, "", "Retry-After: 60\r\n");
    }
  });
  const auto answer = Connect(server)->Get(kPods, {"ns", "a"}, {seconds(10), 3});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().retry_after, seconds(60));
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(KubeServer, CallsSayWhatTheyMean) {
  std::mutex mutex;
  std::vector<std::string> seen;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      const std::lock_guard lock(mutex);
      seen.push_back(request);
      connection.Respond(200, R"({"items": null})");
    }
  });
  const auto client = Connect(server);
  const Json pod = {{"metadata", {{"namespace", "ns"}, {"name", "a"}}}, {"status", {{"x", 1}}}};
  EXPECT_TRUE(client->Create(kPods, pod).ok());
  EXPECT_TRUE(client->ApplyStatus(kPods, pod, "77").ok());
  EXPECT_TRUE(client->Delete(kPods, {"ns", "a"}, {"the-uid", "78", "Background", 0}).ok());
  EXPECT_TRUE(client->Patch(kPods, {"ns", "a"}, PatchKind::kJson, Json::array(), "scale").ok());
  ListOptions list;
  list.label_selector = "a=b,c in (d)";
  EXPECT_TRUE(client->List(kPods, "", list).ok());
  EXPECT_TRUE(client->GetRaw("/version?x=y").ok());
  const std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 6u);
  const std::string strict = "?fieldManager=parallelrun-operator&fieldValidation=Strict HTTP/1.1";
  EXPECT_EQ(FirstLine(seen[0]), "POST /api/v1/namespaces/ns/pods" + strict);
  EXPECT_NE(seen[0].find("User-Agent:parallelrun-operator"), std::string::npos) << seen[0];
  EXPECT_EQ(FirstLine(seen[1]),
            "PATCH /api/v1/namespaces/ns/pods/a/status?fieldManager=parallelrun-operator&force="
            "true&fieldValidation=Strict HTTP/1.1");
  EXPECT_NE(seen[1].find("application/apply-patch+yaml"), std::string::npos);
  EXPECT_NE(seen[1].find(R"("resourceVersion":"77")"), std::string::npos);
  EXPECT_EQ(FirstLine(seen[2]), "DELETE /api/v1/namespaces/ns/pods/a HTTP/1.1");
  EXPECT_NE(seen[2].find(R"("preconditions":{"resourceVersion":"78","uid":"the-uid"})"),
            std::string::npos);
  EXPECT_NE(seen[2].find(R"("gracePeriodSeconds":0)"), std::string::npos);
  EXPECT_EQ(FirstLine(seen[3]), "PATCH /api/v1/namespaces/ns/pods/a/scale" + strict);
  EXPECT_NE(seen[3].find("application/json-patch+json"), std::string::npos);
  EXPECT_EQ(FirstLine(seen[4]),
            "GET /api/v1/pods?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=500 HTTP/1.1");
  EXPECT_EQ(FirstLine(seen[5]), "GET /version?x=y HTTP/1.1");
}

TEST(KubeApiError, WhatIsWrongIsSaidWithoutTheStructureThatItIsIn) {
  const auto message = [](const std::string& said) {
    return ApiErrorOfStatus(
               {{"kind", "Status"}, {"code", 422}, {"reason", "Invalid"}, {"message", said}},
               "create")
        .message;
  };
  EXPECT_EQ(
      message(R"(Pod "x" is invalid: [spec.containers[0].resources: Invalid value: )"
              R"(core.ResourceRequirements{Limits:core.ResourceList{"cpu":resource.Quantity{}}}: )"
              R"(must be less, spec.a: Invalid value: -5: must be greater than 0])"),
      R"(create: Pod "x" is invalid: [spec.containers[0].resources: must be less, )"
      R"(spec.a: Invalid value: -5: must be greater than 0] (Invalid))");
  EXPECT_EQ(message(R"(spec: Invalid value: {"a":{"b":1}}: may not change)"),
            "create: spec: may not change (Invalid)");
  EXPECT_EQ(message("spec: Invalid value: x{y"), "create: spec: Invalid value: x{y (Invalid)");
}

TEST(KubeApiError, AFieldOfTheWrongTypeIsNamedInWords) {
  const auto message = [](const std::string& said) {
    return ApiErrorOfStatus({{"kind", "Status"}, {"code", 400}, {"message", said}}, "create")
        .message;
  };
  const std::string pod = R"(Pod in version "v1" cannot be handled as a Pod: )";
  const std::vector<std::array<std::string, 3>> cases = {
      {"bool", "PodSpec.spec.nodeSelector of type string",
       "spec.nodeSelector: text belongs here, not true or false"},
      {"string", "PodSpec.spec.activeDeadlineSeconds of type int64",
       "spec.activeDeadlineSeconds: a whole number belongs here, not text"},
      {"number 1.5", "PodSpec.spec.priority of type int32",
       "spec.priority: a whole number belongs here, not 1.5"},
      {"object", "PodSpec.spec.tolerations of type []v1.Toleration",
       "spec.tolerations: a list belongs here, not an object"},
      {"array", "PodSpec.spec.affinity of type v1.Affinity",
       "spec.affinity: an object belongs here, not a list"},
      {"number", "Container.spec.containers.tty of type bool",
       "spec.containers.tty: true or false belongs here, not a number"}};
  for (const auto& [found, field, told] : cases) {
    EXPECT_EQ(message(pod + "json: cannot unmarshal " + found + " into Go struct field " + field),
              "create: " + pod + told + " (BadRequest)");
  }
  for (const char* other : {"json: cannot unmarshal string into Go struct field",
                            "json: cannot unmarshal string into Go struct field a of type int",
                            "json: cannot unmarshal string into Go value of type int"}) {
    EXPECT_EQ(message(other), "create: " + std::string(other) + " (BadRequest)");
  }
}

TEST_F(KubeServer, ACallWithoutANameIsNotSent) {
  ScriptedServer server(pair_, [](ScriptedConnection&) {});
  const auto client = Connect(server);
  EXPECT_EQ(client->Delete(kPods, {"ns", ""}).error().code, Code::kInvalid)
      << "it would delete the whole collection";
  EXPECT_EQ(client->Get(kPods, {"ns", ""}).error().code, Code::kInvalid);
  EXPECT_EQ(client->Apply(kPods, Json::object()).error().code, Code::kInvalid);
  EXPECT_EQ(client->Update(kPods, {{"metadata", {{"name", "a"}}}}).error().code, Code::kInvalid);
  EXPECT_EQ(server.connections(), 0);
}

TEST_F(KubeServer, AnswersThatAreNoObjectsAreErrors) {
  std::atomic<int> calls{0};
  const std::vector<std::string> bodies = {"", "[]", "{", std::string(100000, '['), "<html>"};
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      connection.Respond(200, bodies[static_cast<size_t>(calls++) % bodies.size()]);
    }
  });
  const auto client = Connect(server);
  for (size_t i = 0; i < bodies.size(); ++i) EXPECT_FALSE(client->Get(kPods, {"ns", "a"}).ok());
}

TEST_F(KubeServer, ACertificateOfAnotherCaIsNotTrusted) {
  const TestCertificate other;
  std::atomic<bool> handled{false};
  ScriptedServer server(other, [&](ScriptedConnection&) { handled = true; });
  const auto answer = Connect(server)->Get(kPods, {"ns", "a"});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().status, 0);
  EXPECT_TRUE(answer.error().Transient());
}

}  // namespace
}  // namespace parallelrun::kube
