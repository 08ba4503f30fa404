#include "cli/types_command.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "api/enums.h"
#include "base/escape.h"
#include "base/files.h"
#include "cli/run/local_job.h"
#include "cli/run/local_place.h"
#include "cli/run/local_run.h"
#include "cli/run/quick_input.h"
#include "plan/columns/decide_types.h"
#include "plan/columns/types_json.h"
#include "plan/input_store.h"
#include "plan/table_logs.h"
#include "store/wished.h"

namespace parallelrun::cli {
namespace {

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return kExitUsage;
}

Result<plan::PlanInput> InputAt(const TypesRequest& request) {
  const Status here =
      MustBePath("the table", request.target,
                 "types are decided here for files and folders of this machine, and "
                 "for what is in a store by a job file that names it");
  if (!here.ok()) return here.error();
  plan::PlanInput input;
  input.name = "rows";
  input.root = Absolute(std::filesystem::current_path(), request.target);
  input.kind = plan::PlanKind::kDelimited;
  input.tabular.delimiter = request.delimiter;
  if (!request.delimiter.empty()) return input;
  const std::optional<NamedTables> tables = TablesNamed(request.target);
  const bool tabular = !tables || tables->kind == api::InputKind::kTabular;
  if (!tabular || (tables && tables->format == api::TabularFormat::kParquet)) {
    return Error{Code::kInvalid,
                 Printable(request.target, 4096) + " is " +
                     (tabular ? "Parquet, whose files say the types of their columns"
                              : "JSON lines, whose values have their types themselves") +
                     ": types are decided for CSV and TSV"};
  }
  const bool tabs = tables && tables->format == api::TabularFormat::kTsv;
  input.tabular.delimiter = tabs ? "\t" : ",";
  return input;
}

struct ColumnShown {
  std::string type;  // empty: no row tells it
  std::string why;   // may be empty
};

ColumnShown Show(const plan::TypedColumn& column, const plan::TypedTable& table,
                 const plan::PlanInput& input) {
  const auto written = input.tabular.dtypes.find(column.name);
  if (written != input.tabular.dtypes.end()) {
    return {std::string(api::EnumWord(written->second)), "as written"};
  }
  if (table.no_rows) return {"", "there is no row"};
  return {std::string(api::EnumWord(column.type.type)),
          column.type.missing ? "some missing" : column.why};
}

void Print(const plan::TypedTable& table, const plan::PlanInput& input) {
  for (const plan::TypedColumn& column : table.columns) {
    const ColumnShown shown = Show(column, table, input);
    std::string line =
        Printable(column.name, 1024) + "\t" + (shown.type.empty() ? "-" : shown.type);
    if (!shown.why.empty()) line += "\t" + shown.why;
    std::printf("%s\n", line.c_str());
  }
}

// One input; a name of a column is bytes.
std::string Json(const plan::TypedTable& table, const plan::PlanInput& input) {
  std::string columns;
  for (const plan::TypedColumn& column : table.columns) {
    const ColumnShown shown = Show(column, table, input);
    columns += fmt::format(R"({}{{"name":{},"type":{},"why":{}}})", columns.empty() ? "" : ",",
                           JsonText(column.name),
                           shown.type.empty() ? "null" : JsonText(shown.type), JsonText(shown.why));
  }
  return fmt::format(R"({{"name":{},"columns":[{}]}})", JsonText(input.name), columns);
}

}  // namespace

int PrintTypes(const TypesRequest& request) {
  const std::string& target = request.target;
  std::vector<plan::PlanInput> inputs;
  std::vector<std::string> forbidden;
  std::map<std::string, store::Wished> stores;
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
    Result<plan::PlanInput> input = InputAt(request);
    if (!input.ok()) return Refuse(input.error().message);
    inputs.push_back(std::move(*input));
  }
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const plan::OpenStore open =
      plan::RefusingTableLogs(plan::InputStores(*files, std::move(forbidden), std::move(stores)));
  bool printed = false;
  std::string tables;  // as JSON
  for (const plan::PlanInput& input : inputs) {
    if (input.kind != plan::PlanKind::kDelimited) continue;
    const std::unique_ptr<store::Store> store = open(input);
    const Result<std::optional<plan::TypedTable>> table =
        plan::DecideTypes(input, *store, plan::kWholeInput);
    if (!table.ok()) return Refuse(table.error().message);
    if (!*table) continue;
    if (request.json) {
      tables += (printed ? "," : "") + Json(**table, input);
    } else {
      if (inputs.size() > 1) std::printf("inputs[%s]\n", input.name.c_str());
      Print(**table, input);
    }
    const std::string asks = plan::AskAboutHeader(**table, input);
    if (!asks.empty()) std::fprintf(stderr, "%s\n", asks.c_str());
    printed = true;
  }
  if (printed && request.json) std::printf("{\"inputs\":[%s]}\n", tables.c_str());
  if (printed) return kExitOk;
  return Refuse(Printable(target, 4096) + " has no table of CSV or TSV with a row in it");
}

}  // namespace parallelrun::cli
