#include "api/store_users.h"

#include <algorithm>

namespace parallelrun::api {

bool NodesFetchFrom(const JobSpec& spec, std::string_view store) {
  return std::any_of(spec.inputs.begin(), spec.inputs.end(),
                     [store](const Input& input) {
                       return input.store == store && input.access == Access::kPath;
                     }) ||
         std::any_of(spec.side_inputs.begin(), spec.side_inputs.end(),
                     [store](const SideInput& side) { return side.store == store; });
}

}  // namespace parallelrun::api
