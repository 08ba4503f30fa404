// Small questions about text that the readers of a job file ask. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::api {

// Of ASCII, in whatever locale.
inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsUtf8(std::string_view text);

// Characters, not bytes, as the API server counts them for maxLength.
size_t Utf8Length(std::string_view text);

// JSON writes characters above U+FFFF as two escapes (\ud83d\ude00), which YAML does not know:
// each such pair is replaced by the character. Everything else stays.
std::string JoinSurrogates(std::string_view text);

// Bytes of what stands between the columns of a table.
inline constexpr size_t kMostDelimiter = 8;

// Whether it may: 1 to so many bytes of UTF-8, without a quotation mark, a line break and a NUL.
bool IsDelimiter(std::string_view text);

// Lower case without "_", "-" and spaces: what two spellings of one name have in common.
std::string Squashed(std::string_view name);

// Without the spaces at both ends. A view of `text`.
std::string_view Trim(std::string_view text);

// Insertions, removals, replacements and swaps of neighbours that turn `a` into `b`, in bytes.
size_t EditDistance(std::string_view a, std::string_view b);

// The known name that `name` is most likely meant to be, or "".
std::string ClosestName(std::string_view name, const std::vector<std::string>& known);

// "a, b or c".
std::string OrList(const std::vector<std::string>& words);

// ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$, at most 63.
bool IsDnsLabel(std::string_view name);

// "s3" of "s3://bucket/x": the scheme of what is meant as a URL; "" of what can be a path.
std::string_view SchemeOf(std::string_view text);

// What may be the value of a label: nothing, or at most 63 letters, digits, "-", "_" and ".", the
// first and the last a letter or digit.
bool IsLabelValue(std::string_view text);

// What may name a label: what may be a value and is not empty, maybe behind "DOMAIN/".
bool IsLabelName(std::string_view name);

}  // namespace parallelrun::api
