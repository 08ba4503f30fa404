// Bytes and numbers as hexadecimal digits. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace parallelrun {

// Two digits a byte, in lower case.
std::string Hex(std::string_view bytes);
std::string Hex(std::span<const uint8_t> bytes);

// Of 1 to 16 digits, in lower or upper case, and nothing beside them; else nullopt.
std::optional<uint64_t> ParseHex(std::string_view digits);

}  // namespace parallelrun
