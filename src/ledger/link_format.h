// The bytes of one link of a ledger in a store (docs/ledger.md, "A ledger in a store"): a header,
// and what it holds. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {

inline constexpr size_t kLinkHeaderSize = kLogHeaderSize + 64;
inline constexpr uint64_t kMostLinks = 99'999'999;  // what a name has digits for

// Stored: never renumber.
enum class LinkKind : uint32_t {
  kClaim = 1,    // an epoch begins; holds its owner's name
  kRecords = 2,  // of the epoch that claimed last
};

struct LinkHeader {
  LogHeader log;  // whose link it is
  LinkKind kind = LinkKind::kRecords;
  uint32_t records = 0;
  uint32_t length = 0;    // of what it holds
  uint64_t number = 0;    // from 1
  uint64_t first = 0;     // the link with which the history begins that this one belongs to
  uint64_t offset = 0;    // of its first byte, over all links from number 1 on
  uint64_t digest = 0;    // of the links in front of it, from `first` on; of that one: the run id
  uint64_t content = 0;   // checksum of what it holds
  uint64_t checksum = 0;  // of all of the above
};

// A whole link. The content points into the bytes it was read from.
struct Link {
  LinkHeader header;
  std::string_view content;

  uint64_t end() const { return header.offset + kLinkHeaderSize + content.size(); }
  // The digest of the links up to this one.
  uint64_t digest() const { return ExtendDigest(header.digest, header.checksum); }
};

// Fills in the header of a link: `link` is room for it, and the content behind that. Length and
// checksums are found here.
void WriteLinkHeader(const LinkHeader& header, std::string& link);

// kCorrupt: `bytes` do not begin with a header; kInvalid: of a format that this program does not
// know, named with the version that wrote it.
Result<LinkHeader> DecodeLinkHeader(std::string_view bytes);
// The same of all its bytes.
Result<Link> DecodeLink(std::string_view bytes);

// "00000001"; nothing for a name that is not the one of a link.
std::string LinkName(uint64_t number);
std::optional<uint64_t> NumberOfLink(std::string_view name);

}  // namespace parallelrun::ledger
