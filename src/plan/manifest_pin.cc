#include "plan/manifest_pin.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/json.h"

namespace parallelrun::plan {

std::string PinOf(const PinnedManifest& manifest) {
  nlohmann::json pin{{"manifest", EncodeBase64(manifest.version.bytes())}};
  if (manifest.items_before > 0) pin["itemsBefore"] = manifest.items_before;
  return pin.dump();
}

Result<PinnedManifest> ManifestIn(std::string_view pin) {
  const nlohmann::json read = ParseJson(pin).value_or(nullptr);
  const std::optional<std::string> bytes = DecodeBase64(lenient::Text(read, "manifest"));
  if (bytes && !bytes->empty() && bytes->size() <= store::Version::kMost) {
    return PinnedManifest{store::Version(*bytes), lenient::Unsigned(read, "itemsBefore")};
  }
  return Error{Code::kCorrupt, "what the ledger says of a manifest cannot be read"};
}

Status KeepManifest(std::string_view pin, PlanManifest& manifest) {
  Result<PinnedManifest> pinned = ManifestIn(pin);
  if (!pinned.ok()) return pinned.error();
  manifest.planned = std::move(pinned->version);
  manifest.items_before = pinned->items_before;
  return {};
}

}  // namespace parallelrun::plan
