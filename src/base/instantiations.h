// Templates that many sources use and that take long to compile: compiled once, in
// instantiations.cc. No source includes this: the precompiled headers do (../CMakeLists.txt), and
// without it a source compiles its own copies, slower and to the same effect.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <string>

namespace parallelrun {
// What json::parse reads a std::string through, and what a std::string_view.
using StringInput = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using ViewInput = nlohmann::detail::iterator_input_adapter<const char*>;
}  // namespace parallelrun

// What formats every line that is logged, and fmt::format_to.
extern template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                                   fmt::format_args, fmt::detail::locale_ref);

// What json::parse and json::dump do.
extern template class nlohmann::detail::lexer<nlohmann::json, parallelrun::StringInput>;
extern template class nlohmann::detail::lexer<nlohmann::json, parallelrun::ViewInput>;
extern template class nlohmann::detail::parser<nlohmann::json, parallelrun::StringInput>;
extern template class nlohmann::detail::parser<nlohmann::json, parallelrun::ViewInput>;
extern template class nlohmann::detail::serializer<nlohmann::json>;
