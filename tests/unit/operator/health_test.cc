// /healthz, /readyz and /metrics, as a kubelet and Prometheus ask for them.
#include "operator/health.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "rest_client/client.h"
#include "tests/unit/base/http/fixture.h"

namespace parallelrun::operators {
namespace {

struct Servers {
  explicit Servers(const std::string& health, const std::string& metrics) {
    auto started =
        HealthServers::Start(health, metrics,
                             {[this] { return stuck ? "a reconcile has been running for 6m" : ""; },
                              [this] { return ready ? "" : "the caches are being filled"; },
                              [] { return "parallelrun_build_info 1\n"; }},
                             [] {});
    EXPECT_TRUE(started.ok()) << started.error().message;
    if (started.ok()) servers = std::move(*started);
  }
  static HttpResponse Ask(uint16_t port, const std::string& path,
                          const std::string& method = "GET") {
    rest_client::RestClientOptions options;
    options.base_url = "http://127.0.0.1:" + std::to_string(port);
    auto client = rest_client::RestClient::Make(options);
    HttpRequest request;
    request.method = method;
    request.path = path;
    Result<HttpResponse> answer = (*client)->Send(std::move(request), seconds(10));
    EXPECT_TRUE(answer.ok()) << answer.error().message;
    return answer.ok() ? *answer : HttpResponse{};
  }

  std::atomic<bool> stuck{false};
  std::atomic<bool> ready{false};
  std::unique_ptr<HealthServers> servers;
};

TEST(OperatorHealth, SaysWhyItIsNotWell) {
  Servers all("127.0.0.1:0", "127.0.0.1:0");
  const uint16_t port = all.servers->health_port();
  EXPECT_EQ(Servers::Ask(port, "/healthz").status, 200);
  const HttpResponse not_ready = Servers::Ask(port, "/readyz");
  EXPECT_EQ(not_ready.status, 503);
  EXPECT_NE(not_ready.body.find("the caches are being filled"), std::string::npos);
  all.ready = true;
  EXPECT_EQ(Servers::Ask(port, "/readyz").status, 200);
  all.stuck = true;
  EXPECT_EQ(Servers::Ask(port, "/healthz").status, 503);
}

TEST(OperatorHealth, OneAddressServesEverythingAndTwoTheirOwn) {
  Servers together("127.0.0.1:0", "127.0.0.1:0");
  const uint16_t both = together.servers->health_port();
  EXPECT_EQ(Servers::Ask(both, "/metrics").body, "parallelrun_build_info 1\n");
  EXPECT_EQ(Servers::Ask(both, "/healthz").status, 200);

  Servers apart("127.0.0.1:0", ":0");
  const uint16_t metrics = apart.servers->metrics_port();
  EXPECT_NE(metrics, apart.servers->health_port());
  EXPECT_EQ(Servers::Ask(metrics, "/metrics").status, 200);
  EXPECT_EQ(Servers::Ask(metrics, "/healthz").status, 404);
  EXPECT_EQ(Servers::Ask(apart.servers->health_port(), "/metrics").status, 404);
}

TEST(OperatorHealth, ACrowdOfSilentConnectionsKeepsNoProbeOut) {
  Servers together("127.0.0.1:0", "127.0.0.1:0");
  const uint16_t port = together.servers->health_port();
  together.ready = true;
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 300; ++i) crowd.push_back(std::make_unique<RawClient>(port));
  EXPECT_EQ(Servers::Ask(port, "/healthz").status, 200);
  EXPECT_EQ(Servers::Ask(port, "/readyz").status, 200);
  for (const auto& silent : crowd) EXPECT_EQ(silent->ReadToEnd(), "") << "closed after a second";
  EXPECT_EQ(Servers::Ask(port, "/metrics").status, 200);
}

TEST(OperatorHealth, NothingElseIsServed) {
  Servers all("127.0.0.1:0", "0");
  const uint16_t port = all.servers->health_port();
  EXPECT_EQ(all.servers->metrics_port(), 0);
  EXPECT_EQ(Servers::Ask(port, "/").status, 404);
  EXPECT_EQ(Servers::Ask(port, "/healthz", "POST").status, 405);
}

TEST(OperatorHealth, AnAddressThatCannotBeListenedOnIsNamed) {
  const HealthSources none{[] { return ""; }, [] { return ""; }, [] { return ""; }};
  const auto started = HealthServers::Start("nonsense", "0", none, [] {});
  ASSERT_FALSE(started.ok());
  EXPECT_NE(started.error().message.find("--health-address"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::operators
