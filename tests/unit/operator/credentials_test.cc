// The secrets of a job: what they are good for, and that they are a pure function.
#include "operator/credentials.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "api/parse.h"
#include "coordinator/access.h"
#include "coordinator/start/config.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using X509Ptr = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr Duration kDay = std::chrono::hours(24);
const WallTime kCreated{std::chrono::seconds(1'800'000'000)};
const OperatorKey kKey{std::string(32, 'k')};
const JobIdentity kJob{"team-a", "digits", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", kCreated};

JobCredentials Derive(const OperatorKey& key, const JobIdentity& job, WallTime now) {
  const Result<JobCredentials> made = DeriveCredentials(key, job, now);
  EXPECT_TRUE(made.ok());
  return made.ok() ? *made : JobCredentials{};
}

X509Ptr Read(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free};
}

// The verdict of OpenSSL on the chain and the name, at `when`.
int Verify(const std::string& ca, const std::string& leaf, const std::string& host, WallTime when) {
  const X509Ptr ca_certificate = Read(ca);
  const X509Ptr certificate = Read(leaf);
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      X509_STORE_free);
  X509_STORE_add_cert(store.get(), ca_certificate.get());
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), X509_STORE_CTX_free);
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_VERIFY_PARAM* wanted = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), 0);
  X509_VERIFY_PARAM_set_purpose(wanted, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_flags(wanted, X509_V_FLAG_X509_STRICT);
  X509_VERIFY_PARAM_set_time(
      wanted, std::chrono::duration_cast<std::chrono::seconds>(when.time_since_epoch()).count());
  X509_verify_cert(context.get());
  return X509_STORE_CTX_get_error(context.get());
}

AccessContent Content() {
  const json object = {
      {"apiVersion", "parallelrun.dev/v1alpha1"},
      {"kind", "ParallelRunJob"},
      {"metadata", {{"name", "digits"}, {"namespace", "team-a"}}},
      {"spec",
       {{"entryScript", "score.py"},
        {"code", {{"volume", "src"}, {"path", "scoring"}}},
        {"environment", {{"image", "digits:1"}}},
        {"volumes",
         {{{"name", "src"}, {"persistentVolumeClaim", {{"claimName", "src"}}}},
          {{"name", "out"}, {"persistentVolumeClaim", {{"claimName", "out"}}}}}},
        {"inputs", {{{"name", "images"}, {"files", {{"volume", "src"}, {"path", "in"}}}}}},
        {"output", {{"volume", "out"}}}}}};
  api::ParsedJob parsed = api::ReadJob(object, api::Target::kCluster);
  for (const api::Problem& problem : parsed.problems)
    ADD_FAILURE() << api::FormatProblem(problem, "job");
  AccessContent content;
  content.job = parsed.job;
  content.code_digest = "00ab";
  content.nodes = 2;
  content.highest_nodes = 3;
  content.processes = 4;
  return content;
}

TEST(Credentials, OpenSslVerifiesTheChainAndTheName) {
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  EXPECT_EQ(made.server_name, "digits-3f250-coordinator.team-a.svc");
  EXPECT_EQ(Verify(made.ca_pem, made.tls_pem, made.server_name, kCreated), X509_V_OK);
  EXPECT_EQ(Verify(made.ca_pem, made.tls_pem, "localhost", kCreated), X509_V_OK);
  EXPECT_EQ(Verify(made.ca_pem, made.tls_pem, "digits-3f250-coordinator.team-b.svc", kCreated),
            X509_V_ERR_HOSTNAME_MISMATCH);
}

TEST(Credentials, TheKeyBelongsToTheCertificate) {
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(made.tls_key_pem.data(), static_cast<int>(made.tls_key_pem.size())),
      BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  ASSERT_TRUE(key);
  EXPECT_EQ(X509_check_private_key(Read(made.tls_pem).get(), key.get()), 1);
}

TEST(Credentials, TheKeyOfTheCaIsWrittenNowhere) {
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  int keys = 0;
  for (const auto& [name, text] : AccessSecretData(made, kJob, Content())) {
    if (text.find("PRIVATE KEY") == std::string::npos) continue;
    EXPECT_EQ(name, "tls.key");
    EXPECT_EQ(text, made.tls_key_pem);
    ++keys;
  }
  EXPECT_EQ(keys, 1);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(made.tls_key_pem.data(), static_cast<int>(made.tls_key_pem.size())),
      BIO_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  EXPECT_EQ(X509_check_private_key(Read(made.ca_pem).get(), key.get()), 0) << "it is another one";
}

TEST(Credentials, TheSameInputsGiveTheSameBytes) {
  const JobCredentials first = Derive(kKey, kJob, kCreated + kDay);
  const JobCredentials again = Derive(kKey, kJob, kCreated + 29 * kDay);
  EXPECT_EQ(AccessSecretData(first, kJob, Content()), AccessSecretData(again, kJob, Content()));
}

TEST(Credentials, EveryOtherJobAndKeyGivesOtherSecrets) {
  JobIdentity other_uid = kJob;
  other_uid.uid.back() = '2';
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  for (const JobCredentials& other :
       {Derive(kKey, other_uid, kCreated), Derive({std::string(32, 'x')}, kJob, kCreated)}) {
    EXPECT_NE(made.key, other.key);
    EXPECT_NE(made.tls_key_pem, other.tls_key_pem);
    EXPECT_NE(made.operator_token, other.operator_token);
    EXPECT_NE(Verify(other.ca_pem, made.tls_pem, made.server_name, kCreated), X509_V_OK);
  }
}

TEST(Credentials, TheCertificateIsRenewedInPeriodsAndTheCaStays) {
  const JobCredentials first = Derive(kKey, kJob, kCreated);
  EXPECT_EQ(first.renew_at, kCreated + kTlsPeriod);
  const JobCredentials second = Derive(kKey, kJob, first.renew_at);
  EXPECT_NE(first.tls_pem, second.tls_pem);
  EXPECT_EQ(first.ca_pem, second.ca_pem);
  EXPECT_EQ(first.key, second.key);
  EXPECT_EQ(second.renew_at, kCreated + 2 * kTlsPeriod);
  // Two whole periods to notice, with either certificate.
  for (const WallTime when : {first.renew_at, kCreated + 89 * kDay}) {
    EXPECT_EQ(Verify(first.ca_pem, first.tls_pem, first.server_name, when), X509_V_OK);
    EXPECT_EQ(Verify(first.ca_pem, second.tls_pem, first.server_name, when), X509_V_OK);
  }
  EXPECT_EQ(Verify(first.ca_pem, first.tls_pem, first.server_name, kCreated + 91 * kDay),
            X509_V_ERR_CERT_HAS_EXPIRED);
}

TEST(Credentials, AClockBehindTheCreationIsTheCreation) {
  EXPECT_EQ(Derive(kKey, kJob, kCreated - kDay).tls_pem, Derive(kKey, kJob, kCreated).tls_pem);
}

TEST(Credentials, TheCoordinatorReadsItsConfiguration) {
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  const auto data = AccessSecretData(made, kJob, Content());
  const Result<coordinator::CoordinatorConfig> config =
      coordinator::ParseConfig(data.at("coordinator.json"));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->key, made.key);
  EXPECT_EQ(config->resource_uid, kJob.uid);
  EXPECT_EQ(config->nodes, 2U);
  EXPECT_EQ(config->processes, 4U);
  EXPECT_EQ(config->code_digest, 0xabU);
  EXPECT_EQ(config->volumes.at("out"), "/mnt/out");
  EXPECT_EQ(config->http.host, "") << "every address, of whichever family the cluster has";
  EXPECT_EQ(config->http.port, 8443);
  EXPECT_EQ(config->metrics_http->host, "");
  EXPECT_EQ(config->metrics_http->port, 9102);
  EXPECT_FALSE(config->resume);
  EXPECT_EQ(data.at("viewer"), coordinator::RoleToken(made.key, "viewer"));
}

TEST(Credentials, TheCoordinatorHearsWhereTheKeysOfStoresAreMounted) {
  AccessContent content = Content();
  api::ObjectStore named{"photos", "s3://photos", "", "", {}, {"photos-keys", "id", "key", ""}};
  api::ObjectStore unnamed{"public", "s3://public", "", "", {}, {}};
  content.job.spec.stores = {named, unnamed};
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  const auto data = AccessSecretData(made, kJob, content);
  const json config = json::parse(data.at("coordinator.json"));
  EXPECT_EQ(config["storeKeys"], json({{"photos", "/etc/parallelrun-stores/photos"}}));
  EXPECT_EQ(config["presign"], true) << "nodes get none of them";
  EXPECT_EQ(config["installation"], made.installation);
}

TEST(Credentials, AnInstallationIsTheSameForAllItsJobs) {
  JobIdentity other = kJob;
  other.uid[0] = other.uid[0] == '0' ? '1' : '0';
  const std::string one = Derive(kKey, kJob, kCreated).installation;
  EXPECT_EQ(one.size(), 16u);
  EXPECT_EQ(one, Derive(kKey, other, kCreated).installation);
  EXPECT_NE(one, Derive(MakeOperatorKey(), kJob, kCreated).installation);
}

TEST(Credentials, EveryNodeGetsATokenOfItsOwn) {
  const JobCredentials made = Derive(kKey, kJob, kCreated);
  const auto data = AccessSecretData(made, kJob, Content());
  const json agent = json::parse(data.at("agent.json"));
  EXPECT_EQ(agent["url"], "https://digits-3f250-coordinator.team-a.svc:8443");
  EXPECT_EQ(agent["codeFolder"], "/mnt/src/scoring");
  EXPECT_EQ(agent["nodeFile"], "/etc/parallelrun/node.json");
  EXPECT_FALSE(agent.contains("token"));
  std::set<std::string> tokens;
  for (const int node : {0, 1, 2}) {
    const json own = json::parse(data.at("node-" + std::to_string(node) + ".json"));
    EXPECT_EQ(own["token"], coordinator::RoleToken(made.key, "node:" + std::to_string(node)));
    EXPECT_EQ(own["node"], node);
    tokens.insert(own["token"]);
  }
  EXPECT_EQ(tokens.size(), 3U);
  EXPECT_FALSE(data.contains("node-3.json"));
  EXPECT_EQ(data.at("node-0.json").find(made.key), std::string::npos);
}

TEST(Credentials, ASecretHoldsFiveThousandNodes) {
  AccessContent content = Content();
  content.highest_nodes = 5000;
  size_t bytes = 0;
  for (const auto& [name, text] : AccessSecretData(Derive(kKey, kJob, kCreated), kJob, content)) {
    bytes += text.size();
  }
  EXPECT_LT(bytes, size_t{1} << 19) << "the API server takes 1 MiB of data";
}

TEST(Credentials, TheOperatorsKeyIsRandomAndOfOneLength) {
  EXPECT_NE(MakeOperatorKey().bytes, MakeOperatorKey().bytes);
  EXPECT_TRUE(ReadOperatorKey(MakeOperatorKey().bytes).ok());
  EXPECT_FALSE(ReadOperatorKey("short").ok());
}

}  // namespace
}  // namespace parallelrun::operators
