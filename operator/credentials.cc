#include "operator/credentials.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/object_names.h"
#include "api/to_json.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/version.h"
#include "coordinator/access.h"
#include "operator/builders/objects.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr size_t kKeyBytes = 32;
constexpr Duration kTlsValidity = 3 * kTlsPeriod;
// Clocks of other machines may be behind.
constexpr Duration kClockSlack = std::chrono::hours(1);
constexpr Duration kCaValidity = std::chrono::hours(10 * 366 * 24);

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

// HKDF-SHA256; empty when OpenSSL refuses.
std::string Derive(const OperatorKey& key, const std::string& uid, std::string purpose,
                   size_t size) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(
      EVP_KDF_fetch(nullptr, "HKDF", nullptr), EVP_KDF_free);
  if (!kdf) return "";
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(kdf.get()), EVP_KDF_CTX_free);
  std::string digest = "SHA256";
  std::string secret = key.bytes;
  std::string salt = uid;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, purpose.data(), purpose.size()),
      OSSL_PARAM_construct_end()};
  std::string out(size, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(out.data());
  if (!context || EVP_KDF_derive(context.get(), bytes, size, parameters) != 1) return "";
  return out;
}

PrivateKey KeyFromSeed(const std::string& seed) {
  return {EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr,
                                       reinterpret_cast<const unsigned char*>(seed.data()),
                                       seed.size()),
          EVP_PKEY_free};
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()), X509_EXTENSION_free);
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool SetTime(ASN1_TIME* field, WallTime time) {
  return ASN1_TIME_set(field, std::chrono::floor<seconds>(time.time_since_epoch()).count()) !=
         nullptr;
}

struct CertificateText {
  std::string common_name;
  std::string serial;  // 16 bytes
  WallTime not_before{};
  WallTime not_after{};
  std::string names;  // subjectAltName; empty for the CA
};

// A certificate for `key`, signed by `issuer_key`; by itself when there is no issuer.
Certificate Sign(const CertificateText& text, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key) {
  Certificate certificate(X509_new(), X509_free);
  X509* raw = certificate.get();
  std::string serial = text.serial;
  serial[0] = static_cast<char>((serial[0] & 0x3f) | 0x40);  // positive, and of a fixed length
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(
      BN_bin2bn(reinterpret_cast<const unsigned char*>(serial.data()),
                static_cast<int>(serial.size()), nullptr),
      BN_free);
  const bool is_ca = issuer == nullptr;
  X509* signer = is_ca ? raw : issuer;
  const auto* name = reinterpret_cast<const unsigned char*>(text.common_name.c_str());
  const bool made =
      raw != nullptr && number && X509_set_version(raw, 2) == 1 &&
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(raw)) != nullptr &&
      SetTime(X509_getm_notBefore(raw), text.not_before) &&
      SetTime(X509_getm_notAfter(raw), text.not_after) && X509_set_pubkey(raw, key) == 1 &&
      X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_ASC, name, -1, -1, 0) ==
          1 &&
      X509_set_issuer_name(raw, X509_get_subject_name(signer)) == 1 &&
      AddExtension(raw, signer, NID_subject_key_identifier, "hash") &&
      AddExtension(raw, signer, NID_authority_key_identifier, "keyid") &&
      AddExtension(raw, signer, NID_basic_constraints,
                   is_ca ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") &&
      AddExtension(raw, signer, NID_key_usage,
                   is_ca ? "critical,keyCertSign" : "critical,digitalSignature") &&
      (is_ca || (AddExtension(raw, signer, NID_ext_key_usage, "serverAuth") &&
                 AddExtension(raw, signer, NID_subject_alt_name, text.names))) &&
      X509_sign(raw, issuer_key, nullptr) > 0;
  if (!made) certificate.reset();
  return certificate;
}

template <typename Writer>
std::string Pem(Writer write) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  if (!bio || write(bio.get()) != 1) return "";
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string CertificatePem(X509* certificate) {
  return Pem([certificate](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string CodeFolder(const api::CodeSource& code) {
  switch (code.kind) {
    case api::CodeKind::kVolume:
      return code.path == "." ? "/mnt/" + code.name : "/mnt/" + code.name + "/" + code.path;
    case api::CodeKind::kImage: return code.path;
    default: return "/opt/code";
  }
}

std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

OperatorKey MakeOperatorKey() {
  OperatorKey key;
  while (key.bytes.size() < kKeyBytes) {
    uint64_t word = RandomU64();
    for (size_t i = 0; i < sizeof(word); ++i, word >>= 8) {
      key.bytes += static_cast<char>(word & 0xff);
    }
  }
  return key;
}

Result<OperatorKey> ReadOperatorKey(std::string bytes) {
  if (bytes.size() != kKeyBytes) {
    return Error{Code::kCorrupt, fmt::format("the operator's key has {} bytes in place of {}",
                                             bytes.size(), kKeyBytes)};
  }
  return OperatorKey{std::move(bytes)};
}

std::string BaseName(const JobIdentity& job) { return api::ObjectBase(job.name, job.uid); }

std::string CoordinatorHost(const JobIdentity& job) {
  return api::CoordinatorServiceName(job.name, job.uid) + "." + job.name_space + ".svc";
}

Result<JobCredentials> DeriveCredentials(const OperatorKey& key, const JobIdentity& job,
                                         WallTime now) {
  const int64_t period = std::max<int64_t>(0, (now - job.created) / kTlsPeriod);
  const WallTime begin = job.created + period * kTlsPeriod;
  const auto derive = [&](const std::string& purpose, size_t size) {
    return Derive(key, job.uid, purpose, size);
  };
  const std::string mac_key = derive("key", kKeyBytes);
  const std::string installation = Derive(key, "", "installation", 8);
  const std::string ca_serial = derive("ca-serial", 16);
  const std::string tls_serial = derive(fmt::format("tls-serial-{}", period), 16);
  const PrivateKey ca_key = KeyFromSeed(derive("ca", kKeyBytes));
  const PrivateKey tls_key = KeyFromSeed(derive("tls", kKeyBytes));
  const Error refused{Code::kInternal,
                      "OpenSSL refuses to make the certificates of job " + job.name};
  if (mac_key.empty() || installation.empty() || ca_serial.empty() || tls_serial.empty() ||
      !ca_key || !tls_key) {
    return refused;
  }

  JobCredentials out;
  out.server_name = CoordinatorHost(job);
  const WallTime first = job.created - kClockSlack;
  const Certificate ca =
      Sign({"parallelrun job " + job.uid, ca_serial, first, first + kCaValidity, ""}, ca_key.get(),
           nullptr, ca_key.get());
  if (!ca) return refused;
  // "localhost" for those who reach the coordinator through a forwarded port.
  const Certificate tls = Sign({"parallelrun coordinator", tls_serial, begin - kClockSlack,
                                begin + kTlsValidity, "DNS:" + out.server_name + ",DNS:localhost"},
                               tls_key.get(), ca.get(), ca_key.get());
  if (!tls) return refused;
  out.installation = Hex(installation);
  out.key = Hex(mac_key);
  out.ca_pem = CertificatePem(ca.get());
  out.tls_pem = CertificatePem(tls.get());
  out.tls_key_pem = Pem([&tls_key](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, tls_key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  if (out.ca_pem.empty() || out.tls_pem.empty() || out.tls_key_pem.empty()) return refused;
  out.operator_token = coordinator::RoleToken(out.key, "operator");
  out.viewer_token = coordinator::RoleToken(out.key, "viewer");
  out.renew_at = begin + kTlsPeriod;
  return out;
}

std::map<std::string, std::string> AccessSecretData(const JobCredentials& credentials,
                                                    const JobIdentity& job,
                                                    const AccessContent& content) {
  json volumes = json::object();
  for (const api::Volume& volume : content.job.spec.volumes)
    volumes[volume.name] = "/mnt/" + volume.name;
  json store_keys = json::object();
  for (const api::ObjectStore& store : content.job.spec.stores) {
    if (!store.credentials.secret_name.empty()) store_keys[store.name] = StoreKeysFolder(store);
  }
  std::map<std::string, std::string> data;
  data["coordinator.json"] =
      Dump({{"release", kVersion},
            {"job", api::ToJson(content.job)},
            {"volumes", volumes},
            {"storeKeys", store_keys},
            {"presign", true},
            {"installation", credentials.installation},
            {"key", credentials.key},
            {"listen",
             {{"address", fmt::format(":{}", content.coordinator_port)},
              {"certificate", "/etc/parallelrun/tls.crt"},
              {"privateKey", "/etc/parallelrun/tls.key"}}},
            {"metricsListen", ":9102"},
            {"resourceUid", job.uid},
            {"codeDigest", content.code_digest.empty() ? "0" : content.code_digest},
            {"nodes", content.nodes},
            {"processes", content.processes},
            {"page", true},
            {"terminationMessage", "/dev/termination-log"}});
  data["tls.crt"] = credentials.tls_pem;
  data["tls.key"] = credentials.tls_key_pem;
  data["ca.crt"] = credentials.ca_pem;
  data["viewer"] = credentials.viewer_token;
  data["agent.json"] = Dump(
      {{"url", fmt::format("https://{}:{}", credentials.server_name, content.coordinator_port)},
       {"certificateAuthority", "/etc/parallelrun/ca.crt"},
       {"nodeFile", "/etc/parallelrun/node.json"},
       {"codeFolder", CodeFolder(content.job.spec.code)},
       {"workFolder", "/var/lib/parallelrun/work"},
       {"pythonPath", "/opt/parallelrun/python"}});
  // A Secret holds 1 MiB: what nodes have in common stands above, once.
  for (uint32_t node = 0; node < content.highest_nodes; ++node) {
    data[fmt::format("node-{}.json", node)] =
        fmt::format(R"({{"node":{},"token":"{}"}})", node,
                    coordinator::RoleToken(credentials.key, fmt::format("node:{}", node)));
  }
  return data;
}

}  // namespace parallelrun::operators
