#include "operator/options.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace parallelrun::operators {
namespace {

ParsedOptions Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--runtime-image", "runtime@sha256:1"});
  return ParseOptions(arguments, {"parallelrun-system", "4d1a"});
}

TEST(OperatorOptions, DefaultsNeedOnlyTheImage) {
  const ParsedOptions parsed = Parse({});
  ASSERT_FALSE(parsed.exit) << parsed.text;
  EXPECT_EQ(parsed.options.planning.runtime_image, "runtime@sha256:1");
  EXPECT_EQ(parsed.options.planning.operator_namespace, "parallelrun-system");
  EXPECT_TRUE(parsed.options.planning.pod_security_defaults);
  EXPECT_FALSE(parsed.options.leader.elect);
  EXPECT_EQ(parsed.options.leader.pod_uid, "4d1a");
  EXPECT_TRUE(parsed.options.watch_namespaces.empty());
  EXPECT_EQ(parsed.options.log_format, LogFormat::kJson);
}

TEST(OperatorOptions, EveryFlagIsRead) {
  const ParsedOptions parsed = Parse({"--namespace=ops",
                                      "--watch-namespaces",
                                      "a,b",
                                      "--coordinator-port",
                                      "9443",
                                      "--leader-elect",
                                      "--leader-lease-duration",
                                      "30s",
                                      "--leader-renew-deadline=20s",
                                      "--leader-retry-period=1500ms",
                                      "--network-policies",
                                      "--metrics-namespaces=monitoring,teams",
                                      "--pod-security-defaults=false",
                                      "--workers",
                                      "8",
                                      "--per-job-metrics",
                                      "--log-level",
                                      "debug",
                                      "--log-format",
                                      "text",
                                      "--metrics-address",
                                      "127.0.0.1:0",
                                      "--health-address",
                                      "0",
                                      "--job-labels",
                                      "a=b,c=",
                                      "--image-pull-secrets",
                                      "one,two",
                                      "--runtime-image-pull-policy",
                                      "Always"});
  ASSERT_FALSE(parsed.exit) << parsed.text;
  const ProcessOptions& options = parsed.options;
  EXPECT_EQ(options.planning.operator_namespace, "ops");
  EXPECT_EQ(options.watch_namespaces, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.planning.coordinator_port, 9443);
  EXPECT_TRUE(options.leader.elect);
  EXPECT_EQ(options.leader.lease_duration, seconds(30));
  EXPECT_EQ(options.leader.retry_period, milliseconds(1500));
  EXPECT_TRUE(options.planning.network_policies);
  EXPECT_EQ(options.planning.metrics_namespaces, (std::vector<std::string>{"monitoring", "teams"}));
  EXPECT_FALSE(options.planning.pod_security_defaults);
  EXPECT_EQ(options.workers, 8);
  EXPECT_TRUE(options.per_job_metrics);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  EXPECT_EQ(options.log_format, LogFormat::kTerminal);
  EXPECT_EQ(options.planning.job_labels,
            (std::map<std::string, std::string>{{"a", "b"}, {"c", ""}}));
  EXPECT_EQ(options.planning.image_pull_secrets, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(options.planning.runtime_image_pull_policy, "Always");
}

TEST(OperatorOptions, DurationsAreNumbersWithUnits) {
  const auto lease = [](const std::string& text) -> std::optional<Duration> {
    const ParsedOptions parsed = Parse({"--leader-lease-duration", text});
    if (parsed.exit) return std::nullopt;
    return parsed.options.leader.lease_duration;
  };
  EXPECT_EQ(lease("20"), seconds(20));
  EXPECT_EQ(lease("1m30s"), seconds(90));
  EXPECT_EQ(lease("1h0m15s250ms"), seconds(3615) + milliseconds(250));
  EXPECT_EQ(lease("8760h"), std::chrono::hours(8760));
  for (const char* text : {"", "s", "1m30", "1 m", "15d", "-15s", "1.5m", "8760h1ms", "999999999h",
                           "9999999999ms", "8760h8760h8760h"}) {
    EXPECT_EQ(lease(text), std::nullopt) << text;
  }
}

TEST(OperatorOptions, HelpAndVersionSucceed) {
  EXPECT_EQ(Parse({"--help"}).exit_code, 0);
  EXPECT_NE(Parse({"--help"}).text.find("--runtime-image"), std::string::npos);
  EXPECT_NE(Parse({"--version"}).text.find(PARALLELRUN_VERSION), std::string::npos);
}

TEST(OperatorOptions, ACheckNeedsNothingElse) {
  const ParsedOptions parsed = ParseOptions({"--check", "http://localhost:8081/readyz"}, {});
  EXPECT_FALSE(parsed.exit) << parsed.text;
  EXPECT_EQ(parsed.check_url, "http://localhost:8081/readyz");
}

TEST(OperatorOptions, MistakesNameTheMend) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& part) {
    const ParsedOptions parsed = Parse(arguments);
    EXPECT_TRUE(parsed.exit);
    EXPECT_EQ(parsed.exit_code, 2);
    EXPECT_NE(parsed.text.find(part), std::string::npos) << parsed.text;
  };
  refused({"--leader-lease-duration", "soon"}, "write 15s");
  refused({"--leader-renew-deadline", "15s"}, "15s, 10s and 2s");
  refused({"--metrics-address", "8080"}, "HOST:PORT");
  refused({"--job-labels", "x"}, "NAME=VALUE");
  refused({"--workers", "0"}, "--workers");
  refused({"--worker", "1"}, "--help");
  EXPECT_NE(ParseOptions({}, {"ns", ""}).text.find("--runtime-image"), std::string::npos);
  EXPECT_NE(ParseOptions({"--runtime-image", "x"}, {}).text.find("POD_NAMESPACE"),
            std::string::npos);
}

TEST(OperatorOptions, AddressesMayBeIpv6) {
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseHostPort(":80")->host, "") << "every address";
  EXPECT_EQ(ParseHostPort(":80")->port, 80);
  EXPECT_FALSE(ParseHostPort("::1:80").ok());
  EXPECT_FALSE(ParseHostPort("host:99999").ok());
}

}  // namespace
}  // namespace parallelrun::operators
