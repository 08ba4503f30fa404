// Paths and queries of URLs, taken apart and put together. Pure functions over untrusted text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun {

// "%41" becomes "A"; nullopt when a "%" is not followed by two hex digits.
std::optional<std::string> PercentDecode(std::string_view text);

// The reverse: everything but letters, digits and "-._~" is encoded.
std::string PercentEncode(std::string_view text);

// "/a b//c" becomes "/a%20b//c": the name of what lies in folders, as a part of a path.
std::string PercentEncodeSegments(std::string_view path);

// As HTML forms and queries have it: "+" is a space too.
std::optional<std::string> FormDecode(std::string_view text);

// The decoded value of the first parameter called `name` in "a=1&b=2" ("+" is a space); "" if it
// has no "=". nullopt if it is not there or not decodable.
std::optional<std::string> QueryParameter(std::string_view query, std::string_view name);

// "/v1/logs/a%20b" becomes {"v1", "logs", "a b"}; "/" becomes {}. kInvalid for anything that could
// mean another place once it is joined to a path: an empty segment, ".", "..", and "/" or NUL
// inside a decoded segment.
Result<std::vector<std::string>> PathSegments(std::string_view path);

}  // namespace parallelrun
