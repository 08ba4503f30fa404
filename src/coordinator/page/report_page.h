// A page with all that it shows in it: one file that asks for nothing. Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace parallelrun::coordinator {

// HTML in UTF-8. Whatever `data` holds is data to it: it ends no element and is no markup.
std::string ReportPage(const nlohmann::json& data);

// JSON that may stand in a script element: ASCII, and without "<", ">" and "&".
std::string JsonForHtml(const nlohmann::json& data);

// The source of a Content-Security-Policy that allows this text alone: "'sha256-…'".
std::string HashSource(std::string_view text);

}  // namespace parallelrun::coordinator
