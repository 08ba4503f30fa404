#include "cli/run/quick_job.h"

#include <spdlog/fmt/fmt.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/render/yaml.h"
#include "cli/run/local_job.h"

namespace parallelrun {
namespace {

// A string as YAML reads it back unchanged: JSON's quoting is YAML's too.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string FromHere(const std::string& path) {
  return Absolute(std::filesystem::current_path(), path);
}

}  // namespace

std::string JobNameOf(const std::string& script) {
  std::string name;
  for (const char c : std::filesystem::path(script).stem().string()) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 && byte < 0x80 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  while (!name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) == 0)
    name.erase(0, 1);
  name = name.substr(0, 40);
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.size() < 3 ? "job-" + (name.empty() ? "run" : name) : name;
}

std::string QuickJobYaml(const QuickJob& job) {
  const std::string input = FromHere(job.input);
  const std::filesystem::path input_path(input);
  const std::string extension = input_path.extension();
  const bool tabular = extension == ".csv" || extension == ".tsv";
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(input_path, ignored);
  const std::string folder = is_file ? input_path.parent_path().string() : input;

  std::string source = "volume: input";
  if (is_file) source += ", path: " + Quoted(input_path.filename());
  if (!job.pattern.empty()) source += ", pattern: " + Quoted(job.pattern);
  if (tabular) source += extension == ".tsv" ? ", format: TSV" : ", format: CSV";
  std::string arguments;
  for (const std::string& argument : job.arguments) {
    arguments += (arguments.empty() ? "" : ", ") + Quoted(argument);
  }

  std::string text;
  text += "apiVersion: parallelrun.dev/v1alpha1\n";
  text += "kind: ParallelRunJob\n";
  text += fmt::format("metadata: {{name: {}}}\n", YamlText(JobNameOf(job.script)));
  text += "spec:\n";
  text += fmt::format("  entryScript: {}\n", Quoted(std::filesystem::path(job.script).filename()));
  if (!arguments.empty()) text += fmt::format("  arguments: [{}]\n", arguments);
  text += "  # On a cluster, an image with Python and the packages of the script:\n";
  text += "  # environment: {image: registry/name:tag}\n";
  text += "  volumes:\n";
  text += fmt::format("    - {{name: input, hostPath: {{path: {}}}}}\n", Quoted(folder));
  text +=
      fmt::format("    - {{name: output, hostPath: {{path: {}}}}}\n", Quoted(FromHere(job.output)));
  text += "  inputs:\n";
  text += fmt::format("    - {{name: input, {}: {{{}}}}}\n", tabular ? "tabular" : "files", source);
  text += "  output: {volume: output, path: .}\n";
  text += "  logs: {volume: output, path: logs}\n";
  text += "  state: {volume: output, path: state}\n";
  text += fmt::format("  processCountPerNode: {}\n", job.processes);
  if (!job.mini_batch_size.empty()) {
    text += fmt::format("  miniBatchSize: {}\n", Quoted(job.mini_batch_size));
  }
  return text;
}

}  // namespace parallelrun
