#include "kube/config.h"

#include <spdlog/fmt/fmt.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/escape.h"
#include "kube/text_file.h"

namespace parallelrun::kube {
namespace {

// Known from the field's place: "kubeconfig /x: users[y].user.tokenFile".
Error Wrong(const std::string& place, const std::string& what) {
  return {Code::kInvalid, place + ": " + what};
}

// A map of a kubeconfig, and where it stands.
struct Fields {
  YAML::Node node;
  std::string place;
  std::string folder;  // that relative paths start from

  bool Has(const char* name) const { return node.IsMap() && node[name] && !node[name].IsNull(); }
  std::string Place(const char* name) const { return place + "." + name; }

  // "" when it is missing.
  Result<std::string> Text(const char* name) const {
    if (!Has(name)) return std::string();
    if (!node[name].IsScalar()) return Wrong(Place(name), "must be a text");
    return node[name].Scalar();
  }

  Result<std::string> Path(const char* name) const {
    Result<std::string> path = Text(name);
    if (path.ok() && !path->empty()) *path = (std::filesystem::path(folder) / *path).string();
    return path;
  }

  // What `<name>-data` holds in base64; "" when it is missing.
  Result<std::string> Data(const std::string& name) const {
    const Result<std::string> text = Text(name.c_str());
    if (!text.ok() || text->empty()) return text;
    std::optional<std::string> data = DecodeBase64(*text);
    if (!data) return Wrong(Place(name.c_str()), "is not base64");
    return std::move(*data);
  }

  Status Refuse(std::initializer_list<std::pair<const char*, const char*>> fields) const {
    for (const auto& [name, why] : fields) {
      const bool off = Has(name) && node[name].IsScalar() && node[name].Scalar() == "false";
      if (Has(name) && !off) return Wrong(Place(name), std::string("is not supported: ") + why);
    }
    return {};
  }
};

// The entry of `list` ("clusters") called `name`, its part `inner` ("cluster").
Result<Fields> Find(const Fields& file, const char* list, const std::string& name,
                    const char* inner) {
  const YAML::Node entries = file.node[list];
  if (entries.IsDefined() && entries.IsSequence()) {
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || !entry["name"].IsDefined() || !entry["name"].IsScalar()) continue;
      if (entry["name"].Scalar() != name) continue;
      Fields found{
          entry[inner].IsDefined() ? entry[inner] : YAML::Node(),
          fmt::format("{}: {}[{}].{}", file.place, list, Printable(name, kShownShort), inner),
          file.folder};
      if (!found.node.IsMap() && !found.node.IsNull()) return Wrong(found.place, "must be a map");
      return found;
    }
  }
  return Error{Code::kNotFound,
               fmt::format("{}: {} has no \"{}\"", file.place, list, Printable(name, kShownShort))};
}

Status ReadCluster(const Fields& cluster, ClientConfig& config) {
  if (Status refused = cluster.Refuse(
          {{"insecure-skip-tls-verify",
            "name the cluster's CA (certificate-authority, or tls-server-name) instead"},
           {"proxy-url", "reach the API server without a proxy"}});
      !refused.ok()) {
    return refused;
  }
  const Result<std::string> server = cluster.Text("server");
  if (!server.ok()) return server.error();
  if (server->empty()) return Wrong(cluster.Place("server"), "is missing: https://host:port");
  config.server = *server;
  const Result<std::string> name = cluster.Text("tls-server-name");
  if (!name.ok()) return name.error();
  config.verify_host = *name;
  const Result<std::string> data = cluster.Data("certificate-authority-data");
  if (!data.ok()) return data.error();
  const Result<std::string> path = cluster.Path("certificate-authority");
  if (!path.ok()) return path.error();
  if (!data->empty()) {
    config.ca_pem = [pem = *data] { return pem; };
  } else if (!path->empty()) {
    Result<std::string> first = ReadTextFile(*path);
    if (!first.ok()) return first.error().With(cluster.Place("certificate-authority"));
    auto file = std::make_shared<ChangingFile>(*path, std::move(*first));
    config.ca_pem = [file] { return file->Read(); };
  }
  return {};
}

// What a plugin is told about the cluster when it asks for that.
Result<std::string> ClusterJson(const Fields& cluster) {
  nlohmann::json json;
  for (const char* name : {"server", "tls-server-name", "certificate-authority-data"}) {
    const Result<std::string> text = cluster.Text(name);
    if (!text.ok()) return text.error();
    if (!text->empty()) json[name] = *text;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::shared_ptr<CredentialSource>> ReadExec(const Fields& exec, const Fields& cluster,
                                                   const std::shared_ptr<const Clock>& clock) {
  ExecPlugin plugin;
  plugin.place = exec.place;
  for (const auto& [name, text] :
       {std::pair{"command", &plugin.command}, std::pair{"apiVersion", &plugin.api_version},
        std::pair{"installHint", &plugin.install_hint}}) {
    Result<std::string> value = exec.Text(name);
    if (!value.ok()) return value.error();
    *text = std::move(*value);
  }
  if (plugin.command.empty()) return Wrong(exec.Place("command"), "is missing");
  if (plugin.command.find('/') != std::string::npos) plugin.command = *exec.Path("command");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return Wrong(exec.Place("apiVersion"), "must be client.authentication.k8s.io/v1 (or v1beta1)");
  }
  const Result<std::string> mode = exec.Text("interactiveMode");
  if (!mode.ok()) return mode.error();
  if (*mode == "Always") {
    return Wrong(exec.Place("interactiveMode"), "Always is not supported: nobody can answer here");
  }
  if (exec.Has("args")) {
    for (const YAML::Node& argument : exec.node["args"]) {
      if (!argument.IsScalar()) return Wrong(exec.Place("args"), "must be texts");
      plugin.arguments.push_back(argument.Scalar());
    }
  }
  if (exec.Has("env")) {
    for (const YAML::Node& entry : exec.node["env"]) {
      const Fields fields{entry, exec.Place("env"), ""};
      const Result<std::string> name = fields.Text("name");
      const Result<std::string> value = fields.Text("value");
      if (!name.ok() || !value.ok() || name->empty()) {
        return Wrong(fields.place, "each entry needs name and value");
      }
      plugin.env[*name] = *value;
    }
  }
  const Result<std::string> provide = exec.Text("provideClusterInfo");
  if (provide.ok() && *provide == "true") {
    Result<std::string> json = ClusterJson(cluster);
    if (!json.ok()) return json.error();
    plugin.cluster_json = std::move(*json);
  }
  return ExecCredential(std::move(plugin), clock);
}

Result<std::shared_ptr<CredentialSource>> ReadUser(const Fields& user, const Fields& cluster,
                                                   const std::shared_ptr<const Clock>& clock) {
  if (Status refused = user.Refuse({{"auth-provider", "use an exec plugin"},
                                    {"username", "use a token or a client certificate"},
                                    {"password", "use a token or a client certificate"},
                                    {"as", "use that account's own credentials"}});
      !refused.ok()) {
    return refused.error();
  }
  if (user.Has("exec")) {
    const Fields exec{user.node["exec"], user.Place("exec"), user.folder};
    if (!exec.node.IsMap()) return Wrong(exec.place, "must be a map");
    return ReadExec(exec, cluster, clock);
  }
  Credential fixed;
  CredentialFiles files;
  const auto take = [](Result<std::string> from, std::string& to) -> Status {
    if (!from.ok()) return from.error();
    to = std::move(*from);
    return {};
  };
  for (const Status& status :
       {take(user.Text("token"), fixed.token), take(user.Path("tokenFile"), files.token),
        take(user.Data("client-certificate-data"), fixed.certificate_pem),
        take(user.Path("client-certificate"), files.certificate),
        take(user.Data("client-key-data"), fixed.key_pem),
        take(user.Path("client-key"), files.key)}) {
    if (!status.ok()) return status.error();
  }
  // Data win over files, as in kubectl; but a token's file over the token.
  if (!fixed.certificate_pem.empty()) files.certificate.clear();
  if (!fixed.key_pem.empty()) files.key.clear();
  const bool certificate = !fixed.certificate_pem.empty() || !files.certificate.empty();
  const bool key = !fixed.key_pem.empty() || !files.key.empty();
  if (certificate != key) {
    return Wrong(user.place, "client-certificate and client-key must stand together");
  }
  auto credentials = FileCredential(std::move(fixed), std::move(files), clock);
  if (const Result<Credential> first = credentials->Get(); !first.ok()) {
    return first.error().With(user.place);
  }
  return credentials;
}

}  // namespace

Environment SystemEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Result<ClientConfig> InClusterConfig(const Environment& environment,
                                     const std::shared_ptr<const Clock>& clock,
                                     const std::string& folder) {
  const std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return Error{Code::kNotFound,
                 "in-cluster configuration: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT "
                 "are not set: this is no pod; name a kubeconfig (--kubeconfig or KUBECONFIG)"};
  }
  ClientConfig config;
  config.source = "in-cluster";
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server = "https://" + (ipv6 ? "[" + host + "]" : host) + ":" + port;
  // The HTTP client has no proper Host header for an IPv6 address over TLS, but for a name.
  if (ipv6) config.verify_host = "kubernetes.default.svc";
  config.credentials = FileCredential({}, {folder + "/token", "", ""}, clock);
  if (const Result<Credential> first = config.credentials->Get(); !first.ok()) {
    return first.error().With(
        "in-cluster configuration (does the pod's automountServiceAccountToken say false?)");
  }
  Result<std::string> ca = ReadTextFile(folder + "/ca.crt");
  if (!ca.ok()) return ca.error().With("in-cluster configuration");
  auto file = std::make_shared<ChangingFile>(folder + "/ca.crt", std::move(*ca));
  config.ca_pem = [file] { return file->Read(); };
  const Result<std::string> name_space = ReadTextFile(folder + "/namespace");
  config.name_space = name_space.ok() ? Trimmed(*name_space) : "default";
  return config;
}

Result<ClientConfig> KubeconfigConfig(const std::string& path, const std::string& context_name,
                                      const std::shared_ptr<const Clock>& clock) {
  const std::string place = "kubeconfig " + path;
  const Result<std::string> text = ReadTextFile(path);
  if (!text.ok()) return text.error().With("kubeconfig");
  try {
    const Fields file{YAML::Load(*text), place,
                      std::filesystem::absolute(path).parent_path().string()};
    if (!file.node.IsMap()) return Wrong(place, "must be a map with clusters, users, contexts");
    Result<std::string> name = file.Text("current-context");
    if (!name.ok()) return name.error();
    if (!context_name.empty()) *name = context_name;
    if (name->empty()) return Wrong(place, "has no current-context; set one, or name a context");
    const Result<Fields> context = Find(file, "contexts", *name, "context");
    if (!context.ok()) return context.error();
    const Result<std::string> cluster_name = context->Text("cluster");
    const Result<std::string> user_name = context->Text("user");
    const Result<std::string> name_space = context->Text("namespace");
    for (const auto* field : {&cluster_name, &user_name, &name_space}) {
      if (!field->ok()) return field->error();
    }
    const Result<Fields> cluster = Find(file, "clusters", *cluster_name, "cluster");
    if (!cluster.ok()) return cluster.error().With(context->Place("cluster"));
    ClientConfig config;
    config.source = place + ", context " + Printable(*name, kShownShort);
    config.name_space = name_space->empty() ? "default" : *name_space;
    if (Status read = ReadCluster(*cluster, config); !read.ok()) return read.error();
    if (user_name->empty()) {
      config.credentials = FixedCredential({});
      return config;
    }
    const Result<Fields> user = Find(file, "users", *user_name, "user");
    if (!user.ok()) return user.error().With(context->Place("user"));
    Result<std::shared_ptr<CredentialSource>> credentials = ReadUser(*user, *cluster, clock);
    if (!credentials.ok()) return credentials.error();
    config.credentials = std::move(*credentials);
    return config;
  } catch (const YAML::Exception& e) {
    return Wrong(place, fmt::format("line {}: {}", e.mark.line + 1, Printable(e.msg, kShownShort)));
  } catch (const std::exception& e) {
    return Wrong(place, Printable(e.what(), kShownShort));
  }
}

Result<ClientConfig> LoadConfig(const ConfigOptions& options, const Environment& environment,
                                const std::shared_ptr<const Clock>& clock) {
  if (!options.kubeconfig.empty()) {
    return KubeconfigConfig(options.kubeconfig, options.context, clock);
  }
  if (const auto path = environment("KUBECONFIG"); path && !path->empty()) {
    if (path->find(':') != std::string::npos) {
      return Error{Code::kInvalid,
                   "KUBECONFIG names several files, which are not merged here: name one, or write "
                   "the merged one with \"kubectl config view --flatten\""};
    }
    return KubeconfigConfig(*path, options.context, clock);
  }
  Result<ClientConfig> in_cluster = InClusterConfig(environment, clock);
  if (in_cluster.ok() || in_cluster.error().code != Code::kNotFound ||
      environment("KUBERNETES_SERVICE_HOST")) {
    return in_cluster;
  }
  const std::string home = environment("HOME").value_or("") + "/.kube/config";
  std::error_code error;
  if (std::filesystem::exists(home, error)) return KubeconfigConfig(home, options.context, clock);
  return Error{Code::kNotFound,
               "no cluster: neither --kubeconfig nor KUBECONFIG is given, this is no pod, and " +
                   home + " is not there"};
}

}  // namespace parallelrun::kube
