#include "base/instantiations.h"

template void fmt::detail::vformat_to<char>(fmt::detail::buffer<char>&, fmt::string_view,
                                            fmt::format_args, fmt::detail::locale_ref);

template class nlohmann::detail::lexer<nlohmann::json, parallelrun::StringInput>;
template class nlohmann::detail::lexer<nlohmann::json, parallelrun::ViewInput>;
template class nlohmann::detail::parser<nlohmann::json, parallelrun::StringInput>;
template class nlohmann::detail::parser<nlohmann::json, parallelrun::ViewInput>;
template class nlohmann::detail::serializer<nlohmann::json>;
