#include "kube/resource.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/http/target.h"
#include "base/json.h"

namespace parallelrun::kube {

std::string Resource::Name() const { return group.empty() ? plural : plural + "." + group; }

std::string ObjectName::Key() const { return name_space.empty() ? name : name_space + "/" + name; }

ObjectName ParseKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {"", std::string(key)};
  return {std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

ObjectName NameOf(const nlohmann::json& object) {
  return {TextAt(object, "/metadata/namespace"), TextAt(object, "/metadata/name")};
}

std::string ResourcePath(const Resource& resource, const ObjectName& object,
                         std::string_view subresource) {
  std::string path =
      resource.group.empty() ? "/api/" : "/apis/" + PercentEncode(resource.group) + "/";
  path += PercentEncode(resource.version);
  if (resource.namespaced && !object.name_space.empty()) {
    path += "/namespaces/" + PercentEncode(object.name_space);
  }
  path += "/" + PercentEncode(resource.plural);
  if (!object.name.empty()) path += "/" + PercentEncode(object.name);
  if (!subresource.empty()) path += "/" + PercentEncode(subresource);
  return path;
}

std::optional<uint64_t> ParseResourceVersion(std::string_view text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> ResourceVersionOf(const nlohmann::json& object) {
  return ParseResourceVersion(TextAt(object, "/metadata/resourceVersion"));
}

const nlohmann::json* ControllerOf(const nlohmann::json& object) {
  for (const nlohmann::json& owner :
       lenient::List(lenient::At(object, "metadata"), "ownerReferences")) {
    if (lenient::Boolean(owner, "controller")) return &owner;
  }
  return nullptr;
}

std::string TextAt(const nlohmann::json& object, const char* path) {
  const nlohmann::json& value = lenient::AtPath(object, path);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace parallelrun::kube
