// What the operator's process is told on its command line. Plain data; ParseOptions is pure, its
// caller passes in what the environment says of the pod.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/time.h"

namespace parallelrun::operators {

// The part that decisions depend on: plan.h and the builders take this and nothing else.
struct OperatorOptions {
  // Of new jobs, as written on the command line; a job keeps the one it started with (status).
  std::string runtime_image;
  std::string runtime_image_pull_policy = "IfNotPresent";
  // Names of Secrets in the job's namespace, appended to the pods' imagePullSecrets.
  std::vector<std::string> image_pull_secrets;
  // Put on every object of every job; those that make an object the job's win.
  std::map<std::string, std::string> job_labels;
  // Where the operator runs: its ingress rule in a job's NetworkPolicy.
  std::string operator_namespace;
  uint16_t coordinator_port = 8443;  // of new jobs, likewise
  bool network_policies = false;
  // Whose pods may read a coordinator's metrics, where there are such policies.
  std::vector<std::string> metrics_namespaces;
  // uid, gid and fsGroup 65532 and the rest of Pod Security "restricted"; off where the platform
  // chooses the ids itself (OpenShift).
  bool pod_security_defaults = true;
};

struct LeaderOptions {
  bool elect = false;
  // Of the operator's own pod, "" outside of one. It is the identity: a process that follows in the
  // same pod owns the lease of the one before, which the kubelet has seen end, and leads at once.
  std::string pod_uid;
  Duration lease_duration = seconds(15);
  Duration renew_deadline = seconds(10);
  Duration retry_period = seconds(2);
};

struct ProcessOptions {
  OperatorOptions planning;
  std::string kubeconfig;                     // empty: in the cluster, or KUBECONFIG
  std::vector<std::string> watch_namespaces;  // empty: the whole cluster
  std::string metrics_address = ":8080";
  std::string health_address = ":8081";
  LeaderOptions leader;
  int workers = 24;  // each waits for the API server most of its time
  bool per_job_metrics = false;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kJson;
};

struct ParsedOptions {
  ProcessOptions options;
  // --check URL: ask that URL, and nothing else.
  std::string check_url;
  // Set when there is nothing to run: --help, --version, or a mistake (then `exit_code` is 2).
  bool exit = false;
  int exit_code = 0;
  std::string text;  // what to print then
};

// What the environment says of the operator's own pod; empty outside of one.
struct OwnPod {
  std::string name_space;  // POD_NAMESPACE, the default of --namespace
  std::string uid;         // POD_UID
};

ParsedOptions ParseOptions(const std::vector<std::string>& arguments, const OwnPod& pod);

struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// "HOST:PORT", "[IPV6]:PORT" or ":PORT" (an empty host: every address). kInvalid otherwise.
Result<HostPort> ParseHostPort(const std::string& text);

}  // namespace parallelrun::operators
