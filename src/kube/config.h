// Where the API server is and how to prove who we are: from the pod (in-cluster) or a kubeconfig.
// Errors name the file and the field, and never hold a secret.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace parallelrun::kube {

struct Credential {
  std::string token;            // "" sends no Authorization
  std::string certificate_pem;  // with key_pem: a client certificate
  std::string key_pem;
};

// Thread-safe. `Get` may read a file or run a program (bounded by kExecTimeout).
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;
  // The credential to use now, from a cache while it is fresh. When renewing fails, the old one for
  // as long as there is one.
  virtual Result<Credential> Get() = 0;
  // What `Get` gave last, at once: for threads that must not wait. Empty before the first.
  virtual Credential Latest() = 0;
  // The server answered 401 to `token`: the cache is dropped, unless it holds another one already.
  virtual void Refused(const std::string& token) = 0;
};

inline constexpr Duration kTokenPeriod = seconds(60);  // how long a token file is believed
inline constexpr Duration kTokenLeeway = seconds(10);  // renewed this much earlier
inline constexpr Duration kExecTimeout = seconds(60);

struct ClientConfig {
  std::string server;       // "https://10.0.0.1:6443", maybe with a path
  std::string verify_host;  // the name the certificate must carry, if not that of `server`
  std::string name_space;   // the pod's, or the context's; "default" if neither says
  std::string source;       // "in-cluster", "kubeconfig /x, context y": for messages
  std::shared_ptr<CredentialSource> credentials;
  std::function<std::string()> ca_pem;  // read for each new connection; "" is the system's CAs
};

// What the environment is asked for; tests pass their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment SystemEnvironment();

// KUBERNETES_SERVICE_HOST and _PORT, and the folder's token, ca.crt and namespace. kNotFound when
// this is no pod.
Result<ClientConfig> InClusterConfig(
    const Environment& environment, const std::shared_ptr<const Clock>& clock,
    const std::string& folder = "/var/run/secrets/kubernetes.io/serviceaccount");

// One kubeconfig file. `context` "" is its current-context. Known: certificate-authority and
// client-certificate/-key as file (read again for each connection) or data, tls-server-name, token,
// tokenFile, exec of client.authentication.k8s.io/v1. Refused with the reason: auth-provider,
// username, insecure-skip-tls-verify, proxy-url, impersonation (as).
Result<ClientConfig> KubeconfigConfig(const std::string& path, const std::string& context,
                                      const std::shared_ptr<const Clock>& clock);

struct ConfigOptions {
  std::string kubeconfig;  // --kubeconfig; wins over everything
  std::string context;
};
// --kubeconfig, else KUBECONFIG (one file), else in-cluster, else ~/.kube/config.
Result<ClientConfig> LoadConfig(const ConfigOptions& options, const Environment& environment,
                                const std::shared_ptr<const Clock>& clock);

// A credential that never changes.
std::shared_ptr<CredentialSource> FixedCredential(Credential credential);

struct CredentialFiles {  // "": not from a file
  std::string token;
  std::string certificate;
  std::string key;
};
// `fixed`, with what stands in the files in place of it; they are read again after kTokenPeriod.
std::shared_ptr<CredentialSource> FileCredential(Credential fixed, CredentialFiles files,
                                                 std::shared_ptr<const Clock> clock);

struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1
  std::string command;      // with a "/": a path; else searched for in PATH
  std::vector<std::string> arguments;
  std::map<std::string, std::string> env;
  std::string cluster_json;  // for KUBERNETES_EXEC_INFO's spec.cluster; "" for none
  std::string install_hint;
  std::string place;  // for messages: "kubeconfig /x: users[y].user.exec"
};
// The credential that the program prints, until its expirationTimestamp.
std::shared_ptr<CredentialSource> ExecCredential(ExecPlugin plugin,
                                                 std::shared_ptr<const Clock> clock);

}  // namespace parallelrun::kube
