#include "operator/plan/missing_key.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "base/json.h"
#include "operator/builders/objects.h"

namespace parallelrun::operators {
namespace {

constexpr std::string_view kAdd = "add it there, and the job goes on by itself";

// What follows `before`, up to `end`; "" if that is not there.
std::string After(const std::string& text, std::string_view before, std::string_view end) {
  const size_t at = text.find(before);
  if (at == std::string::npos) return "";
  const size_t begin = at + before.size();
  return text.substr(begin, text.find_first_of(end, begin) - begin);
}

std::string OfStore(const api::ObjectStore& store, const std::string& key) {
  const api::StoreCredentials& keys = store.credentials;
  const char* const field = key == keys.access_key_id       ? "accessKeyId"
                            : key == keys.secret_access_key ? "secretAccessKey"
                                                            : "sessionToken";
  return fmt::format(
      "Secret {} of spec.stores: {} has no key {}: {}; where it has another name there, a new job "
      "says so in stores[].credentials.{}",
      keys.secret_name, store.name, key, kAdd, field);
}

std::string OfVolume(const api::Volume& volume, const std::string& key) {
  const bool secret = volume.kind == "secret";
  if (!secret && volume.kind != "configMap") return "";
  return fmt::format("{} {} of spec.volumes: {} has no key {}: {}", secret ? "Secret" : "ConfigMap",
                     lenient::Text(volume.source, secret ? "secretName" : "name"), volume.name, key,
                     kAdd);
}

}  // namespace

std::string MissingKey(const api::JobSpec& spec, const std::string& message) {
  const std::string name = After(message, "for volume \"", "\"");
  std::string key = After(message, "references non-existent secret key: ", " ");
  if (key.empty()) key = After(message, "references non-existent config key: ", " ");
  if (name.empty() || key.empty()) return "";
  for (size_t i = 0; i < spec.stores.size(); ++i) {
    if (name == StoreKeysVolume(i)) return OfStore(spec.stores[i], key);
  }
  for (const api::Volume& volume : spec.volumes) {
    if (name == volume.name) return OfVolume(volume, key);
  }
  return "";
}

}  // namespace parallelrun::operators
