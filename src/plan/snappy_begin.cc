#include "plan/snappy_begin.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace parallelrun::plan {
namespace {

// Takes a little-endian number of so many bytes off the front.
std::optional<size_t> TakeNumber(std::string_view& block, size_t bytes) {
  if (block.size() < bytes) return std::nullopt;
  size_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= size_t{static_cast<uint8_t>(block[i])} << (8 * i);
  block.remove_prefix(bytes);
  return number;
}

// Bytes that stand there as they are. False: no more come.
bool TakeLiteral(std::string_view& block, size_t tag, size_t most, std::string& out) {
  size_t length = tag >> 2;
  if (length >= 60) {
    const auto number = TakeNumber(block, length - 59);
    if (!number) return false;
    length = *number;
  }
  const size_t there = std::min(length + 1, block.size());
  out += block.substr(0, std::min(there, most - out.size()));
  block.remove_prefix(there);
  return there == length + 1;
}

// Bytes of before, again. False: no more come.
bool TakeCopy(std::string_view& block, size_t tag, size_t most, std::string& out) {
  const size_t kind = tag & 3;
  const size_t length = kind == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
  const auto number = TakeNumber(block, kind == 3 ? 4 : kind);
  if (!number) return false;
  const size_t offset = kind == 1 ? (tag >> 5) << 8 | *number : *number;
  if (offset == 0 || offset > out.size()) return false;
  for (size_t i = 0; i < length && out.size() < most; ++i) out += out[out.size() - offset];
  return true;
}

}  // namespace

std::string SnappyBegin(std::string_view block, size_t most) {
  std::string out;
  // In front stands the length of it all, in groups of seven bits.
  while (!block.empty() && (block.front() & 0x80) != 0) block.remove_prefix(1);
  if (!block.empty()) block.remove_prefix(1);
  bool more = true;
  while (more && out.size() < most && !block.empty()) {
    const size_t tag = static_cast<uint8_t>(block.front());
    block.remove_prefix(1);
    more = (tag & 3) == 0 ? TakeLiteral(block, tag, most, out) : TakeCopy(block, tag, most, out);
  }
  return out;
}

}  // namespace parallelrun::plan
