// Message authentication, for tokens derived from one secret. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun {

// HMAC-SHA256 of `text` as 64 lower-case hex digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// Equality in a time that does not tell where two texts of one length differ.
bool SecureEqual(std::string_view a, std::string_view b);

}  // namespace parallelrun
