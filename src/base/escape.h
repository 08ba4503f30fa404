// Making untrusted text (file names, messages of user code, what peers sent) safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parallelrun {

// `user_text` for a terminal, a log line or a message: one line of valid UTF-8 without control
// characters. Control bytes become \n, \r, \t or \xNN; bytes that are not UTF-8 become \xNN; C1
// controls, line separators and marks that change the writing direction become \uNNNN. Nothing is
// lost but the difference to text that was spelt like an escape. The result is cut after `limit`
// bytes, never within a character or escape, and then ends in "...".
std::string Printable(std::string_view user_text, size_t limit);

// `bytes` as a text of JSON, its quotes included. A byte that is not UTF-8 becomes \udcXX, as
// Python's surrogateescape spells it, so that equal texts are equal bytes.
std::string JsonText(std::string_view bytes);

// The front of `text`, at most `limit` bytes, never a part of a character of UTF-8.
std::string_view Front(std::string_view text, size_t limit);

}  // namespace parallelrun
