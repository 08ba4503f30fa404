// A job file from Azure ML's YAML, for `parallelrun convert`. Takes a ParallelRunConfig
// ("parallel_run_config"), a v2 parallel job or component, alone or as a step of a pipeline job,
// and a batch deployment. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "api/problem.h"
#include "base/error.h"

namespace parallelrun::azure {

struct ConvertOptions {
  std::string file;         // the name of the Azure ML file, for messages and the job's name
  std::string step;         // of a pipeline with several parallel steps
  std::string code_prefix;  // from the new file's folder to the old one's; empty: the same
  // The text of a file that the Azure ML file names: a component, an MLTable. The path is as seen
  // from its folder. Unset: there is none.
  std::function<Result<std::string>(const std::string& path)> read = {};
  // Each parallel step of the pipeline becomes a job of its own; `step` says which one this is.
  bool all_steps = false;
};

// A volume of the job, and the folder that it is on this machine, as seen from the Azure ML file;
// empty: the file does not say.
struct VolumeFolder {
  std::string volume;
  std::string folder;
};

struct Conversion {
  std::string yaml;                   // the job file, with comments; empty when there are errors
  std::vector<VolumeFolder> volumes;  // those of its data; its output is the volume results
  // Warnings: what could not be carried over, each at its field and line of the Azure ML file.
  // Errors: why there is nothing to convert.
  api::Problems problems;
};

Conversion ConvertAzure(std::string_view text, const ConvertOptions& options);

// Each parallel step of a pipeline job, in the file's order; of any other file its one job, with an
// empty `step`.
struct StepConversion {
  std::string step;
  Conversion conversion;
};
std::vector<StepConversion> ConvertAllSteps(std::string_view text, const ConvertOptions& options);

// For the commands that take a job file: what to do when `text`, the content of `file`, is a file
// of Azure ML. Empty when it is none.
std::string SayConvert(std::string_view text, const std::string& file);

}  // namespace parallelrun::azure
