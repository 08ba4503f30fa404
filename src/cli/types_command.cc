#include "cli/types_command.h"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "api/enums.h"
#include "base/escape.h"
#include "base/files.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "coordinator/plan/input_store.h"
#include "coordinator/plan/table_logs.h"
#include "coordinator/types/decide_types.h"

namespace parallelrun {
namespace {

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return kExitUsage;
}

PlanInput InputAt(const TypesRequest& request) {
  PlanInput input;
  input.name = "rows";
  input.root = Absolute(std::filesystem::current_path(), request.target);
  input.kind = PlanKind::kDelimited;
  input.tabular.delimiter = request.delimiter;
  if (input.tabular.delimiter.empty())
    input.tabular.delimiter = input.root.ends_with(".tsv") ? "\t" : ",";
  return input;
}

void Print(const TypedTable& table, const PlanInput& input) {
  for (const TypedColumn& column : table.columns) {
    const auto written = input.tabular.dtypes.find(column.name);
    const bool is_written = written != input.tabular.dtypes.end();
    std::string line = Printable(column.name, 1024) + "\t";
    line += EnumWord(is_written ? written->second : column.type.type);
    if (is_written) {
      line += "\tas written";
    } else if (column.type.missing) {
      line += "\tsome missing";
    } else if (!column.why.empty()) {
      line += "\t" + column.why;
    }
    std::printf("%s\n", line.c_str());
  }
}

}  // namespace

int PrintTypes(const TypesRequest& request) {
  const std::string& target = request.target;
  std::vector<PlanInput> inputs;
  std::vector<std::string> forbidden;
  std::vector<ObjectStore> stores;
  if (target.ends_with(".yaml") || target.ends_with(".yml") || target.ends_with(".json")) {
    RunRequest run;
    run.job_file = target;
    run.volumes = request.volumes;
    run.overrides = request.overrides;
    const Result<LocalJob> job = PrepareJob(run);
    if (!job.ok()) return Refuse(job.error().message);
    inputs = job->layout.inputs;
    forbidden = job->layout.forbidden;
    stores = job->layout.stores;
  } else {
    inputs.push_back(InputAt(request));
  }
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const OpenStore open =
      RefusingTableLogs(InputStores(*files, std::move(forbidden), std::move(stores)));
  bool printed = false;
  for (const PlanInput& input : inputs) {
    if (input.kind != PlanKind::kDelimited) continue;
    const std::unique_ptr<store::Store> store = open(input);
    const Result<std::optional<TypedTable>> table = DecideTypes(input, *store, kWholeInput);
    if (!table.ok()) return Refuse(table.error().message);
    if (!*table) continue;
    if (inputs.size() > 1) std::printf("inputs[%s]\n", input.name.c_str());
    Print(**table, input);
    printed = true;
  }
  if (printed) return kExitOk;
  return Refuse(Printable(target, 4096) + " has no table of CSV or TSV with a row in it");
}

}  // namespace parallelrun
