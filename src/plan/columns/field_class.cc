#include "plan/columns/field_class.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "plan/columns/missing_forms.h"

namespace parallelrun::plan {
namespace {

// Of pandas 3; the older ones have all but None.
constexpr std::array<std::string_view, 19> kDefaultMissing = {
    "",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null"};

constexpr int64_t kMostExactDouble = int64_t{1} << 53;
constexpr int64_t kMostExponent = 308;  // of a decimal number that a double may hold

bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSign(char c) { return c == '+' || c == '-'; }

// `word` is in lower case.
bool IsWord(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) {
           return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
         });
}

std::string_view TakeDigits(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(digits.size());
  return digits;
}

bool Take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// A number by its parts; all of them views into the text.
struct Decimal {
  char sign = 0;
  std::string_view whole;
  std::string_view fraction;
  std::string_view exponent;  // with its sign, if it has one
  bool point = false;
};

bool Parse(std::string_view text, Decimal& number) {
  if (!text.empty() && IsSign(text.front())) {
    number.sign = text.front();
    text.remove_prefix(1);
  }
  number.whole = TakeDigits(text);
  number.point = Take(text, '.');
  if (number.point) number.fraction = TakeDigits(text);
  if (number.whole.empty() && number.fraction.empty()) return false;
  if (text.empty()) return true;
  if (!Take(text, 'e') && !Take(text, 'E')) return false;
  number.exponent = text;
  if (!text.empty() && IsSign(text.front())) text.remove_prefix(1);
  return !TakeDigits(text).empty() && text.empty();
}

FieldBits ClassOfInteger(const Decimal& number) {
  if (number.sign == '+') return field::kPlus;
  constexpr size_t kMostDigits = 19;
  constexpr uint64_t kMost = uint64_t{1} << 63;  // the magnitude of the least
  if (number.whole.size() > kMostDigits) return field::kBeyond;
  uint64_t magnitude = 0;
  for (const char c : number.whole) magnitude = magnitude * 10 + static_cast<uint64_t>(c - '0');
  if (magnitude > (number.sign == '-' ? kMost : kMost - 1)) return field::kBeyond;
  return magnitude > kMostExactDouble ? field::kBig : field::kInteger;
}

// Whether the value, with an exponent of at most 308, is too large for a double. `text` is the
// whole number without blanks and sign.
bool IsInfinite(const Decimal& number, std::string_view text, int64_t exponent) {
  const auto first = [](std::string_view digits) { return digits.find_first_not_of('0'); };
  int64_t place = 0;  // the power of ten of its first digit
  if (const size_t at = first(number.whole); at != std::string_view::npos) {
    place = static_cast<int64_t>(number.whole.size() - at) - 1;
  } else if (const size_t behind = first(number.fraction); behind != std::string_view::npos) {
    place = -static_cast<int64_t>(behind) - 1;
  } else {
    return false;
  }
  if (place + exponent != kMostExponent) return place + exponent > kMostExponent;
  double value = 0;  // from_chars says out of range for tiny values too, which are not here
  return std::from_chars(text.data(), text.data() + text.size(), value).ec ==
         std::errc::result_out_of_range;
}

FieldBits ClassOfFraction(const Decimal& number, std::string_view text) {
  int64_t exponent = 0;
  if (!number.exponent.empty()) {
    constexpr size_t kMostDigits = 3;
    constexpr size_t kMostNegativeDigits = 4;
    std::string_view digits = number.exponent;
    const bool negative = digits.front() == '-';
    if (IsSign(digits.front())) digits.remove_prefix(1);
    digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
    if (negative && digits.size() > kMostNegativeDigits) return field::kOddExponent;
    if (negative || digits.size() <= kMostDigits) {
      std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    }
    if (!negative && (digits.size() > kMostDigits || exponent > kMostExponent)) {
      const auto zeros = [](std::string_view part) {
        return part.find_first_not_of('0') == std::string_view::npos;
      };
      return zeros(number.whole) && zeros(number.fraction) ? field::kOddExponent : field::kNoDouble;
    }
    if (negative) exponent = -exponent;
  }
  if (number.sign != 0) text.remove_prefix(1);
  return IsInfinite(number, text, exponent) ? field::kNoDouble : field::kFraction;
}

// What most numbers are, "-12" and "3.50": so few digits that neither int64 nor a double is full,
// and nothing in front of them that would be lost. 0: it is something else, or has to be looked at.
FieldBits ClassOfPlain(std::string_view text) {
  constexpr size_t kFewDigits = 15;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at != end && *at == '-') ++at;
  const char* const whole = at;
  while (at != end && IsDigit(*at)) ++at;
  const auto digits = static_cast<size_t>(at - whole);
  if (digits == 0 || digits > kFewDigits || (*whole == '0' && digits > 1)) return 0;
  if (at == end) return field::kInteger;
  if (*at != '.') return 0;
  do ++at;
  while (at != end && IsDigit(*at));
  return at == end ? field::kFraction : FieldBits{0};
}

}  // namespace

MissingWords::MissingWords(const std::vector<std::string>& words, bool defaults) {
  if (defaults) {
    for (const std::string_view word : kDefaultMissing) given_.emplace_back(word);
  }
  for (const std::string& word : words) {
    if (std::find(given_.begin(), given_.end(), word) == given_.end()) given_.push_back(word);
  }
  for (const std::string& word : given_) Add(word);
  for (const std::string& word : words) {
    for (std::string& form : OtherFormsOf(word)) Add(std::move(form));
  }
}

void MissingWords::Add(std::string word) {
  if (word.empty()) {
    empty_ = true;
    return;
  }
  lengths_[static_cast<unsigned char>(word.front())] |= BitOfLength(word);
  if (std::find(words_.begin(), words_.end(), word) == words_.end()) {
    words_.push_back(std::move(word));
  }
}

bool MissingWords::IsAmong(std::string_view text) const {
  return std::find(words_.begin(), words_.end(), text) != words_.end();
}

FieldBits Classify(std::string_view text, const MissingWords& missing) {
  if (missing.Has(text)) return field::kMissing;
  if (const FieldBits plain = ClassOfPlain(text); plain != 0) return plain;
  // Words are most of what is no number: they are known by their first letter.
  const char first = text.empty() ? '\0' : text.front();
  const bool may_be_number = IsDigit(first) || IsSign(first) || first == '.' || IsBlank(first);
  if (!may_be_number) {
    if (IsWord(text, "true") || IsWord(text, "false")) return field::kBoolean;
    return IsWord(text, "inf") || IsWord(text, "infinity") ? field::kFraction : field::kWord;
  }
  if (IsSign(first)) {
    const std::string_view word = text.substr(1);
    if (IsWord(word, "inf") || IsWord(word, "infinity")) return field::kFraction;
  }
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  Decimal number;
  if (!Parse(text, number)) return field::kWord;
  if (number.whole.size() > 1 && number.whole.front() == '0') return field::kLeadingZero;
  if (!number.point && number.exponent.empty()) return ClassOfInteger(number);
  return ClassOfFraction(number, text);
}

}  // namespace parallelrun::plan
