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

// How many bytes of it messages show: enough to know it by, and no peer can make a message so long
// that nobody reads it.
inline constexpr size_t kShownShort = 200;     // a word of the user's, or a part of a longer text
inline constexpr size_t kShown = 300;          // a name, a key, a URL, what a library said
inline constexpr size_t kShownLong = 500;      // a path, or what a server said
inline constexpr size_t kShownLongest = 1000;  // a whole error, which nothing else tells

// `bytes` as a text of JSON, its quotes included. A byte that is not UTF-8 becomes \udcXX, as
// Python's surrogateescape spells it, so that equal texts are equal bytes.
std::string JsonText(std::string_view bytes);

// The front of `text`, at most `limit` bytes, never a part of a character of UTF-8.
std::string_view Front(std::string_view text, size_t limit);

}  // namespace parallelrun
