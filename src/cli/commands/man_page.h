// The manual page, made of the words that the help is made of. Pure.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
}

namespace parallelrun::cli {

// For man(1), in roff. The same words and version give the same text.
std::string ManPage(const CLI::App& app, const std::string& version);

}  // namespace parallelrun::cli
