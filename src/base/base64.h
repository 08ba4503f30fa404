// Base64 with padding (RFC 4648), as in Secrets and kubeconfigs. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace parallelrun {

std::string EncodeBase64(std::string_view bytes);
// Line breaks and blanks are passed over; nothing for what is not base64.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace parallelrun
