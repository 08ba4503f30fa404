// Message authentication, for tokens derived from one secret and for signed requests. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun {

// HMAC-SHA256 of `text`, 32 bytes as they are: the key of the next HMAC where one is derived from
// another.
std::string HmacSha256(std::string_view key, std::string_view text);

// The same as 64 lower-case hex digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

// SHA-256 of `text` as 64 lower-case hex digits.
std::string Sha256Hex(std::string_view text);

// Equality in a time that does not tell where two texts of one length differ.
bool SecureEqual(std::string_view a, std::string_view b);

}  // namespace parallelrun
