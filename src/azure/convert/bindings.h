// Internal to `parallelrun convert`: the inputs of a parallel job, and the bindings that name them:
// ${{inputs.x}}, ${{parent.inputs.x}}.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "azure/convert/draft.h"

namespace parallelrun::azure {

// One input of a parallel job: data, or a literal value.
struct AzureInput {
  std::string name;
  bool is_data = false;
  bool optional = false;
  std::string value = {};  // literal; empty when there is none
  std::string type = {};
  std::string path = {};
  std::string mode = {};
  std::string field = {};  // where it stands
};

std::vector<AzureInput> ReadAzureInputs(const api::Node* inputs, const std::string& path,
                                        const api::Node* parent_inputs, Draft& draft);
// "inputs.images" for "${{ inputs.images }}"; empty when `text` is not one binding.
std::string BindingName(std::string_view text);
// program_arguments, added to draft.arguments: "$[[ ]]" opened or dropped, bindings replaced by
// `paths` (what a data binding becomes) or by literals, cut into words as a shell does. A binding
// without a value becomes a placeholder, with what belongs there in draft.open_arguments.
void ReadProgramArguments(const std::string& text, const std::string& field,
                          const std::vector<AzureInput>& inputs,
                          const std::map<std::string, std::string>& paths, Draft& draft);
// `text` when it is a literal, the value of the input when it is a binding; else empty, reported.
std::string ResolveLiteral(const std::string& text, const std::string& field,
                           const std::vector<AzureInput>& inputs, Draft& draft);

}  // namespace parallelrun::azure
