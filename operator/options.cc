#include "operator/options.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/version.h"

namespace parallelrun::operators {
namespace {

constexpr char kAbout[] =
    "Runs the ParallelRunJobs of a Kubernetes cluster: pods, services, secrets and status of each.";

// "15s", "500ms", "1m30s", "1h", or a number of seconds; false otherwise, and beyond a year.
bool ParseDuration(const std::string& text, Duration& out) {
  constexpr Duration kLongest = std::chrono::hours(365 * 24);
  static const std::map<std::string, Duration> kUnits = {
      {"ms", milliseconds(1)}, {"s", seconds(1)}, {"m", seconds(60)}, {"h", seconds(3600)}};
  constexpr char kDigits[] = "0123456789";
  Duration sum{};
  for (size_t at = 0; at < text.size() || at == 0;) {
    const size_t unit_at = std::min(text.find_first_not_of(kDigits, at), text.size());
    if (unit_at == at || unit_at - at > 9) return false;
    const int64_t number = std::stoll(text.substr(at, unit_at - at));
    const size_t end = std::min(text.find_first_of(kDigits, unit_at), text.size());
    const bool bare = at == 0 && unit_at == text.size();
    const auto unit = kUnits.find(bare ? "s" : text.substr(unit_at, end - unit_at));
    if (unit == kUnits.end() || number > (kLongest - sum) / unit->second) return false;
    sum += number * unit->second;
    at = end;
  }
  out = sum;
  return true;
}

void AddDuration(CLI::App& app, const std::string& name, Duration& out, const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [&out, name](const std::string& text) {
           if (!ParseDuration(text, out)) {
             throw CLI::ValidationError(name, "\"" + text + "\" is not a duration: write 15s");
           }
         },
         fmt::format("{} (default {})", help, HumanDuration(out)))
      ->type_name("DURATION");
}

// Says what is wrong with NAME=VALUE texts, or "".
std::string ReadLabels(const std::vector<std::string>& texts,
                       std::map<std::string, std::string>& out) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      return "--job-labels: \"" + text + "\" is not NAME=VALUE";
    }
    out[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return "";
}

// What no single flag can tell.
std::string Mistake(const ProcessOptions& options) {
  if (options.planning.runtime_image.empty()) {
    return "--runtime-image is needed: the image with the coordinator and the agent, best with its "
           "digest (NAME@sha256:...)";
  }
  if (options.planning.operator_namespace.empty()) {
    return "--namespace is needed: the operator's own namespace, where its key and its lease live; "
           "in a pod, set POD_NAMESPACE from metadata.namespace";
  }
  for (const auto& [flag, address] : {std::pair{"--metrics-address", options.metrics_address},
                                      std::pair{"--health-address", options.health_address}}) {
    if (address == "0") continue;
    if (const auto parsed = ParseHostPort(address); !parsed.ok()) {
      return fmt::format("{}: {}", flag, parsed.error().message);
    }
  }
  const LeaderOptions& leader = options.leader;
  if (leader.lease_duration <= leader.renew_deadline ||
      ToSeconds(leader.renew_deadline) <= 1.2 * ToSeconds(leader.retry_period) ||
      leader.retry_period <= Duration::zero()) {
    return "the lease's duration must be above the renew deadline, and that above 1.2 times the "
           "retry period: for example 15s, 10s and 2s";
  }
  return "";
}

}  // namespace

Result<HostPort> ParseHostPort(const std::string& text) {
  const Error wrong{Code::kInvalid, "\"" + text + "\" is not HOST:PORT, as in :8080"};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong;
  const std::string port = text.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos) {
    return wrong;
  }
  const int64_t number = std::stoll(port);
  if (number > 65535) return wrong;
  HostPort out{text.substr(0, colon), static_cast<uint16_t>(number)};
  if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  } else if (out.host.find(':') != std::string::npos) {
    return wrong;
  }
  return out;
}

ParsedOptions ParseOptions(const std::vector<std::string>& arguments, const OwnPod& pod) {
  ParsedOptions parsed;
  ProcessOptions& options = parsed.options;
  options.planning.operator_namespace = pod.name_space;
  options.leader.pod_uid = pod.uid;

  CLI::App app(kAbout, "parallelrun-operator");
  app.set_version_flag("-V,--version", VersionText("parallelrun-operator"));
  app.add_option("--kubeconfig", options.kubeconfig,
                 "Cluster to work on (default: the pod's own, or KUBECONFIG)");
  app.add_option("--namespace", options.planning.operator_namespace,
                 "Where the operator's key and lease live (default: POD_NAMESPACE)");
  app.add_option("--watch-namespaces", options.watch_namespaces,
                 "Namespaces whose jobs to run, separated by commas (default: all)")
      ->delimiter(',');
  app.add_option("--runtime-image", options.planning.runtime_image,
                 "Image with the coordinator and the agent");
  app.add_option("--runtime-image-pull-policy", options.planning.runtime_image_pull_policy,
                 "Always, IfNotPresent (default) or Never")
      ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}));
  app.add_option("--image-pull-secrets", options.planning.image_pull_secrets,
                 "Secrets of the job's namespace, separated by commas, for pulling images")
      ->delimiter(',');
  std::vector<std::string> labels;
  app.add_option("--job-labels", labels, "NAME=VALUE,...: put on every object of every job")
      ->delimiter(',');
  app.add_option("--metrics-address", options.metrics_address,
                 "HOST:PORT of /metrics; 0 for none (default :8080, on every address)");
  app.add_option("--health-address", options.health_address,
                 "HOST:PORT of /healthz and /readyz; 0 for none (default :8081, on every address)");
  app.add_flag("--leader-elect", options.leader.elect,
               "Work only while holding the lease parallelrun-operator");
  AddDuration(app, "--leader-lease-duration", options.leader.lease_duration,
              "After which others may take the lease");
  AddDuration(app, "--leader-renew-deadline", options.leader.renew_deadline,
              "After which the leader gives up");
  AddDuration(app, "--leader-retry-period", options.leader.retry_period,
              "Between two tries for the lease");
  app.add_option("--coordinator-port", options.planning.coordinator_port,
                 "Port of the coordinators of new jobs (default 8443)")
      ->check(CLI::Range(1, 65535));
  app.add_flag("--network-policies,!--no-network-policies", options.planning.network_policies,
               "Make a NetworkPolicy for each job's coordinator");
  app.add_option("--metrics-namespaces", options.planning.metrics_namespaces,
                 "Namespaces, separated by commas, whose pods the NetworkPolicies let read the "
                 "coordinators' metrics (default: none)")
      ->delimiter(',');
  app.add_flag("--pod-security-defaults,!--no-pod-security-defaults",
               options.planning.pod_security_defaults,
               "Give pods uid 65532 and Pod Security \"restricted\" (default true; false on "
               "OpenShift)");
  app.add_option("--workers", options.workers, "Jobs handled at the same time (default 24)")
      ->check(CLI::Range(1, 64));
  app.add_flag("--per-job-metrics", options.per_job_metrics,
               "Gauges for each job, with its name as a label");
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warn", LogLevel::kWarning},
                                                  {"warning", LogLevel::kWarning},
                                                  {"error", LogLevel::kError}};
  app.add_option("--log-level", options.log_level, "debug, info, warn or error (default info)")
      ->transform(CLI::CheckedTransformer(levels, CLI::ignore_case));
  const std::map<std::string, LogFormat> formats = {{"json", LogFormat::kJson},
                                                    {"text", LogFormat::kTerminal}};
  app.add_option("--log-format", options.log_format, "json or text (default json)")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case));

  app.add_option("--check", parsed.check_url,
                 "Only ask this http URL: exit code 0 if it answers 200, else 1");

  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& stop) {  // --help, --version
    parsed.exit = true;
    parsed.text = dynamic_cast<const CLI::CallForVersion*>(&stop) != nullptr
                      ? std::string(stop.what()) + "\n"
                      : app.help();
    return parsed;
  } catch (const CLI::Error& error) {
    parsed.exit = true;
    parsed.exit_code = 2;
    parsed.text = fmt::format("parallelrun-operator: {}; see --help\n", error.what());
    return parsed;
  }
  if (!parsed.check_url.empty()) return parsed;
  std::string mistake = ReadLabels(labels, options.planning.job_labels);
  if (mistake.empty()) mistake = Mistake(options);
  if (!mistake.empty()) {
    parsed.exit = true;
    parsed.exit_code = 2;
    parsed.text = "parallelrun-operator: " + mistake + "\n";
  }
  return parsed;
}

}  // namespace parallelrun::operators
