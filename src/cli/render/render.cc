#include "cli/render/render.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "api/block_yaml.h"
#include "api/document.h"
#include "api/override.h"
#include "api/text.h"
#include "azure/convert/convert.h"
#include "azure/fill_in.h"
#include "azure/read_job.h"
#include "base/json.h"
#include "base/small_file.h"
#include "cli/render/code.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kStandardInput[] = "-";

api::Node* Find(api::Node& map, const std::string& key) {
  for (api::Node::Field& field : map.fields) {
    if (field.key == key) return &field.value;
  }
  return nullptr;
}

bool Has(const api::Node& map, const std::string& key) {
  const api::Node* const found = map.Find(key);
  return found != nullptr && found->kind != api::Node::Kind::kNull;
}

void Set(api::Node& map, const std::string& key, api::Node value) {
  if (api::Node* const found = Find(map, key)) {
    *found = std::move(value);
  } else {
    map.fields.push_back({key, {}, std::move(value)});
  }
}

api::Node ConfigMapCode(const std::string& name) {
  return api::MapNode({{"configMap", {}, api::MapNode({{"name", {}, api::TextNode(name)}})}});
}

std::string Base64(const std::string& bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL's bytes are unsigned
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                  reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  out.pop_back();
  return out;
}

// Of everything that the ConfigMap holds.
std::string HashOf(const std::map<std::string, std::string>& data) {
  constexpr size_t kDigits = 10;
  std::string all;
  for (const auto& [key, bytes] : data) {
    all += fmt::format("{} {} {}\n", key, bytes.size(), XXH3_64bits(bytes.data(), bytes.size()));
  }
  return fmt::format("{:016x}", XXH3_64bits(all.data(), all.size())).substr(0, kDigits);
}

api::Node ConfigMap(const std::string& name, const api::Job& job,
                    const std::map<std::string, std::string>& data) {
  api::Node texts = api::MapNode({});
  api::Node binary = api::MapNode({});
  for (const auto& [key, bytes] : data) {
    const bool text = api::IsUtf8(bytes) && bytes.find('\0') == std::string::npos;
    (text ? texts : binary)
        .fields.push_back({key, {}, api::TextNode(text ? bytes : Base64(bytes))});
  }
  api::Node immutable;
  immutable.kind = api::Node::Kind::kBool;
  immutable.boolean = true;
  api::Node metadata = api::MapNode({{"name", {}, api::TextNode(name)}});
  if (!job.metadata.name_space.empty()) {
    Set(metadata, "namespace", api::TextNode(job.metadata.name_space));
  }
  Set(metadata, "labels",
      api::MapNode({{"app.kubernetes.io/instance", {}, api::TextNode(job.metadata.name)},
                    {"app.kubernetes.io/component", {}, api::TextNode("code")}}));
  api::Node map = api::MapNode({{"apiVersion", {}, api::TextNode("v1")},
                                {"kind", {}, api::TextNode("ConfigMap")},
                                {"metadata", {}, std::move(metadata)},
                                {"immutable", {}, std::move(immutable)}});
  if (!texts.fields.empty()) Set(map, "data", std::move(texts));
  if (!binary.fields.empty()) Set(map, "binaryData", std::move(binary));
  return map;
}

// Folders that only mean something on this machine.
Status CheckVolumes(const api::Job& job, const std::string& label,
                    std::vector<std::string>& notes) {
  for (size_t i = 0; i < job.spec.volumes.size(); ++i) {
    const api::Volume& volume = job.spec.volumes[i];
    if (volume.kind != "hostPath") continue;
    const std::string path = lenient::Text(volume.source, "path");
    const std::string field = fmt::format("{}: spec.volumes[{}].hostPath.path", label, i);
    if (!path.starts_with('/')) {
      return Error{Code::kInvalid,
                   fmt::format("{}: {} is relative to the job file, which only a local run can "
                               "follow: write persistentVolumeClaim: {{claimName: CLAIM}} in its "
                               "place, or the absolute path of a folder that every machine of the "
                               "cluster has",
                               field, api::Quoted(path))};
    }
    notes.push_back(
        fmt::format("{}: {} must be there on every machine of the cluster, with the "
                    "same content; a persistentVolumeClaim is what a cluster shares",
                    field, api::Quoted(path)));
  }
  return {};
}

// The file's code is replaced where it is a folder of this machine: in `folder`, relative to the
// job file or as the command line says; empty when the cluster has the code already.
std::string LocalCode(const api::Node& spec, const RenderRequest& request,
                      const fs::path& job_folder) {
  if (!request.code.empty()) return Absolute(fs::current_path(), request.code);
  const api::Node* const code = spec.Find("code");
  if (code == nullptr || code->kind == api::Node::Kind::kNull) return Absolute(job_folder, ".");
  if (code->kind != api::Node::Kind::kMap || Has(*code, "configMap") || Has(*code, "volume") ||
      Has(*code, "image") || !Has(*code, "path")) {
    return "";
  }
  const api::Node* const path = code->Find("path");
  return path->kind == api::Node::Kind::kString ? Absolute(job_folder, path->text) : "";
}

Result<std::map<std::string, std::string>> Pack(const api::Job& job, const std::string& folder,
                                                const RenderRequest& request,
                                                std::vector<std::string>& notes) {
  const Result<std::string> code = CheckCode(folder, job.spec.entry_script);
  if (!code.ok()) return code.error();
  std::vector<std::string> leave_out = {Absolute(fs::current_path(), request.job_file)};
  for (const api::Volume& volume : job.spec.volumes) {
    if (volume.kind == "hostPath") leave_out.push_back(lenient::Text(volume.source, "path"));
  }
  const Result<std::vector<CodeFile>> files = CollectCode({folder, *code, leave_out}, notes);
  if (!files.ok()) return files.error();
  return PackCode(*files);
}

void Erase(api::Node& map, std::initializer_list<std::string_view> keys) {
  std::erase_if(map.fields, [keys](const api::Node::Field& field) {
    return std::find(keys.begin(), keys.end(), field.key) != keys.end();
  });
}

// What the API server and kubectl write into an object, which is there when the file came from
// `kubectl get`: a new object is refused with it, or takes it for its own history.
void EraseServersOwn(api::Node& metadata) {
  Erase(metadata, {"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
                   "deletionGracePeriodSeconds", "managedFields", "selfLink"});
  api::Node* const annotations = Find(metadata, "annotations");
  if (annotations == nullptr) return;
  Erase(*annotations, {"kubectl.kubernetes.io/last-applied-configuration"});
  if (annotations->fields.empty()) Erase(metadata, {"annotations"});
}

// For messages.
std::string LabelOf(const RenderRequest& request) {
  return request.job_file == kStandardInput ? "the job" : request.job_file;
}

Result<RenderedJob> Render(api::Node root, const RenderRequest& request, RenderedJob rendered) {
  const std::string label = LabelOf(request);
  const fs::path job_folder = fs::absolute(request.job_file).parent_path();
  api::Node* const spec = Find(root, "spec");
  const bool readable = spec != nullptr && spec->kind == api::Node::Kind::kMap;
  const std::string folder = readable ? LocalCode(*spec, request, job_folder) : "";
  if (!folder.empty()) Set(*spec, "code", ConfigMapCode("packed"));

  api::ParsedJob parsed = azure::ParseJob(root, api::Target::kCluster);
  for (api::Problem& open : azure::FindFillIns(root)) parsed.problems.push_back(std::move(open));
  std::string problems;
  for (const api::Problem& problem : parsed.problems) {
    const std::string line = api::FormatProblem(problem, label);
    problems += (problems.empty() ? "" : "\n") + line;
    rendered.notes.push_back(line);
  }
  if (!parsed.ok()) return Error{Code::kInvalid, problems};
  const api::Job& job = parsed.job;
  if (Status s = CheckVolumes(job, label, rendered.notes); !s.ok()) return s.error();
  rendered.name = job.metadata.name;
  rendered.name_space = job.metadata.name_space;
  rendered.losses_allowed =
      job.spec.error_threshold || job.spec.allowed_failed_count || job.spec.allowed_failed_percent;
  if (!folder.empty()) {
    const auto data = Pack(job, folder, request, rendered.notes);
    if (!data.ok()) return data.error();
    const std::string name = job.metadata.name + "-code-" + HashOf(*data);
    Set(*spec, "code", ConfigMapCode(name));
    rendered.text = api::BlockYaml(ConfigMap(name, job, *data)) + "---\n";
  }
  Erase(root, {"status"});
  api::Node& metadata = *Find(root, "metadata");  // or ParseJob had complained
  EraseServersOwn(metadata);
  if (Has(metadata, "ownerReferences")) {
    rendered.notes.push_back(label +
                             ": metadata.ownerReferences: the cluster deletes the job when its "
                             "owners are gone; remove the field from a copy that is to stay");
  }
  rendered.text += api::BlockYaml(root);
  return rendered;
}

}  // namespace

Result<RenderedJob> RenderJob(const RenderRequest& request) {
  const Result<std::string> text = request.job_file == "-"
                                       ? ReadSmallFile("/dev/stdin", api::kMaxDocumentBytes)
                                       : ReadJobFile(request.job_file);
  if (!text.ok()) return text.error();
  if (std::string mend = azure::SayConvert(*text, LabelOf(request)); !mend.empty()) {
    return Error{Code::kInvalid, std::move(mend)};
  }
  api::Document document = api::ReadDocument(*text);
  api::Problems problems = std::move(document.problems);
  if (!api::HasErrors(problems)) api::ApplyOverrides(request.overrides, document.job, problems);
  if (api::HasErrors(problems)) {
    std::string lines;
    for (const api::Problem& problem : problems) {
      lines += (lines.empty() ? "" : "\n") + api::FormatProblem(problem, LabelOf(request));
    }
    return Error{Code::kInvalid, lines};
  }
  RenderedJob rendered;
  for (const std::string& note : document.notes) {
    rendered.notes.push_back(LabelOf(request) + ": " + note);
  }
  return Render(std::move(document.job), request, std::move(rendered));
}

int PrintRendered(const RenderRequest& request) {
  const Result<RenderedJob> rendered = RenderJob(request);
  if (!rendered.ok()) {
    std::fprintf(stderr, "%s\n", rendered.error().message.c_str());
    return kExitUsage;
  }
  // kubectl apply keeps what it sent in an annotation of at most 256 KiB.
  constexpr size_t kMaxClientSide = 200 << 10;
  for (const std::string& note : rendered->notes) std::fprintf(stderr, "%s\n", note.c_str());
  if (rendered->text.size() > kMaxClientSide) {
    std::fprintf(stderr, "large: apply it with kubectl apply --server-side -f -\n");
  }
  const std::string& text = rendered->text;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    std::fprintf(stderr, "cannot write to standard output\n");
    return kExitUsage;
  }
  return kExitOk;
}

}  // namespace parallelrun::cli
