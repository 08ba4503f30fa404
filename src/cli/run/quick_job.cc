#include "cli/run/quick_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "api/block_yaml.h"
#include "api/enums.h"
#include "api/job_name.h"
#include "cli/run/local_job.h"

namespace parallelrun::cli {
namespace {

std::string InputName(size_t index) {
  return index == 0 ? "input" : fmt::format("input-{}", index + 1);
}

const char* KindName(api::InputKind kind) {
  switch (kind) {
    case api::InputKind::kFiles: return "files";
    case api::InputKind::kTabular: return "tabular";
    case api::InputKind::kJsonLines: return "jsonLines";
  }
  return "";
}

const char* FormatName(api::TabularFormat format) {
  switch (format) {
    case api::TabularFormat::kCsv: return "CSV";
    case api::TabularFormat::kTsv: return "TSV";
    case api::TabularFormat::kParquet: return "Parquet";
  }
  return "";
}

std::string InputLine(const QuickJob& job, size_t index) {
  const QuickInput& input = job.input;
  const QuickSource& source = input.sources[index];
  std::string text = (source.in_store ? "store: " : "volume: ") + InputName(index);
  if (!source.path.empty()) text += ", path: " + api::QuotedYaml(source.path);
  if (!source.pattern.empty()) text += ", pattern: " + api::QuotedYaml(source.pattern);
  if (input.kind == api::InputKind::kTabular) {
    text += std::string(", format: ") + FormatName(input.format);
  }
  const std::string empty = job.allow_empty.empty() ? "" : ", allowEmpty: " + job.allow_empty;
  return fmt::format("    - {{name: {}, {}: {{{}}}{}}}\n", InputName(index), KindName(input.kind),
                     text, empty);
}

std::string FromHere(const std::string& path) {
  return Absolute(std::filesystem::current_path(), path);
}

const char* VolumeOf(const QuickOutput& output) { return output.url.empty() ? "output" : "run"; }

std::string OutputLines(const QuickOutput& output) {
  std::string file;
  std::string beside;
  if (!output.file.empty()) file = ", fileName: " + api::QuotedYaml(output.file);
  if (!output.file.empty() && output.url.empty()) beside = RunFolderOf(output.file) + "/";
  if (output.format != api::OutputFormat::kText) {
    file += fmt::format(", format: {}", api::EnumWord(output.format));
  }
  std::string text = fmt::format("  output: {{{}: output, path: .{}}}\n",
                                 output.url.empty() ? "volume" : "store", file);
  if (output.folder.empty()) return text;
  return text + fmt::format(
                    "  logs: {{volume: {}, path: {}}}\n"
                    "  state: {{volume: {}, path: {}}}\n",
                    VolumeOf(output), api::YamlText(beside + "logs"), VolumeOf(output),
                    api::YamlText(beside + "state"));
}

}  // namespace

std::string QuickJobYaml(const QuickJob& job, const std::string& job_folder) {
  std::string text;
  text += "apiVersion: parallelrun.dev/v1alpha1\n";
  text += "kind: ParallelRunJob\n";
  text += fmt::format("metadata: {{name: {}}}\n", api::YamlText(api::JobNameOf(job.script)));
  text += "spec:\n";
  if (job.script.find('/') != std::string::npos) {
    text += "  # Modules are looked for in the code folder, not in the script's own.\n";
  }
  text += fmt::format("  entryScript: {}\n", api::QuotedYaml(job.script));
  if (job.code != job_folder)
    text += fmt::format("  code: {{path: {}}}\n", api::QuotedYaml(job.code));
  if (!job.arguments.empty()) {
    text += fmt::format("  arguments: {}\n", api::QuotedYaml(job.arguments));
  }
  text += "  # On a cluster, an image with Python and the packages of the script:\n";
  text += "  # environment: {image: registry/name:tag}\n";
  std::string stores;
  for (size_t i = 0; i < job.input.sources.size(); ++i) {
    const QuickSource& source = job.input.sources[i];
    if (!source.in_store) continue;
    stores +=
        fmt::format("    - {{name: {}, url: {}}}\n", InputName(i), api::QuotedYaml(source.folder));
  }
  if (!job.output.url.empty()) {
    stores += fmt::format("    - {{name: output, url: {}}}\n", api::QuotedYaml(job.output.url));
  }
  if (!stores.empty()) text += "  stores:\n" + stores;
  std::string volumes;
  for (size_t i = 0; i < job.input.sources.size(); ++i) {
    if (job.input.sources[i].in_store) continue;
    volumes += fmt::format("    - {{name: {}, hostPath: {{path: {}}}}}\n", InputName(i),
                           api::QuotedYaml(job.input.sources[i].folder));
  }
  if (!job.output.folder.empty()) {
    volumes += fmt::format("    - {{name: {}, hostPath: {{path: {}}}}}\n", VolumeOf(job.output),
                           api::QuotedYaml(FromHere(job.output.folder)));
  }
  if (!volumes.empty()) text += "  volumes:\n" + volumes;
  text += "  inputs:\n";
  for (size_t i = 0; i < job.input.sources.size(); ++i) text += InputLine(job, i);
  text += OutputLines(job.output);
  text += fmt::format("  processCountPerNode: {}\n", job.processes);
  if (!job.mini_batch_size.empty()) {
    text += fmt::format("  miniBatchSize: {}\n", api::QuotedYaml(job.mini_batch_size));
  }
  return text;
}

std::string TypedAs(const QuickJob& job, const std::string& field) {
  const auto below = [&field](const std::string& path) { return field.starts_with(path); };
  if (below("spec.miniBatchSize")) return "--mini-batch-size";
  if (below("spec.processCountPerNode")) return "--processes";
  if (below("spec.arguments")) return "after --";
  if (below("spec.inputs") && field.ends_with(".pattern")) return "--pattern";
  if (below("spec.inputs") && field.ends_with(".allowEmpty")) return "--allow-empty";
  const auto folders = std::count_if(job.input.sources.begin(), job.input.sources.end(),
                                     [](const QuickSource& one) { return !one.in_store; });
  const auto stores = static_cast<std::ptrdiff_t>(job.input.sources.size()) - folders;
  const bool folder =
      below(fmt::format("spec.volumes[{}]", folders)) || below("spec.logs") || below("spec.state");
  if (folder) return job.output.url.empty() ? "--output" : "--state";
  if (below(fmt::format("spec.stores[{}]", stores)) || below("spec.output")) return "--output";
  if (below("spec.inputs") || below("spec.volumes") || below("spec.stores")) return "--input";
  return below("spec.entryScript") || below("metadata.name") ? job.script : "";
}

}  // namespace parallelrun::cli
