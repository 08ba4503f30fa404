// Bytes to events, answers to errors, names to paths.
#include "kube/watch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "kube/resource.h"

namespace parallelrun::kube {
namespace {

TEST(KubeLineSplitter, LinesAreTheSameHoweverTheBytesCome) {
  const std::string text = "one\n\ntwo\r\n" + std::string(5000, 'x') + "\nhalf";
  for (const size_t piece : {1u, 2u, 3u, 7u, 4096u, 100000u}) {
    LineSplitter lines;
    std::vector<std::string> seen;
    for (size_t i = 0; i < text.size(); i += piece) {
      lines.buffer() += text.substr(i, piece);
      while (const auto line = lines.Next()) seen.emplace_back(*line);
    }
    EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", std::string(5000, 'x')})) << piece;
    EXPECT_EQ(lines.pending(), 4u);
  }
}

TEST(KubeLineSplitter, ALineAboveTheLimitIsTold) {
  LineSplitter lines(10);
  lines.buffer() += "0123456789\nabcdefghij";
  EXPECT_EQ(lines.Next(), "0123456789");
  EXPECT_EQ(lines.Next(), std::nullopt);
  EXPECT_FALSE(lines.TooLong());
  lines.buffer() += "k";
  EXPECT_EQ(lines.Next(), std::nullopt);
  EXPECT_TRUE(lines.TooLong());
}

TEST(KubeWatchEvent, KindsAndWhatIsNone) {
  const auto type = [](const std::string& name) {
    return ParseWatchEvent(R"({"type":")" + name + R"(","object":{"kind":"Pod"}})");
  };
  EXPECT_EQ(type("ADDED")->type, WatchEventType::kAdded);
  EXPECT_EQ(type("MODIFIED")->type, WatchEventType::kModified);
  EXPECT_EQ(type("DELETED")->type, WatchEventType::kDeleted);
  EXPECT_EQ(type("BOOKMARK")->type, WatchEventType::kBookmark);
  EXPECT_EQ(type("ERROR")->type, WatchEventType::kError);
  for (const char* line : {"", "{", "[]", "1", R"({"type":"ADDED"})", R"({"type":"X","object":{}})",
                           R"({"type":"ADDED","object":[]})", R"({"type":3,"object":{}})"}) {
    EXPECT_FALSE(ParseWatchEvent(line)) << line;
  }
}

HttpResponse Answer(int status, const std::string& body) {
  HttpResponse response;
  response.status = status;
  response.body = body;
  return response;
}

TEST(KubeApiError, TakesTheStatusApart) {
  const ApiError error = ApiErrorOf(
      Answer(409, R"({"kind":"Status","status":"Failure","code":409,"reason":"AlreadyExists",
                      "message":"object is being deleted: pods \"x\" already exists",
                      "details":{"name":"x","retryAfterSeconds":3}})"),
      "create pods default/x");
  EXPECT_TRUE(error.AlreadyExists());
  EXPECT_TRUE(error.BeingDeleted());
  EXPECT_FALSE(error.Conflict());
  EXPECT_FALSE(error.Transient());
  EXPECT_EQ(error.code, Code::kExists);
  EXPECT_EQ(error.retry_after, seconds(3));
  EXPECT_EQ(error.message,
            "create pods default/x: object is being deleted: pods \"x\" already exists "
            "(AlreadyExists)");
}

TEST(KubeApiError, GetsByWithoutAStatus) {
  HttpResponse response = Answer(429, "slow\ndown");
  response.headers.push_back({"Retry-After", "7"});
  const ApiError error = ApiErrorOf(response, "list pods");
  EXPECT_TRUE(error.Is("TooManyRequests"));
  EXPECT_TRUE(error.Transient());
  EXPECT_EQ(error.retry_after, seconds(7));
  EXPECT_EQ(error.message, "list pods: slow\\ndown (TooManyRequests)");
  EXPECT_TRUE(ApiErrorOf(Answer(410, ""), "x").Expired());
  EXPECT_TRUE(ApiErrorOf(Answer(404, "[]"), "x").NotFound());
  EXPECT_EQ(ApiErrorOf(Answer(403, "{}"), "x").code, Code::kPermission);
  EXPECT_TRUE(ApiErrorOf(Answer(502, "<html>"), "x").Transient());
  response.headers[0].value = "Fri, 31 Dec 1999 23:59:59 GMT";
  EXPECT_EQ(ApiErrorOf(response, "x").retry_after, std::nullopt);
  EXPECT_TRUE(ApiErrorOf(Error{Code::kUnavailable, "refused"}).Transient());
  EXPECT_FALSE(ApiErrorOf(Error{Code::kInvalid, "no name"}).Transient());
}

TEST(KubeApiError, OfAStatusInAStream) {
  const auto expired = nlohmann::json::parse(
      R"({"kind":"Status","code":410,"reason":"Expired","message":"too old resource version"})");
  EXPECT_TRUE(ApiErrorOfStatus(expired, "watch pods").Expired());
  EXPECT_EQ(ApiErrorOfStatus(nlohmann::json::object(), "watch pods").status, 500);
  EXPECT_EQ(ApiErrorOfStatus(nullptr, "watch pods").status, 500);
}

TEST(KubeResource, Paths) {
  const Resource pods{"", "v1", "pods"};
  const Resource jobs{"parallelrun.dev", "v1alpha1", "parallelrunjobs"};
  const Resource nodes{"", "v1", "nodes", false};
  EXPECT_EQ(ResourcePath(pods, {}), "/api/v1/pods");
  EXPECT_EQ(ResourcePath(pods, {"a", "b"}), "/api/v1/namespaces/a/pods/b");
  EXPECT_EQ(ResourcePath(jobs, {"a", "b"}, "status"),
            "/apis/parallelrun.dev/v1alpha1/namespaces/a/parallelrunjobs/b/status");
  EXPECT_EQ(ResourcePath(nodes, {"ignored", "n"}), "/api/v1/nodes/n");
  EXPECT_EQ(ResourcePath(pods, {"../x", "a/b?c"}), "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc");
  EXPECT_EQ(jobs.Name(), "parallelrunjobs.parallelrun.dev");
  EXPECT_EQ(ParseKey("a/b").name_space, "a");
  EXPECT_EQ(ParseKey("b").Key(), "b");
}

TEST(KubeResource, ReadsOddObjectsSafely) {
  for (const char* text : {"null", "[]", "{}", R"({"metadata": 3})", R"({"metadata": []})",
                           R"({"metadata": {"name": 3, "ownerReferences": {}}})",
                           R"({"metadata": {"ownerReferences": [3, {"controller": "x"}]}})"}) {
    const auto object = nlohmann::json::parse(text);
    EXPECT_EQ(NameOf(object).name, "") << text;
    EXPECT_EQ(ResourceVersionOf(object), std::nullopt) << text;
    EXPECT_EQ(ControllerOf(object), nullptr) << text;
  }
  const auto owned = nlohmann::json::parse(
      R"({"metadata": {"ownerReferences": [{"uid": "a"}, {"uid": "b", "controller": true}]}})");
  ASSERT_NE(ControllerOf(owned), nullptr);
  EXPECT_EQ(TextAt(*ControllerOf(owned), "/uid"), "b");
}

TEST(KubeResource, ResourceVersionsAreIntegers) {
  EXPECT_EQ(ParseResourceVersion("12"), 12u);
  EXPECT_EQ(ParseResourceVersion("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "-1", "1x", " 1", "18446744073709551616", "abc"}) {
    EXPECT_EQ(ParseResourceVersion(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace parallelrun::kube
