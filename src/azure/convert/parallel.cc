#include "azure/convert/parallel.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "azure/convert/bindings.h"
#include "azure/convert/common.h"
#include "azure/convert/mltable.h"
#include "azure/fill_in.h"

namespace parallelrun::azure {
namespace {

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool HasUnit(const std::string& size) {
  return !size.empty() && std::isalpha(static_cast<unsigned char>(size.back())) != 0;
}

// Docker's sizes ("2g") as Kubernetes writes them.
std::string Quantity(const std::string& size) {
  const std::string lower = Lower(size);
  const size_t unit = lower.find_first_not_of("0123456789");
  if (unit == 0 || lower.empty()) return "";
  if (unit == std::string::npos) return lower;
  const std::string suffix = lower.substr(unit, 1);
  const std::string number = lower.substr(0, unit);
  if (suffix == "b") return number;
  if (suffix == "k") return number + "Ki";
  if (suffix == "m") return number + "Mi";
  return suffix == "g" ? number + "Gi" : "";
}

// Of a uri_file the file itself: its volume stands for the folder. What it was in the cloud may not
// say how it is called.
std::string PathOfData(const AzureInput& input) {
  if (input.type != "uri_file") return PathInStorage(input.path);
  const std::string path = IsElsewhere(input.path)
                               ? PathInStorage(input.path)
                               : std::filesystem::path(input.path).filename().string();
  return path.empty() || path == "." || path == ".." ? kFillIn : path;
}

// What the volume of an input is here; empty: the file names no place on this machine.
std::string FolderOfData(const AzureInput& input) {
  if (input.path.empty() || IsElsewhere(input.path)) return "";
  const std::filesystem::path path = std::filesystem::path(input.path).lexically_normal();
  const bool file =
      input.type == "uri_file" || path.filename() == "MLTable" || !path.has_filename();
  const std::string folder = (file ? path.parent_path() : path).string();
  return folder.empty() ? "." : folder;
}

class ParallelReader {
 public:
  ParallelReader(const api::Node& step, const std::string& path, const ParentPipeline& parent,
                 const ConvertOptions& options, Draft& draft)
      : section_(&step, path, draft),
        parent_(parent),
        options_(options),
        draft_(draft),
        parent_values_(ReadAzureInputs(parent.inputs, "", nullptr, throwaway_)) {}

  void Read() {
    inputs_ =
        ReadAzureInputs(section_.Take("inputs"), section_.PathOf("inputs"), parent_.inputs, draft_);
    draft_.description = section_.Text("description");
    Section task = section_.Map("task");
    ReadOutputs(task);
    ReadInputs();
    ReadTask(task);
    ReadSize();
    ReadFailures();
    ReadResources();
    ReadVariables(section_.Take("environment_variables"), section_.PathOf("environment_variables"),
                  draft_);
    section_.Pass({"name"});
    LoseCloud(section_);
    section_.Finish();
  }

 private:
  // A setting, which may be bound to a value of the pipeline.
  std::string Literal(Section& section, const std::string& key) {
    const std::string text = section.Text(key);
    const std::string binding = BindingName(text);
    for (const AzureInput& input : parent_values_) {
      if (binding == "parent.inputs." + input.name && !input.value.empty()) return input.value;
    }
    return ResolveLiteral(text, section.PathOf(key), inputs_, draft_);
  }

  void ReadOutputs(Section& task) {
    std::string field = task.PathOf("append_row_to");
    std::string bound = task.Text("append_row_to");
    if (bound.empty()) {
      field = section_.PathOf("append_row_to");
      bound = section_.Text("append_row_to");
    }
    draft_.append = !bound.empty();
    const std::vector<AzureInput> outputs =
        ReadAzureInputs(section_.Take("outputs"), section_.PathOf("outputs"), nullptr, throwaway_);
    size_t folders = 0;
    for (const AzureInput& output : outputs) {
      if (BindingName(bound) != "outputs." + output.name && !IsFile(output)) ++folders;
    }
    for (const AzureInput& output : outputs) {
      const std::string name = "outputs." + output.name;
      LosePlace(output);
      if (BindingName(bound) == name) {
        ReadFileName(output);
      } else if (IsFile(output)) {
        const std::string found = FileNameOf(output);
        const std::string file = found.empty() ? output.name + ".txt" : found;
        paths_[name] = "$(output)/" + file;
        draft_.Lose(output.field, "a job has one output folder",
                    "this output is the file " + file + " in it");
      } else if (folders == 1) {
        paths_[name] = "$(output)";
      } else {
        paths_[name] = "$(output)/" + output.name;
        draft_.Lose(output.field, "a job has one output folder",
                    "this output is the folder " + output.name + " in it");
      }
    }
  }

  // What an output says itself, or the output of the pipeline that it is; empty when no one does.
  std::string OfOutput(const AzureInput& output, const char* key, const std::string& own) const {
    constexpr std::string_view kParent = "parent.outputs.";
    const std::string binding = BindingName(output.path.empty() ? output.value : output.path);
    if (!binding.starts_with(kParent)) return own;
    const api::Node* const found =
        parent_.outputs != nullptr && parent_.outputs->kind == api::Node::Kind::kMap
            ? parent_.outputs->Find(binding.substr(kParent.size()))
            : nullptr;
    const api::Node* const text =
        found != nullptr && found->kind == api::Node::Kind::kMap ? found->Find(key) : nullptr;
    return text != nullptr ? text->text : "";
  }

  std::string AddressOf(const AzureInput& output) const {
    return OfOutput(output, "path", output.path.empty() ? output.value : output.path);
  }

  bool IsFile(const AzureInput& output) const {
    return OfOutput(output, "type", output.type) == "uri_file";
  }

  void LosePlace(const AzureInput& output) {
    const std::string address = AddressOf(output);
    if (address.empty()) return;
    draft_.Lose(output.field, api::Quoted(address) + " is a place in the cloud",
                "fill in the volume results, and write spec.output.path");
    draft_.places += (draft_.places.empty() ? "" : ", ") + output.name + " was " + address;
  }

  // The last part of the output's address, if that is the name of a file.
  std::string FileNameOf(const AzureInput& output) const {
    const std::string name = std::filesystem::path(AddressOf(output)).filename().string();
    const bool is_name = name.find('.') != std::string::npos &&
                         name.find_first_of("~\"#%&*:<>?/\\{|}") == std::string::npos;
    return is_name ? name : "";
  }

  void ReadFileName(const AzureInput& output) {
    draft_.file_name = FileNameOf(output);
    const std::string file =
        draft_.file_name.empty() ? std::string("parallel_run_step.txt") : draft_.file_name;
    paths_["outputs." + output.name] = "$(output)" + (IsFile(output) ? "/" + file : "");
  }

  void ReadInputs() {
    const std::string field = section_.PathOf("input_data");
    const std::string binding = BindingName(section_.Text("input_data"));
    bool found = false;
    for (const AzureInput& input : inputs_) {
      if (!input.is_data) continue;
      const bool main = binding == "inputs." + input.name;
      found = found || main;
      if (input.optional && input.path.empty() && !main) {
        draft_.Lose(input.field, "is optional and has no value here, and is left out",
                    "add it to spec.sideInputs and spec.arguments if you want it");
        continue;
      }
      CheckAzureData(input.path, input.field, draft_);
      paths_["inputs." + input.name] = (main ? "$(inputs." : "$(sideInputs.") + input.name + ")";
      const DraftData data{.name = input.name,
                           .path = PathOfData(input),
                           .comment = input.path.empty()
                                          ? input.type + " without a path in this file"
                                          : "was " + input.path,
                           .folder = FolderOfData(input)};
      if (!main) {
        draft_.side_inputs.push_back(data);
        continue;
      }
      data_ = input;
      table_ = input.type == "mltable" ? FindMLTable(input, options_, draft_) : std::nullopt;
      for (DraftData& one : InputsOf(table_, data, input.type == "mltable")) {
        draft_.inputs.push_back(std::move(one));
      }
    }
    if (!found) {
      draft_.Lose(field, "the input is not found in this file", "fill in spec.inputs");
    }
  }

  void ReadTask(Section& task) {
    const std::string type = task.Text("type");
    if (!type.empty() && type != "run_function" && type != "function") {
      draft_.Lose(task.PathOf("type"), api::Quoted(type) + " is not a Python function",
                  "write an entry script with run(mini_batch)");
    }
    ReadCode(task.Text("code"), task.Text("entry_script"), task.PathOf("code"), draft_);
    ReadAzureEnvironment(task.Take("environment"), task.PathOf("environment"), draft_);
    // The service writes `args` for what its command line calls program_arguments.
    for (const char* key : {"program_arguments", "args"}) {
      ReadProgramArguments(task.Text(key), task.PathOf(key), inputs_, paths_, draft_);
    }
    task.Lose("model", "a model is a side input here", "add it to spec.sideInputs as model");
    task.Finish();
  }

  void ReadSize() {
    const std::string size = Literal(section_, "mini_batch_size");
    const std::string field = section_.PathOf("mini_batch_size");
    const auto& arguments = draft_.arguments;
    const bool json_lines = std::any_of(arguments.begin(), arguments.end(), [](const auto& word) {
      return word.starts_with("--amlbi_file_format");
    });
    if (json_lines) {
      draft_.kind = api::InputKind::kJsonLines;
    } else if (table_) {
      draft_.kind = table_->kind;
      draft_.tabular = table_->tabular;
    } else if (data_.mode == "direct" || HasUnit(size)) {
      draft_.kind = api::InputKind::kTabular;
      if (data_.path.ends_with(".parquet")) draft_.tabular = {{"format", "Parquet"}};
      draft_.Lose(data_.field.empty() ? field : data_.field,
                  "the columns' format is said in the MLTable, which is not read",
                  "check format, delimiter, header and encoding of spec.inputs[0].tabular");
    } else if (data_.type == "mltable") {
      draft_.Lose(data_.field, "the MLTable is not read: its input is taken for files",
                  "write tabular in place of files if it reads columns (read_delimited); its paths "
                  "become path and pattern");
    }
    ReadAzureKeys(section_.Take("partition_keys"), section_.PathOf("partition_keys"),
                  table_ ? table_->partition_format : "", draft_);
    if (size.empty() || !draft_.partition_keys.empty()) return;
    draft_.mini_batch_size = size;
    if (draft_.kind != api::InputKind::kTabular && HasUnit(size)) {
      const bool lines = draft_.kind == api::InputKind::kJsonLines;
      draft_.mini_batch_size.clear();
      draft_.Lose(field,
                  (lines ? "JSON lines" : "files") + std::string(" are counted, not measured"),
                  "write spec.miniBatchSize");
    }
  }

  void ReadFailures() {
    SetInteger(Literal(section_, "error_threshold"), section_.PathOf("error_threshold"),
               "errorThreshold", -1, 0, draft_);
    SetInteger(Literal(section_, "mini_batch_error_threshold"),
               section_.PathOf("mini_batch_error_threshold"), "allowedFailedCount", -1, 0, draft_);
    Section retry = section_.Map("retry_settings");
    SetInteger(Literal(retry, "max_retries"), retry.PathOf("max_retries"), "runMaxTry", 0, 1,
               draft_);
    SetInteger(Literal(retry, "timeout"), retry.PathOf("timeout"), "runInvocationTimeoutSeconds", 1,
               0, draft_);
    retry.Finish();
    SetLevel(Literal(section_, "logging_level"), section_.PathOf("logging_level"), draft_);
  }

  void ReadResources() {
    Section resources = section_.Map("resources");
    std::string nodes = Literal(resources, "instance_count");
    if (nodes == "-1") {
      draft_.Lose(resources.PathOf("instance_count"), "-1 leaves it open", "write spec.nodeCount");
      nodes.clear();
    }
    SetInteger(nodes, resources.PathOf("instance_count"), "nodeCount", 1, 0, draft_);
    const std::string mend = "write spec.resources, and spec.podTemplate.spec.nodeSelector";
    resources.Lose("instance_type", "machine types of the cloud are not carried over", mend);
    resources.Lose("properties", "settings of the cloud are not carried over", mend);
    resources.Lose("docker_args", "arguments of docker have no counterpart",
                   "write what they set in spec.podTemplate.spec");
    const std::string shared = resources.Text("shm_size");
    const std::string quantity = Quantity(shared);
    if (!quantity.empty()) {
      draft_.Set("sharedMemory", quantity, resources.PathOf("shm_size"));
    } else if (!shared.empty()) {
      draft_.Lose(resources.PathOf("shm_size"), api::Quoted(shared) + " is not a size",
                  "write spec.sharedMemory");
    }
    resources.Finish();
    SetInteger(Literal(section_, "max_concurrency_per_instance"),
               section_.PathOf("max_concurrency_per_instance"), "processCountPerNode", 1, 0,
               draft_);
  }

  Section section_;
  const ParentPipeline& parent_;
  const ConvertOptions& options_;
  Draft& draft_;
  Draft throwaway_;  // outputs are read as inputs are, but what is amiss with them is no loss
  std::vector<AzureInput> parent_values_;
  std::vector<AzureInput> inputs_;
  AzureInput data_;
  std::optional<MLTable> table_;              // that says how data_ is read
  std::map<std::string, std::string> paths_;  // of bindings
};

}  // namespace

void ReadParallelStep(const api::Node& step, const std::string& path, const ParentPipeline& parent,
                      const ConvertOptions& options, Draft& draft) {
  ParallelReader(step, path, parent, options, draft).Read();
}

}  // namespace parallelrun::azure
