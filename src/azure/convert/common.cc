// What the kinds of Azure ML files say in the same way.
#include "azure/convert/common.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

#include "api/job_name.h"
#include "api/text.h"
#include "base/json.h"

namespace parallelrun::azure {

std::string JobNameFrom(const std::string& text) {
  // The stem of a file's name is taken; a name with dots is no file's name.
  std::string name = text;
  std::replace(name.begin(), name.end(), '.', '-');
  std::replace(name.begin(), name.end(), '/', '-');
  return api::JobNameOf(name);
}

bool IsElsewhere(const std::string& address) {
  return address.find("://") != std::string::npos || address.starts_with("azureml:") ||
         address.starts_with("git+") || address.find("${{") != std::string::npos;
}

std::string PathInStorage(const std::string& address) {
  std::string path;
  const size_t paths = address.find("/paths/");
  const size_t scheme = address.find("://");
  if (address.starts_with("azureml:") && paths != std::string::npos) {
    path = address.substr(paths + 7);
  } else if (scheme != std::string::npos && !address.starts_with("azureml:")) {
    const size_t slash = address.find('/', scheme + 3);
    if (slash != std::string::npos) path = address.substr(slash + 1);
    // The first folder of an https address of a blob is its container, which the volume shows.
    if (address.starts_with("http"))
      path = path.substr(std::min(path.find('/'), path.size() - 1) + 1);
  }
  path = std::filesystem::path(path).lexically_normal().string();
  while (path.ends_with('/')) path.pop_back();
  const bool bad =
      path.starts_with("..") || path.starts_with('/') || path.find("${{") != std::string::npos;
  return path.empty() || bad ? "." : path;
}

void CheckAzureData(const std::string& address, const std::string& field, Draft& draft) {
  std::string lower = address;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower.find("sql") != std::string::npos) {
    draft.Lose(field, api::Quoted(address) + " looks like SQL data, which has no counterpart",
               "export it to parquet files first");
  }
}

void ReadAzureEnvironment(const api::Node* node, const std::string& field, Draft& draft) {
  const std::string mend =
      "build an image with python3 and the packages, and fill in "
      "spec.environment.image";
  if (node == nullptr) return draft.Lose(field, "no environment is named", mend);
  if (node->kind != api::Node::Kind::kMap) {
    return draft.Lose(field, api::Quoted(node->text) + " is registered in a workspace", mend);
  }
  Section section(node, field, draft);
  draft.image = section.Text("image");
  // Version 1 has it below docker, in either spelling.
  if (const api::Node* const docker = section.Take("docker"); docker != nullptr) {
    Section v1(docker, section.PathOf("docker"), draft);
    for (const char* key : {"base_image", "baseImage", "image"}) {
      const std::string image = v1.Text(key);
      if (draft.image.empty()) draft.image = image;
    }
    v1.Pass({"enabled"});
    v1.Finish();
  }
  for (const char* key : {"conda_file", "python", "conda"}) {
    section.Lose(key, "packages are not installed when a job starts", mend);
  }
  section.Lose("build", "images are not built by a job", mend);
  ReadVariables(section.Take("environment_variables"), section.PathOf("environment_variables"),
                draft);
  section.Pass({"$schema", "name", "version", "description", "tags"});
  section.Finish();
  if (draft.image.empty()) draft.Lose(field, "names no image", mend);
}

void ReadVariables(const api::Node* node, const std::string& field, Draft& draft) {
  if (node == nullptr) return;
  Section section(node, field, draft);
  if (!section.there()) return;
  for (const api::Node::Field& variable : node->fields) {
    draft.environment.emplace_back(variable.key, section.Text(variable.key));
  }
}

void ReadCode(const std::string& code, const std::string& script, const std::string& field,
              Draft& draft) {
  if (IsElsewhere(code)) {
    draft.Lose(field, api::Quoted(code) + " is not a folder on this machine",
               "fetch it, and write the folder in spec.code.path");
  } else if (!code.empty()) {
    draft.code = code;
  }
  const std::filesystem::path path = std::filesystem::path(script).lexically_normal();
  draft.entry_script = path.string();
  if (script.empty()) {
    draft.Lose(field, "there is no entry script", "fill in spec.entryScript");
  }
  // Without a code folder the script may lie anywhere; ours is always inside the code.
  if (path.is_absolute() || draft.entry_script.starts_with("..")) {
    const std::filesystem::path folder = path.parent_path();
    draft.code = (path.is_absolute() ? folder : std::filesystem::path(draft.code) / folder)
                     .lexically_normal()
                     .string();
    draft.entry_script = path.filename().string();
  }
}

void ReadAzureKeys(const api::Node* node, const std::string& field, const std::string& format,
                   Draft& draft) {
  if (node == nullptr) return;
  nlohmann::json keys = node->ToJson();
  // A parameter of a pipeline holds the list as text.
  if (keys.is_string()) keys = ParseJson(keys.get<std::string>()).value_or(nullptr);
  if (!keys.is_array())
    return draft.Lose(field, "is not a list of keys", "write spec.partitionKeys");
  bool all = true;
  for (const nlohmann::json& key : keys) {
    if (!key.is_string()) continue;
    const auto text = key.get<std::string>();
    draft.partition_keys.push_back(text);
    all = all && (format.find("{" + text + "}") != std::string::npos ||
                  format.find("{" + text + ":") != std::string::npos);
  }
  if (format.empty()) {
    draft.Lose(
        field, "where the keys stand in the paths is not said in this file",
        "check partitionFormat of spec.inputs[0]: write the partition_format of the dataset or "
        "MLTable");
  } else if (!all) {
    draft.Lose(field,
               "the MLTable's partition format has not all of the keys: " + api::Quoted(format),
               "write one that has them in partitionFormat of spec.inputs[0]");
  }
}

void SetInteger(const std::string& text, const std::string& field, const std::string& name,
                int64_t least, int64_t add, Draft& draft) {
  if (text.empty()) return;
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < least || number >= INT32_MAX) {
    return draft.Lose(field, api::Quoted(text) + " is not carried over", "write spec." + name);
  }
  draft.Set(name, std::to_string(number + add), field + (add == 0 ? "" : ", with the first try"));
}

void SetPercent(const std::string& text, const std::string& field, const std::string& name,
                Draft& draft) {
  if (text.empty()) return;
  double number = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || !(number >= 0 && number <= 100)) {
    return draft.Lose(field, api::Quoted(text) + " is not carried over", "write spec." + name);
  }
  draft.Set(name, text, field);
}

void SetLevel(const std::string& text, const std::string& field, Draft& draft) {
  if (text.empty()) return;
  std::string level = text;
  std::transform(level.begin(), level.end(), level.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (level != "INFO" && level != "WARNING" && level != "DEBUG") {
    return draft.Lose(field, api::Quoted(text) + " is not a logging level",
                      "write spec.loggingLevel");
  }
  draft.Set("loggingLevel", level, field);
}

void LoseCloud(Section& section) {
  for (const char* key : {"compute", "compute_target", "compute_target_name"}) {
    section.Lose(key, "compute targets have no counterpart",
                 "say in spec.podTemplate.spec.nodeSelector which nodes of the cluster, and in "
                 "spec.resources what a pod needs");
  }
  section.Lose("identity", "identities of the cloud are not carried over",
               "name a service account in spec.podTemplate.spec.serviceAccountName");
  for (const char* key : {"allow_reuse", "is_deterministic"}) {
    if (!section.True(key)) continue;
    section.Lose(key, "results of an earlier job are not reused", "run the job when it is needed");
  }
  section.Lose("tags", "tags are not carried over", "write metadata.labels");
  section.Pass({"$schema", "type", "version", "display_name", "experiment_name"});
}

}  // namespace parallelrun::azure
