// Where the API server is and who we are: kubeconfigs, the pod's files, tokens that change,
// plugins.
#include "kube/config.h"
#include "base/base64.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"

namespace parallelrun::kube {
namespace {

class FakeClock : public Clock {
 public:
  Instant Now() const override { return Instant(seconds(1000) + passed); }
  WallTime WallNow() const override { return WallTime(seconds(1'700'000'000) + passed); }
  Duration passed{};
};

class KubeConfig : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string Script(const std::string& text) {
    const std::string path = Write("plugin", "#!/bin/sh\n" + text);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  // A kubeconfig whose one cluster and user have these fields.
  Result<ClientConfig> Load(const std::string& cluster, const std::string& user,
                            const std::string& context = "") {
    return KubeconfigConfig(Write("config", R"(
apiVersion: v1
kind: Config
current-context: main
clusters:
- {name: other, cluster: {server: "https://other"}}
- {name: here, cluster: )" + cluster + R"(}
users:
- {name: me, user: )" + user + R"(}
contexts:
- {name: main, context: {cluster: here, user: me, namespace: team}}
- {name: second, context: {cluster: other, user: me}}
- {name: lost, context: {cluster: nowhere, user: me}}
)"),
                            context, clock_);
  }
  Result<ClientConfig> LoadUser(const std::string& user) {
    return Load(R"({server: "https://here:6443"})", user);
  }
  static std::string Token(const ClientConfig& config) {
    const auto credential = config.credentials->Get();
    return credential.ok() ? credential->token : "error: " + credential.error().message;
  }
  static std::string Message(const Result<ClientConfig>& config) {
    return config.ok() ? "no error" : config.error().message;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
};

TEST_F(KubeConfig, ContextClusterAndUser) {
  const auto config = Load(R"({server: "https://here:6443", tls-server-name: kubernetes,
      certificate-authority-data: )" +
                               EncodeBase64("the CA") + "}",
                           "{token: secret}");
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(config->server, "https://here:6443");
  EXPECT_EQ(config->verify_host, "kubernetes");
  EXPECT_EQ(config->name_space, "team");
  EXPECT_EQ(config->ca_pem(), "the CA");
  EXPECT_EQ(Token(*config), "secret");
  EXPECT_EQ(config->source, "kubeconfig " + folder_ + "/config, context main");
  const auto second = Load("{}", "{}", "second");
  ASSERT_TRUE(second.ok()) << Message(second);
  EXPECT_EQ(second->server, "https://other");
  EXPECT_EQ(second->name_space, "default");
  EXPECT_FALSE(second->ca_pem);
}

TEST_F(KubeConfig, FilesAreRelativeToTheKubeconfigAndReadAgain) {
  Write("ca.crt", "first CA");
  Write("me.crt", "certificate");
  Write("me.key", "key");
  const auto config = Load(R"({server: "https://here", certificate-authority: ca.crt})",
                           "{client-certificate: me.crt, client-key: me.key, tokenFile: " +
                               Write("token", "one\n") + "}");
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(config->ca_pem(), "first CA");
  EXPECT_EQ(config->credentials->Get()->certificate_pem, "certificate");
  EXPECT_EQ(config->credentials->Get()->key_pem, "key");
  EXPECT_EQ(Token(*config), "one");
  Write("ca.crt", "second CA");
  EXPECT_EQ(config->ca_pem(), "second CA");
  std::filesystem::remove(folder_ + "/ca.crt");
  EXPECT_EQ(config->ca_pem(), "second CA") << "the last one that could be read";
}

TEST_F(KubeConfig, ATokenFileIsReadAgainAfter50Seconds) {
  const std::string path = Write("token", "one\n");
  const auto credential = FileCredential({}, {path, "", ""}, clock_);
  EXPECT_EQ(credential->Get()->token, "one");
  Write("token", "two\n");
  clock_->passed = seconds(49);
  EXPECT_EQ(credential->Get()->token, "one");
  clock_->passed = seconds(50);
  EXPECT_EQ(credential->Get()->token, "two");
  // It cannot be read for a while: the old one goes on.
  std::filesystem::remove(path);
  clock_->passed = seconds(200);
  EXPECT_EQ(credential->Get()->token, "two");
  Write("token", "three\n");
  EXPECT_EQ(credential->Get()->token, "two");
  clock_->passed = seconds(205);
  EXPECT_EQ(credential->Get()->token, "three");
}

TEST_F(KubeConfig, ARefusedTokenIsReadAgainAtOnce) {
  const std::string path = Write("token", "old");
  const auto credential = FileCredential({}, {path, "", ""}, clock_);
  EXPECT_EQ(credential->Get()->token, "old");
  Write("token", "new");
  credential->Refused("older");  // an answer to a call that began before
  EXPECT_EQ(credential->Get()->token, "old");
  credential->Refused("old");
  EXPECT_EQ(credential->Get()->token, "new");
}

TEST_F(KubeConfig, ErrorsNameFileAndField) {
  const std::string file = folder_ + "/config: ";
  EXPECT_EQ(Message(Load("{}", "{}")),
            "kubeconfig " + file + "clusters[here].cluster.server: is missing: https://host:port");
  EXPECT_NE(Message(Load("{}", "{}", "none")).find("contexts has no \"none\""), std::string::npos);
  EXPECT_NE(Message(Load("{}", "{}", "lost")).find("clusters has no \"nowhere\""),
            std::string::npos);
  for (const auto& [user, field] :
       {std::pair{"{tokenFile: gone}", "users[me].user: read " + folder_ + "/gone"},
        std::pair{"{token: [1]}", std::string("users[me].user.token: must be a text")},
        std::pair{"{client-key-data: '%%%'}", std::string("client-key-data: is not base64")},
        std::pair{"{client-key-data: YQ==}", std::string("must stand together")},
        std::pair{"{username: u, password: p}", std::string("username: is not supported")},
        std::pair{"{auth-provider: {name: oidc}}", std::string("auth-provider: is not supported")},
        std::pair{"{exec: {command: x}}", std::string("user.exec.apiVersion: must be")},
        std::pair{"{exec: 3}", std::string("user.exec: must be a map")}}) {
    const std::string message = Message(LoadUser(user));
    EXPECT_NE(message.find(field), std::string::npos) << message;
    EXPECT_NE(message.find(folder_), std::string::npos) << message;
  }
  EXPECT_NE(Message(Load(R"({server: "https://x", insecure-skip-tls-verify: true})", "{}"))
                .find("insecure-skip-tls-verify"),
            std::string::npos);
  EXPECT_TRUE(Load(R"({server: "https://x", insecure-skip-tls-verify: false})", "{}").ok());
  for (const char* text : {"", "[1, 2]", "a: [", "current-context: {}", "3"}) {
    const auto config = KubeconfigConfig(Write("bad", text), "", clock_);
    ASSERT_FALSE(config.ok()) << text;
    EXPECT_NE(Message(config).find("/bad"), std::string::npos) << Message(config);
  }
  EXPECT_EQ(KubeconfigConfig(folder_ + "/gone", "", clock_).error().code, Code::kNotFound);
}

TEST_F(KubeConfig, APluginIsAskedOnceUntilItsCredentialExpires) {
  const std::string count = folder_ + "/count";
  Script("echo x >> " + count + R"(
echo "$GREETING $1 $KUBERNETES_EXEC_INFO" > )" +
         folder_ + R"(/said
n=$(wc -l < )" +
         count + R"()
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
{"token":"token-'$n'","expirationTimestamp":"2023-11-14T22:18:20Z"}}'
)");
  const auto config = LoadUser(R"({exec: {apiVersion: client.authentication.k8s.io/v1,
      command: ./plugin, args: [get], env: [{name: GREETING, value: hello}],
      interactiveMode: IfAvailable, provideClusterInfo: true}})");
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(Token(*config), "token-1");
  clock_->passed = seconds(289);  // it expires after 300 s
  EXPECT_EQ(Token(*config), "token-1");
  clock_->passed = seconds(290);  // too close to the end
  EXPECT_EQ(Token(*config), "token-2");
  std::ifstream in(folder_ + "/said");
  std::string greeting, argument, info;
  in >> greeting >> argument >> info;
  EXPECT_EQ(greeting, "hello");
  EXPECT_EQ(argument, "get");
  const auto parsed = nlohmann::json::parse(info);
  EXPECT_EQ(parsed["spec"]["cluster"]["server"], "https://here:6443");
  EXPECT_EQ(parsed["spec"]["interactive"], false);
}

TEST_F(KubeConfig, ARefusedPluginTokenIsMadeAnew) {
  const std::string count = folder_ + "/count";
  Script("echo x >> " + count + "\nn=$(wc -l < " + count + R"()
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
{"token":"token-'$n'"}}')");
  const auto config =
      LoadUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(Token(*config), "token-1");
  EXPECT_EQ(Token(*config), "token-1") << "without a time it does not expire";
  config->credentials->Refused("token-1");
  EXPECT_EQ(Token(*config), "token-2");
}

TEST_F(KubeConfig, NobodyWaitsForAPluginThatRunsEarly) {
  // The second time it waits until somebody writes to the pipe.
  const std::string count = folder_ + "/count";
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  Script("echo x >> " + count + "\nn=$(wc -l < " + count + ")\n[ $n = 1 ] || read x < " + pipe + R"(
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
{"token":"token-'$n'","expirationTimestamp":"2023-11-14T22:18:20Z"}}'
)");
  const auto config =
      LoadUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(Token(*config), "token-1");
  clock_->passed = seconds(295);  // it expires after 300 s
  auto renewed = std::async(std::launch::async, [&] { return Token(*config); });
  std::ofstream go(pipe);  // opens once the program reads
  EXPECT_EQ(Token(*config), "token-1");
  EXPECT_EQ(config->credentials->Latest().token, "token-1");
  go << "go" << std::endl;
  EXPECT_EQ(renewed.get(), "token-2");
  EXPECT_EQ(config->credentials->Latest().token, "token-2");
}

TEST_F(KubeConfig, APluginThatFailsIsNamedAndItsSecretsAreNot) {
  const auto message = [&](const std::string& script) {
    Script(script);
    const auto config =
        LoadUser("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin}}");
    return config.ok() ? Token(*config) : Message(config);
  };
  EXPECT_NE(
      message("exit 3").find("users[me].user.exec: " + folder_ + "/./plugin: it ended with 3"),
      std::string::npos)
      << message("exit 3");
  EXPECT_NE(message("kill -9 $$").find("killed by signal 9"), std::string::npos);
  EXPECT_NE(message("echo top-secret").find("did not print JSON"), std::string::npos);
  EXPECT_EQ(message("echo top-secret").find("top-secret"), std::string::npos);
  EXPECT_NE(message("echo '{}'").find("did not print an ExecCredential"), std::string::npos);
  EXPECT_NE(message("cat /dev/zero").find("more than 1 MiB"), std::string::npos);
  const auto missing = LoadUser(R"({exec: {apiVersion: client.authentication.k8s.io/v1,
      command: no-such-plugin-anywhere, installHint: "get it from the moon"}})");
  ASSERT_TRUE(missing.ok()) << Message(missing);
  EXPECT_NE(Token(*missing).find("get it from the moon"), std::string::npos) << Token(*missing);
}

TEST_F(KubeConfig, InClusterReadsThePodsFiles) {
  Write("token", "pod-token\n");
  Write("ca.crt", "pod CA");
  Write("namespace", "parallelrun");
  std::string host = "10.0.0.1";
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    if (name == "KUBERNETES_SERVICE_HOST") return host;
    if (name == "KUBERNETES_SERVICE_PORT") return "443";
    return std::nullopt;
  };
  const auto config = InClusterConfig(environment, clock_, folder_);
  ASSERT_TRUE(config.ok()) << Message(config);
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->name_space, "parallelrun");
  EXPECT_EQ(config->ca_pem(), "pod CA");
  EXPECT_EQ(Token(*config), "pod-token");
  host = "fd00::1";
  const auto ipv6 = InClusterConfig(environment, clock_, folder_);
  EXPECT_EQ(ipv6->server, "https://[fd00::1]:443");
  EXPECT_EQ(ipv6->verify_host, "kubernetes.default.svc");
  std::filesystem::remove(folder_ + "/token");
  EXPECT_NE(Message(InClusterConfig(environment, clock_, folder_)).find(folder_ + "/token"),
            std::string::npos);
}

TEST_F(KubeConfig, TheFlagWinsThenTheEnvironmentThenThePod) {
  ASSERT_TRUE(LoadUser("{token: t}").ok());  // writes the file
  std::map<std::string, std::string> values;
  const Environment environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(LoadConfig({}, environment, clock_).error().code, Code::kNotFound);
  EXPECT_TRUE(LoadConfig({folder_ + "/config", ""}, environment, clock_).ok());
  values["KUBECONFIG"] = folder_ + "/config";
  EXPECT_EQ(LoadConfig({"", "second"}, environment, clock_)->server, "https://other");
  EXPECT_EQ(LoadConfig({folder_ + "/gone", ""}, environment, clock_).error().code, Code::kNotFound);
  values["KUBECONFIG"] = "/a:/b";
  EXPECT_FALSE(LoadConfig({}, environment, clock_).ok());
  values.erase("KUBECONFIG");
  values["HOME"] = folder_;
  std::filesystem::create_directory(folder_ + "/.kube");
  std::filesystem::copy(folder_ + "/config", folder_ + "/.kube/config");
  EXPECT_TRUE(LoadConfig({}, environment, clock_).ok());
}

TEST(KubeBase64, ThereAndBack) {
  for (const char* text : {"", "a", "ab", "abc", "abcd"}) {
    EXPECT_EQ(DecodeBase64(EncodeBase64(text)), text);
  }
  EXPECT_EQ(EncodeBase64(std::string("\0\xff", 2)), "AP8=");
  EXPECT_EQ(DecodeBase64("YW\nJj "), "abc");
  for (const char* text : {"YQ", "Y===", "=YQ=", "YQ=a", "a%%%", "YQ==YQ=="}) {
    EXPECT_EQ(DecodeBase64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace parallelrun::kube
