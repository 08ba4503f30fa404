// The version of an object on a server: its ETag, a NUL, and its size as u64. The size is in it
// since there are servers that give all objects one ETag. Plans of earlier releases have the ETag
// alone. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/http/message.h"
#include "store/store.h"

namespace parallelrun::store {

// Bytes of the longest ETag that a version has room for.
inline constexpr size_t kMostEtag = Version::kMost - 1 - sizeof(uint64_t);

// The version of an object that was not there when somebody named it: no ETag that one has, and it
// tells no size. Whatever is there later is that object.
inline constexpr std::string_view kNoObject = "not there";

// `etag` has no NUL, as no header has, and at most kMostEtag bytes.
Version VersionOf(std::string_view etag, uint64_t size);

struct SizeAndEtag {
  uint64_t size = 0;
  std::string etag;  // without its quotes (PlainEtag)
};

// What the answer to a HEAD says of an object, for VersionOf. kInvalid where it lacks one of them;
// `place`: the object's, for the message.
Result<SizeAndEtag> ReadSizeAndEtag(const HttpResponse& answer, const std::string& place);

// Nothing of one without it.
std::optional<uint64_t> SizeOf(const Version& version);
// Of one with or without a size.
std::string_view EtagOf(const Version& version);
// What a pin says, where it says both or something was found.
std::optional<Found> PinnedObject(const Pin& pin, const std::optional<Found>& now);
// The same without its size.
Version WithoutSize(const Version& version);

// How two of them differ: "had ETag a, has b", or "had 8 bytes, has 9".
std::string DifferenceOfObjects(const Version& was, const Version& is);

}  // namespace parallelrun::store
