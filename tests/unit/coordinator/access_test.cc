#include "coordinator/access.h"

#include <gtest/gtest.h>

namespace parallelrun::coordinator {
namespace {

constexpr char kKey[] = "0123456789abcdef0123456789abcdef";

HttpRequest Request(const std::string& method, const std::string& path, const std::string& role) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  if (!role.empty()) request.headers = {{"Authorization", "Bearer " + RoleToken(kKey, role)}};
  return request;
}

// The status of the refusal, or 0 for admission.
int Refused(const HttpRequest& request) {
  const auto admitted = Admit(request, kKey);
  const auto* refusal = std::get_if<HttpResponse>(&admitted);
  return refusal == nullptr ? 0 : refusal->status;
}

TEST(AccessTest, WhoMayCallWhat) {
  const struct {
    const char* method;
    const char* path;
    const char* role;
    int refused;
  } table[] = {
      {"POST", "/v1/nodes/3/exchange", "node:3", 0},
      {"POST", "/v1/nodes/3/register", "node:3", 0},
      {"PUT", "/v1/nodes/3/logs/user/stdout/3/x", "node:3", 0},
      {"POST", "/v1/nodes/4/exchange", "node:3", 401},
      {"POST", "/v1/nodes/03/exchange", "node:3", 401},
      {"POST", "/v1/nodes/3/exchange", "viewer", 403},
      {"POST", "/v1/nodes/3/exchange", "operator", 403},
      {"POST", "/v1/nodes/3/exchange", "", 401},
      {"GET", "/v1/progress", "viewer", 0},
      {"GET", "/v1/progress", "operator", 0},
      {"GET", "/v1/progress", "node:3", 401},
      {"GET", "/v1/progress", "", 401},
      {"GET", "/metrics", "viewer", 0},
      {"PUT", "/v1/control", "operator", 0},
      {"PUT", "/v1/control", "viewer", 403},
      {"PUT", "/v1/control", "node:0", 401},
      {"GET", "/healthz", "", 0},
      {"GET", "/readyz", "", 0},
      {"GET", "/v1/../control", "operator", 400},
      {"GET", "/", "operator", 404},
  };
  for (const auto& row : table) {
    EXPECT_EQ(Refused(Request(row.method, row.path, row.role)), row.refused)
        << row.method << " " << row.path << " as " << row.role;
  }
}

TEST(AccessTest, ATokenOfAnotherJobIsWorthNothing) {
  HttpRequest request = Request("GET", "/v1/progress", "");
  request.headers = {
      {"Authorization", "Bearer " + RoleToken("another key of the same length....", "viewer")}};
  EXPECT_EQ(Refused(request), 401);
}

TEST(AccessTest, BodiesAreBoundedByWhatTheyCarry) {
  EXPECT_EQ(std::get<size_t>(Admit(Request("PUT", "/v1/control", "operator"), kKey)), 64u << 10);
  EXPECT_EQ(std::get<size_t>(Admit(Request("POST", "/v1/nodes/0/exchange", "node:0"), kKey)),
            16u << 20);
  EXPECT_EQ(std::get<size_t>(Admit(Request("GET", "/v1/progress", "viewer"), kKey)), 0u);
}

}  // namespace
}  // namespace parallelrun::coordinator
