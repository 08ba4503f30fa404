// What a node asks its coordinator about side files that go to a store (docs/coordinator-api.md,
// "POST /v1/nodes/<i>/side-files"): uploads to be begun, and URLs by which it sends their parts,
// since no node has the keys. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/ids.h"

namespace parallelrun::job {

// So few parts that a store takes them, of which none but the last is below 5 MiB.
inline constexpr uint64_t kLeastSidePart = uint64_t{16} << 20;
inline constexpr uint64_t kMostSideParts = 9900;
inline constexpr uint64_t kMostSideFileBytes = kMostSideParts * (uint64_t{5} << 30);
// Of each part but the last, which is never empty but in an empty file.
uint64_t SidePartBytes(uint64_t file_bytes);
// At least one.
uint32_t SidePartsOf(uint64_t file_bytes);

struct SideUploadWanted {
  std::string name;  // relative to the output folder
  uint64_t bytes = 0;
  std::array<uint8_t, 32> sha256{};
  // That of an earlier answer, whose URLs have ended or were too few; "": it is to be begun.
  std::string upload = {};
  uint32_t part = 1;  // the first that a URL is wanted for
};
struct SideUploadsWanted {
  BatchId mini_batch = 0;
  std::vector<SideUploadWanted> files;
};
inline constexpr size_t kMostSideUploads = 100;
inline constexpr uint32_t kMostPartUrls = 16;  // of a file in an answer

struct SideUpload {
  std::string id;
  std::vector<std::string> urls;  // of parts one behind the other, at least one
};
// Secrets.
struct SideUploads {
  uint32_t seconds = 0;           // that the URLs are good for, from now on
  std::vector<SideUpload> files;  // in the order of the call
};

// Of the call and of its answer. Parse: kInvalid, in words that have nothing of the text.
std::string SideUploadsWantedText(const SideUploadsWanted& wanted);
Result<SideUploadsWanted> ParseSideUploadsWanted(std::string_view text);
std::string SideUploadsText(const SideUploads& uploads);
Result<SideUploads> ParseSideUploads(std::string_view text);

}  // namespace parallelrun::job
