// Internal to `parallelrun convert`: the job as read from Azure ML's YAML, before it is written.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/job.h"
#include "api/node.h"
#include "api/problem.h"
#include "azure/convert/convert.h"

namespace parallelrun::azure {

// Data that Azure ML would mount; becomes a volume and a path on it.
struct DraftData {
  std::string name;
  std::string path = ".";
  std::string comment = {};  // what it was in Azure ML
  // Of an input alone, as in the job file; empty: nothing to write.
  std::string pattern = {};
  std::vector<std::string> exclude = {};
  std::string partition_format = {};
  std::string volume_of = {};  // the input whose volume it lies on, too; empty: one of its own
  // What its volume is on this machine, as seen from the Azure ML file; empty: not known.
  std::string folder = {};
};

struct Draft {
  std::string source;  // "a v2 parallel job"
  std::string name;
  std::string description = {};
  std::string entry_script = {};
  std::string code = ".";
  std::vector<std::string> arguments = {};
  // What belongs in the place of their placeholders, by the number of the argument.
  std::map<size_t, std::string> open_arguments = {};
  std::string image = {};  // empty: to fill in
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::vector<DraftData> inputs = {};
  api::InputKind kind = api::InputKind::kFiles;
  // How the columns of tabular inputs are read: fields of inputs[].tabular, and their YAML.
  std::vector<std::pair<std::string, std::string>> tabular = {};
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
  api::Problems problems = {};

  void Lose(std::string field, std::string what, std::string mend = "") {
    problems.push_back({.severity = api::Problem::Severity::kWarning,
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

// One for each kind of file.
Draft ReadRunConfig(const api::Node& root, const std::string& name);
Draft ReadParallelFile(const api::Node& root, const std::string& name,
                       const ConvertOptions& options);
Draft ReadBatchDeployment(const api::Node& root, const std::string& name);

struct Written {
  std::string yaml;
  std::vector<VolumeFolder> volumes;  // in the order of the job
};
Written WriteDraft(const Draft& draft, const std::string& file, const std::string& code_prefix);

}  // namespace parallelrun::azure
