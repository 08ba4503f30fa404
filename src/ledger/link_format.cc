#include "ledger/link_format.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <cassert>
#include <charconv>
#include <cstring>

#include "base/bytes.h"

namespace parallelrun::ledger {
namespace {

constexpr size_t kChecksummedLinkHeader = kLinkHeaderSize - 8;

Error NoLink(const char* why) { return {Code::kCorrupt, fmt::format("this is no link: {}", why)}; }

}  // namespace

void WriteLinkHeader(const LinkHeader& header, std::string& link) {
  assert(link.size() >= kLinkHeaderSize);
  const std::string_view content = std::string_view(link).substr(kLinkHeaderSize);
  std::string bytes = EncodeLogHeader(header.log);
  Encoder to(bytes);
  to.U32(static_cast<uint32_t>(header.kind));
  to.U32(header.records);
  to.U32(static_cast<uint32_t>(content.size()));
  to.U32(0);
  to.U64(header.number);
  to.U64(header.first);
  to.U64(header.offset);
  to.U64(header.digest);
  to.U64(XXH3_64bits(content.data(), content.size()));
  assert(bytes.size() == kChecksummedLinkHeader);
  to.U64(XXH3_64bits(bytes.data(), bytes.size()));
  std::memcpy(link.data(), bytes.data(), bytes.size());
}

Result<LinkHeader> DecodeLinkHeader(std::string_view bytes) {
  if (bytes.size() < kLinkHeaderSize) return NoLink("it is shorter than a link's header");
  // First: in a later format only these bytes have their places.
  const Result<LogHeader> log = DecodeLogHeader(bytes);
  if (!log.ok()) return log.error();
  Decoder from(bytes.substr(kLogHeaderSize, kLinkHeaderSize - kLogHeaderSize));
  LinkHeader header;
  header.log = *log;
  header.kind = LinkKind{from.U32()};
  header.records = from.U32();
  header.length = from.U32();
  from.U32();
  header.number = from.U64();
  header.first = from.U64();
  header.offset = from.U64();
  header.digest = from.U64();
  header.content = from.U64();
  header.checksum = from.U64();
  if (header.checksum != XXH3_64bits(bytes.data(), kChecksummedLinkHeader)) {
    return NoLink("its header is damaged");
  }
  if (header.kind != LinkKind::kClaim && header.kind != LinkKind::kRecords) {
    return NoLink("its kind is not known");
  }
  return header;
}

Result<Link> DecodeLink(std::string_view bytes) {
  const Result<LinkHeader> header = DecodeLinkHeader(bytes);
  if (!header.ok()) return header.error();
  const std::string_view content = bytes.substr(kLinkHeaderSize);
  if (content.size() != header->length ||
      XXH3_64bits(content.data(), content.size()) != header->content) {
    return NoLink("what it holds is damaged");
  }
  return Link{*header, content};
}

std::string LinkName(uint64_t number) { return fmt::format("{:08}", number); }

std::optional<uint64_t> NumberOfLink(std::string_view name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number == 0 || number > kMostLinks || name != LinkName(number)) {
    return std::nullopt;
  }
  return number;
}

}  // namespace parallelrun::ledger
