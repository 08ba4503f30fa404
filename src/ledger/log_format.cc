#include "ledger/log_format.h"

#define XXH_STATIC_LINKING_ONLY  // the streaming state, on the stack
#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <charconv>
#include <cstring>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/version.h"

namespace parallelrun::ledger {
namespace {

constexpr std::string_view kMagic = "PRLEDGER";
constexpr size_t kVersionSize = 24;
constexpr size_t kChecksummedHeader = kLogHeaderSize - 8;
constexpr size_t kGroupHeadSize = 16;  // of a group: what its checksum covers before the payload
constexpr std::string_view kLogSuffix = ".log";

// Whoever wrote the log says in it who can read it. Its text is as little to be trusted as any.
Error UnknownFormat(uint32_t format, std::string_view version) {
  version = version.substr(0, version.find('\0'));
  const std::string writer =
      version.empty() ? "the version of parallelrun that wrote it"
                      : "parallelrun " + Printable(version, kVersionSize) + ", which wrote it,";
  return {Code::kInvalid,
          fmt::format("the ledger has format {}, and this program ({}) reads formats {} to {}: use "
                      "{} or a later one",
                      format, kVersion, kOldestLogFormat, kLogFormat, writer)};
}

}  // namespace

std::string EncodeLogHeader(const LogHeader& header) {
  std::string bytes;
  Encoder to(bytes);
  to.Bytes(kMagic);
  to.U32(kLogFormat);
  to.U32(header.epoch);
  to.U64(header.run_id);
  to.U64(header.nonce);
  to.Bytes(std::string_view(kVersion).substr(0, kVersionSize));
  bytes.resize(kChecksummedHeader, '\0');
  to.U64(XXH3_64bits(bytes.data(), bytes.size()));
  return bytes;
}

Result<LogHeader> DecodeLogHeader(std::string_view bytes) {
  Decoder from(bytes);
  const std::string_view magic = from.Bytes(kMagic.size());
  const uint32_t format = from.U32();
  LogHeader header;
  header.epoch = from.U32();
  header.run_id = from.U64();
  header.nonce = from.U64();
  const std::string_view version = from.Bytes(kVersionSize);
  const uint64_t checksum = from.U64();
  if (!from.ok() || magic != kMagic || checksum != XXH3_64bits(bytes.data(), kChecksummedHeader)) {
    return Error{Code::kCorrupt, "this is not the header of a ledger's log"};
  }
  if (format < kOldestLogFormat || format > kLogFormat) return UnknownFormat(format, version);
  return header;
}

GroupHeader DecodeGroupHeader(std::string_view bytes) {
  Decoder from(bytes);
  GroupHeader header;
  header.length = from.U32();
  header.records = from.U32();
  header.synced = from.U64();
  header.checksum = from.U64();
  return header;
}

uint64_t GroupChecksum(const LogHeader& log, uint64_t offset, std::string_view head,
                       std::string_view payload) {
  const uint64_t place = (uint64_t{log.epoch} << 40) + offset;
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset_withSeed(&state, log.run_id ^ place);
  XXH3_64bits_update(&state, head.data(), head.size());
  XXH3_64bits_update(&state, payload.data(), payload.size());
  return XXH3_64bits_digest(&state);
}

void WriteGroupHeader(const LogHeader& log, uint64_t offset, uint32_t records, uint64_t synced,
                      char* group, size_t size) {
  std::string header;
  Encoder to(header);
  to.U32(static_cast<uint32_t>(size - kGroupHeaderSize));
  to.U32(records);
  to.U64(synced);
  to.U64(GroupChecksum(log, offset, std::string_view(header.data(), kGroupHeadSize),
                       std::string_view(group + kGroupHeaderSize, size - kGroupHeaderSize)));
  std::memcpy(group, header.data(), header.size());
}

uint64_t ExtendDigest(uint64_t digest, uint64_t group_checksum) {
  const uint64_t both[] = {digest, group_checksum};
  return XXH3_64bits(both, sizeof(both));
}

std::string LogName(uint32_t epoch) { return fmt::format("{:06}{}", epoch, kLogSuffix); }

std::optional<uint32_t> EpochOfLogName(std::string_view name) {
  uint32_t epoch = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), epoch);
  if (error != std::errc() || epoch == 0 || name != LogName(epoch)) return std::nullopt;
  return epoch;
}

}  // namespace parallelrun::ledger
