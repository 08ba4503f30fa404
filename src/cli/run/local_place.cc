#include "cli/run/local_place.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "api/text.h"

namespace parallelrun::cli {

Status MustBePath(const std::string& told, const std::string& word, const std::string& instead) {
  const std::string_view scheme = api::SchemeOf(word);
  if (scheme.empty()) return {};
  if (scheme == "file") {
    return Error{Code::kInvalid, told + " is a URL: write the path without file://"};
  }
  return Error{Code::kInvalid, fmt::format("{} is a URL ({}://...): {}", told, scheme, instead)};
}

}  // namespace parallelrun::cli
