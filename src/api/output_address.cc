#include "api/output_address.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace parallelrun::api {
namespace {

std::string Dump(const nlohmann::json& address) {
  return address.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string AddressInStore(const JobSpec& spec) {
  const auto store =
      std::find_if(spec.stores.begin(), spec.stores.end(),
                   [&](const ObjectStore& s) { return s.name == spec.output.store; });
  if (store == spec.stores.end()) return "";
  std::string url = store->url;
  while (url.ends_with('/')) url.pop_back();
  if (spec.output.to.path != ".") url += "/" + spec.output.to.path;
  return Dump({"store", store->endpoint, url + "/" + spec.output.file_name});
}

}  // namespace

std::string OutputAddress(const std::string& name_space, const JobSpec& spec) {
  if (!spec.output.store.empty()) return AddressInStore(spec);
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
  return Dump({name_space, volume->kind, source, text});
}

}  // namespace parallelrun::api
