// Every secret of a job, derived from one operator key and the job's uid, so that nothing has to
// be stored, listed or watched, and a deleted access Secret is made again byte for byte.
// Pure and thread-safe, but for MakeOperatorKey, which asks the kernel for random bytes.
//
// The job's CA has one key and one certificate for all its life (ten years from its creation); the
// coordinator's certificate is valid for 90 days and is replaced every 30 (kTlsPeriod), counted
// from the job's creation. All signatures are Ed25519, which are deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/job.h"
#include "base/error.h"
#include "base/time.h"

namespace parallelrun::operators {

inline constexpr Duration kTlsPeriod = std::chrono::hours(30 * 24);

// 32 random bytes; the content of key `key` of Secret parallelrun-operator-key.
struct OperatorKey {
  std::string bytes;
};
OperatorKey MakeOperatorKey();
// kCorrupt unless it is 32 bytes.
Result<OperatorKey> ReadOperatorKey(std::string bytes);

// What the secrets of a job depend on. Never changes for one uid.
struct JobIdentity {
  std::string name_space;
  std::string name;
  std::string uid;
  WallTime created{};  // metadata.creationTimestamp
};

// "<job>-<first 5 digits of the uid>": the start of the names of all the job's objects.
std::string BaseName(const JobIdentity& job);
// "<base>-coordinator.<namespace>.svc": the only name that the coordinator's certificate is good
// for within the cluster.
std::string CoordinatorHost(const JobIdentity& job);

struct JobCredentials {
  std::string installation;    // the same for all jobs of this operator's key; no secret
  std::string key;             // of the tokens (RoleToken); "key" of coordinator.json
  std::string ca_pem;          // the certificate only; the CA's key is never written anywhere
  std::string tls_pem;         // the coordinator's certificate
  std::string tls_key_pem;     // and its key
  std::string server_name;     // CoordinatorHost
  std::string operator_token;  // of role "operator"
  std::string viewer_token;    // of role "viewer"
  WallTime renew_at{};         // from then on `tls_pem` is another one
};
// `now` before the creation counts as the creation. kInternal when OpenSSL refuses.
Result<JobCredentials> DeriveCredentials(const OperatorKey& key, const JobIdentity& job,
                                         WallTime now);

// What else stands in the access Secret.
struct AccessContent {
  api::Job job;                // with all defaults, as parsed
  std::string code_digest;     // hexadecimal, at most 16 digits; "" for none
  uint32_t nodes = 1;          // nodeCount
  uint32_t highest_nodes = 1;  // highest nodeCount so far: so many agent configurations
  uint32_t processes = 1;      // of each node
  uint16_t coordinator_port = 8443;
};
// The data of Secret <base>-access: file name to content (not base64).
std::map<std::string, std::string> AccessSecretData(const JobCredentials& credentials,
                                                    const JobIdentity& job,
                                                    const AccessContent& content);

}  // namespace parallelrun::operators
