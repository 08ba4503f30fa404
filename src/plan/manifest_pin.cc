#include "plan/manifest_pin.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/base64.h"
#include "base/json.h"

namespace parallelrun::plan {

std::string PinOf(const store::Version& manifest) {
  return nlohmann::json{{"manifest", EncodeBase64(manifest.bytes())}}.dump();
}

Result<store::Version> ManifestIn(std::string_view pin) {
  const nlohmann::json read = ParseJson(pin).value_or(nullptr);
  const std::optional<std::string> bytes = DecodeBase64(lenient::Text(read, "manifest"));
  if (bytes && !bytes->empty() && bytes->size() <= store::Version::kMost) {
    return store::Version(*bytes);
  }
  return Error{Code::kCorrupt, "what the ledger says of a manifest cannot be read"};
}

}  // namespace parallelrun::plan
