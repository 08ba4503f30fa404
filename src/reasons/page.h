// docs/messages.md: all reasons and exit statuses, as script/messages writes it. Pure.
#pragma once

#include <string>

namespace parallelrun::reasons {

std::string PageText();

}  // namespace parallelrun::reasons
