// Internal to `parallelrun convert`: the job as read from Azure ML's YAML, before it is written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/node.h"
#include "api/problem.h"

namespace parallelrun {

inline constexpr char kFillInImage[] = "registry.example/fill-in:1";

// Data that Azure ML would mount; becomes a volume and a path on it.
struct DraftData {
  std::string name;
  std::string path = ".";
  std::string comment;  // what it was in Azure ML
};

struct Draft {
  std::string source;  // "a v2 parallel job"
  std::string name;
  std::string description = {};
  std::string entry_script = {};
  std::string code = ".";
  std::vector<std::string> arguments = {};
  std::string image = {};  // empty: to fill in
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<DraftData> inputs = {};
  InputKind kind = InputKind::kFiles;
  bool parquet = false;
  std::vector<DraftData> side_inputs = {};
  std::string places = {};  // where the outputs went in Azure ML
  bool append = true;
  std::string file_name = {};  // empty: the default
  std::string mini_batch_size = {};
  std::vector<std::string> partition_keys = {};
  // Fields of the spec that are plain scalars: name, value, where it comes from.
  struct Setting {
    std::string name;
    std::string value;
    std::string comment;
  };
  std::vector<Setting> settings = {};
  Problems problems = {};

  void Lose(std::string field, std::string what, std::string mend = "") {
    problems.push_back({.severity = Problem::Severity::kWarning,
                        .field = std::move(field),
                        .what = std::move(what),
                        .mend = std::move(mend)});
  }
  void Refuse(std::string field, std::string what, std::string mend) {
    problems.push_back(
        {.field = std::move(field), .what = std::move(what), .mend = std::move(mend)});
  }
  void Set(std::string field, std::string value, std::string comment) {
    settings.push_back({std::move(field), std::move(value), std::move(comment)});
  }
};

// A map of the Azure ML file; what is never taken is reported in the end.
class Section {
 public:
  Section(const Node* node, std::string path, Draft& draft);

  bool there() const { return node_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& key) const { return JoinPath(path_, key); }
  // The value; nullptr when it is absent or null.
  const Node* Take(const std::string& key);
  Section Map(const std::string& key);
  // A scalar as text; empty when absent. Anything else is reported.
  std::string Text(const std::string& key);
  // A boolean, in any of the words that Azure ML's schema takes for true.
  bool True(const std::string& key);
  // Known, and of no consequence.
  void Pass(const std::vector<std::string>& keys);
  // Reported when it is there.
  void Lose(const std::string& key, const std::string& what, const std::string& mend);
  void Finish();

 private:
  const Node* node_;
  std::string path_;
  Draft& draft_;
  std::vector<std::string> taken_;
};

// One input of a parallel job: data, or a literal value.
struct AzureInput {
  std::string name;
  bool is_data = false;
  std::string value = {};  // literal; empty when there is none
  std::string type = {};
  std::string path = {};
  std::string mode = {};
  std::string field = {};  // where it stands
};

// convert_bindings.cc
std::vector<AzureInput> ReadAzureInputs(const Node* inputs, const std::string& path,
                                        const Node* parent_inputs, Draft& draft);
// "inputs.images" for "${{ inputs.images }}"; empty when `text` is not one binding.
std::string BindingName(std::string_view text);
// program_arguments: "$[[ ]]" opened or dropped, bindings replaced by `paths` (what a data binding
// becomes) or by literals, cut into words as a shell does.
std::vector<std::string> ReadProgramArguments(const std::string& text, const std::string& field,
                                              const std::vector<AzureInput>& inputs,
                                              const std::map<std::string, std::string>& paths,
                                              Draft& draft);
// `text` when it is a literal, the value of the input when it is a binding; else empty, reported.
std::string ResolveLiteral(const std::string& text, const std::string& field,
                           const std::vector<AzureInput>& inputs, Draft& draft);

// convert_common.cc: what several kinds of file say in the same way
std::string JobNameFrom(const std::string& text);
// The path within its storage, when the address says it: "azureml://datastores/a/paths/b/" -> "b".
std::string PathInStorage(const std::string& address);
void ReadAzureEnvironment(const Node* node, const std::string& field, Draft& draft);
void ReadVariables(const Node* node, const std::string& field, Draft& draft);
void ReadCode(const std::string& code, const std::string& script, const std::string& field,
              Draft& draft);
void ReadAzureKeys(const Node* node, const std::string& field, Draft& draft);
void CheckAzureData(const std::string& address, const std::string& field, Draft& draft);
// Adds spec.`name` with a whole number of at least `least`, reported otherwise.
void SetInteger(const std::string& text, const std::string& field, const std::string& name,
                int64_t least, int64_t add, Draft& draft);
// The same for a number from 0 to 100.
void SetPercent(const std::string& text, const std::string& field, const std::string& name,
                Draft& draft);
void SetLevel(const std::string& text, const std::string& field, Draft& draft);
void LoseCloud(Section& section);

// One for each kind of file.
Draft ReadRunConfig(const Node& root, const std::string& name);
Draft ReadParallelJob(const Node& root, const std::string& name, const std::string& step);
Draft ReadBatchDeployment(const Node& root, const std::string& name);

std::string WriteDraft(const Draft& draft, const std::string& file, const std::string& code_prefix);

}  // namespace parallelrun
