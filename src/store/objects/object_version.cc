#include "store/objects/object_version.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/bytes.h"
#include "base/escape.h"
#include "store/objects/refusal.h"

namespace parallelrun::store {

Version VersionOf(std::string_view etag, uint64_t size) {
  std::string bytes(etag);
  bytes += '\0';
  Encoder(bytes).U64(size);
  return Version(std::move(bytes));
}

Result<SizeAndEtag> ReadSizeAndEtag(const HttpResponse& answer, const std::string& place) {
  const std::string_view length = answer.Header("Content-Length");
  SizeAndEtag read;
  const char* end = length.data() + length.size();
  const auto [stopped, error] = std::from_chars(length.data(), end, read.size);
  read.etag = PlainEtag(answer.Header("ETag"));
  const bool usable = !read.etag.empty() && read.etag.size() <= kMostEtag;
  if (error == std::errc() && stopped == end && usable) return read;
  return Error{Code::kInvalid, place +
                                   ": the server tells no size or no ETag, without which nobody "
                                   "knows whether an object was changed"};
}

std::optional<uint64_t> SizeOf(const Version& version) {
  const size_t end = EtagOf(version).size();
  if (end == version.bytes().size()) return std::nullopt;
  Decoder from(version.bytes().substr(end + 1));
  const uint64_t size = from.U64();
  return from.ok() ? std::optional(size) : std::nullopt;
}

std::string_view EtagOf(const Version& version) {
  return version.bytes().substr(0, std::min(version.bytes().find('\0'), version.bytes().size()));
}

std::optional<Found> PinnedObject(const Pin& pin, const std::optional<Found>& now) {
  const bool all = pin.size && !pin.etag.empty();
  if (pin == Pin() || (!all && !now)) return now;
  const uint64_t size = pin.size ? *pin.size : now->size;
  return Found{size, VersionOf(pin.etag.empty() ? EtagOf(now->version) : pin.etag, size)};
}

Version WithoutSize(const Version& version) { return Version(std::string(EtagOf(version))); }

std::string DifferenceOfObjects(const Version& was, const Version& is) {
  const std::optional<uint64_t> before = SizeOf(was);
  const std::optional<uint64_t> now = SizeOf(is);
  if (EtagOf(was) == EtagOf(is) && before && now) {
    return fmt::format("had {} bytes, has {}", *before, *now);
  }
  return fmt::format("had ETag {}, has {}", Printable(EtagOf(was), kShown),
                     Printable(EtagOf(is), kShown));
}

}  // namespace parallelrun::store
