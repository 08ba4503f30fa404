#include "api/output_address.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace parallelrun::api {
namespace {

std::string Dump(const nlohmann::json& address) {
  return address.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

const ObjectStore* FindStore(const JobSpec& spec, const std::string& name) {
  const auto store = std::find_if(spec.stores.begin(), spec.stores.end(),
                                  [&](const ObjectStore& s) { return s.name == name; });
  return store == spec.stores.end() ? nullptr : &*store;
}

std::string UrlIn(const ObjectStore& store, const std::string& path) {
  std::string url = store.url;
  while (url.ends_with('/')) url.pop_back();
  return path == "." ? url : url + "/" + path;
}

std::string AddressInStore(const JobSpec& spec) {
  const ObjectStore* const store = FindStore(spec, spec.output.store);
  if (store == nullptr) return "";
  const std::string url = UrlIn(*store, spec.output.to.path);
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

std::string LogPlace(const JobSpec& spec) {
  const Logs& logs = spec.logs;
  if (logs.store.empty()) return logs.to.volume + "/" + logs.to.path;
  const ObjectStore* const store = FindStore(spec, logs.store);
  return store == nullptr ? "" : UrlIn(*store, logs.to.path);
}

}  // namespace parallelrun::api
