#include "api/output_address.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace parallelrun {

std::string OutputAddress(const std::string& name_space, const JobSpec& spec) {
  const auto volume = std::find_if(spec.volumes.begin(), spec.volumes.end(), [&](const Volume& v) {
    return v.name == spec.output.to.volume;
  });
  if (volume == spec.volumes.end() || volume->kind == "emptyDir" || volume->kind == "ephemeral") {
    return "";
  }
  nlohmann::json source = volume->source;
  if (source.is_object()) source.erase("readOnly");
  // Below a root, so that a path cannot leave it.
  std::filesystem::path path = std::filesystem::path("/") / spec.output.to.path;
  if (spec.output.action == OutputAction::kAppendRow) path /= spec.output.file_name;
  std::string text = path.lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return nlohmann::json({name_space, volume->kind, source, text})
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

}  // namespace parallelrun
