// A draft as the text of a job file.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "api/block_yaml.h"
#include "azure/convert/draft.h"
#include "azure/fill_in.h"

namespace parallelrun::azure {
namespace {

// For a comment: one line, whatever stands in it.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, ' ');
  return text;
}

std::string Comment(const std::string& text) {
  return text.empty() ? "\n" : "  # " + OneLine(text) + "\n";
}

// An input's name as that of a volume, unlike those before it.
std::string VolumeName(const std::string& name, std::vector<std::string>& taken) {
  std::string base;
  for (const char c : name.substr(0, 40)) {
    const auto byte = static_cast<unsigned char>(c);
    base += byte < 0x80 && std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  while (base.starts_with('-')) base.erase(0, 1);
  while (base.ends_with('-')) base.pop_back();
  if (base.empty()) base = "data";
  std::string unique = base;
  for (int i = 2; std::find(taken.begin(), taken.end(), unique) != taken.end(); ++i) {
    unique = base + "-" + std::to_string(i);
  }
  taken.push_back(unique);
  return unique;
}

std::string PartitionFormat(const std::vector<std::string>& keys) {
  std::string format;
  for (const std::string& key : keys) format += "{" + key + "}/";
  return format + "{}";  // any name, which is no column
}

std::string CodePath(const std::string& code, const std::string& prefix) {
  const std::filesystem::path path(code);
  const std::filesystem::path joined =
      path.is_absolute() ? path : std::filesystem::path(prefix) / path;
  std::string text = joined.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text.empty() ? "." : text;
}

class Writer {
 public:
  Writer(const Draft& draft, const std::string& code_prefix)
      : draft_(draft), code_prefix_(code_prefix) {}

  Written Spec() {
    Head();
    Data();
    Rules();
    return {std::move(text_), std::move(folders_)};
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...);
  }

  void Head() {
    Add("apiVersion: {}\nkind: {}\nmetadata:\n  name: {}\n", api::kApiVersion, api::kJobKind,
        api::YamlText(draft_.name));
    if (!draft_.description.empty()) {
      Add("  annotations: {{description: {}}}\n", api::QuotedYaml(draft_.description));
    }
    const bool script = !draft_.entry_script.empty();
    Add("spec:\n  entryScript: {}{}", api::QuotedYaml(script ? draft_.entry_script : kFillInScript),
        Comment(script ? "" : "FILL IN: the script that has run(mini_batch)"));
    Add("  code: {{path: {}}}  # a folder, as seen from this file\n",
        api::QuotedYaml(CodePath(draft_.code, code_prefix_)));
    if (!draft_.arguments.empty()) Add("  arguments:\n");
    for (size_t i = 0; i < draft_.arguments.size(); ++i) {
      const auto open = draft_.open_arguments.find(i);
      Add("    - {}{}", api::QuotedYaml(draft_.arguments[i]),
          Comment(open == draft_.open_arguments.end() ? "" : "FILL IN: " + open->second));
    }
    Add("  environment:\n    image: {}{}",
        api::QuotedYaml(draft_.image.empty() ? kFillInImage : draft_.image),
        Comment(draft_.image.empty() ? "FILL IN: an image with python3 and your packages" : ""));
    if (!draft_.environment.empty()) Add("    env:\n");
    for (const auto& [name, value] : draft_.environment) {
      Add("      - {{name: {}, value: {}}}\n", api::QuotedYaml(name), api::QuotedYaml(value));
    }
  }

  void Data() {
    std::vector<std::string> volumes = {"results"};
    std::string list;
    std::string inputs;
    std::string side_inputs;
    std::map<std::string, std::string> of_inputs;
    const auto add_volume = [&](const DraftData& data) {
      const auto shared = of_inputs.find(data.volume_of);
      if (shared != of_inputs.end()) return shared->second;
      const std::string volume = VolumeName(data.name, volumes);
      folders_.push_back({volume, data.folder});
      list += fmt::format(
          "    - {{name: {}, persistentVolumeClaim: {{claimName: {}{}, readOnly: true}}}}"
          "  # FILL IN the claim\n",
          api::YamlText(volume), kFillInClaim, volume);
      return of_inputs[data.name] = api::YamlText(volume);
    };
    for (const DraftData& data : draft_.inputs) {
      inputs += fmt::format("    - name: {}\n      {}: {{volume: {}, path: {}{}}}{}",
                            api::QuotedYaml(data.name), Kind(), add_volume(data),
                            api::QuotedYaml(data.path), Choice(data), InputComment(data));
      if (!data.partition_format.empty()) {
        inputs += fmt::format("      partitionFormat: {}  # of the MLTable\n",
                              api::QuotedYaml(data.partition_format));
      } else if (!draft_.partition_keys.empty()) {
        inputs += fmt::format("      partitionFormat: {}  # a guess: where do the keys stand?\n",
                              api::QuotedYaml(PartitionFormat(draft_.partition_keys)));
      }
    }
    for (const DraftData& data : draft_.side_inputs) {
      side_inputs +=
          fmt::format("    - {{name: {}, volume: {}, path: {}}}{}", api::QuotedYaml(data.name),
                      add_volume(data), api::QuotedYaml(data.path), PathComment(data));
    }
    Add("  volumes:  # here: parallelrun run JOB --volume NAME=FOLDER\n{}", list);
    Add("    - {{name: results, persistentVolumeClaim: {{claimName: {}results}}}}"
        "  # FILL IN the claim\n",
        kFillInClaim);
    if (!inputs.empty()) Add("  inputs:\n{}", inputs);
    if (!side_inputs.empty()) Add("  sideInputs:\n{}", side_inputs);
    Add("  output: {{volume: results, action: {}", draft_.append ? "AppendRow" : "SummaryOnly");
    if (draft_.append && !draft_.file_name.empty())
      Add(", fileName: {}", api::QuotedYaml(draft_.file_name));
    Add("}}{}", Comment(draft_.places));
  }

  void Rules() {
    if (!draft_.mini_batch_size.empty())
      Add("  miniBatchSize: {}\n", api::QuotedYaml(draft_.mini_batch_size));
    if (!draft_.partition_keys.empty()) {
      Add("  partitionKeys: {}\n", api::QuotedYaml(draft_.partition_keys));
    }
    for (const Draft::Setting& setting : draft_.settings) {
      Add("  {}: {}{}", setting.name, setting.value, Comment(setting.comment));
    }
  }

  // Which files of an input, and how they are read.
  std::string Choice(const DraftData& data) const {
    std::string text;
    if (!data.pattern.empty()) text += ", pattern: " + api::QuotedYaml(data.pattern);
    if (!data.exclude.empty()) text += ", exclude: " + api::QuotedYaml(data.exclude);
    if (draft_.kind != api::InputKind::kTabular) return text;
    for (const auto& [field, value] : draft_.tabular) text += ", " + field + ": " + value;
    return text;
  }

  static std::string PathComment(const DraftData& data, const std::string& more = "") {
    if (data.path != kFillIn) return Comment(more + data.comment);
    return Comment("FILL IN the file's path on its volume; " + more + data.comment);
  }

  std::string InputComment(const DraftData& data) const {
    const bool open =
        draft_.kind == api::InputKind::kTabular &&
        std::any_of(draft_.tabular.begin(), draft_.tabular.end(),
                    [](const auto& one) { return one.first == "delimiter" && IsOpen(one.second); });
    return PathComment(data, open ? "FILL IN what separates the columns; " : "");
  }

  std::string_view Kind() const {
    switch (draft_.kind) {
      case api::InputKind::kFiles: return "files";
      case api::InputKind::kTabular: return "tabular";
      case api::InputKind::kJsonLines: return "jsonLines";
    }
    return "";
  }

  const Draft& draft_;
  const std::string& code_prefix_;
  std::string text_;
  std::vector<VolumeFolder> folders_;
};

}  // namespace

Written WriteDraft(const Draft& draft, const std::string& file, const std::string& code_prefix) {
  std::string text = fmt::format("# Made from {} ({}) by parallelrun convert.\n", OneLine(file),
                                 OneLine(draft.source));
  text += "# Replace what is marked FILL IN, then check it: parallelrun validate FILE\n";
  if (!draft.problems.empty()) text += "#\n# Not carried over:\n";
  for (const api::Problem& problem : draft.problems) {
    api::Problem plain = problem;
    plain.severity = api::Problem::Severity::kError;  // without the word "warning"
    text += "#   " + OneLine(api::FormatProblem(plain, file)) + "\n";
  }
  Written written = Writer(draft, code_prefix).Spec();
  written.yaml.insert(0, text);
  return written;
}

}  // namespace parallelrun::azure
