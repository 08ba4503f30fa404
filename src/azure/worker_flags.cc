#include "azure/worker_flags.h"

#include "azure/flags.h"

namespace parallelrun::azure {

WorkerFlags WorkerFlagsOf(const std::vector<std::string>& arguments) {
  WorkerFlags flags;
  bool prompt_flow = false;
  bool component = false;
  // In their order: as in argparse, the last of several decides.
  for (const Found& found : FindFlags(arguments)) {
    if (found.flag == nullptr || found.flag->role != Role::kSets) continue;
    const std::variant<api::Node, Misfit> read = ReadValue(found);
    const api::Node* const value = std::get_if<api::Node>(&read);
    if (value == nullptr) continue;
    const std::string& name = found.flag->name;
    if (name == "append_row_dataframe_header") flags.append_row_dataframe_header = value->boolean;
    if (name == "append_row_safe_output") flags.append_row_safe_output = value->boolean;
    if (name == "amlbi_dataframe_mixed_types") flags.mixed_types = value->boolean;
    if (name == "amlbi_async_mode") flags.async_mode = value->boolean;
    if (name == "amlbi_pf_enabled") prompt_flow = value->boolean;
    if (name == "amlbi_pf_run_mode") component = value->text == "component";
  }
  flags.component_mode = prompt_flow && component;
  return flags;
}

}  // namespace parallelrun::azure
