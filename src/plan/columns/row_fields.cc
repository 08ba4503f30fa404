#include "plan/columns/row_fields.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace parallelrun::plan {
namespace {

constexpr size_t kMarkedBlock = 64;

bool EndsLine(char c) { return c == '\n' || c == '\r'; }

}  // namespace

uint64_t CountLineEnds(std::string_view text) {
  auto ends = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  for (size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') ++ends;
  }
  return ends;
}

RowFields::RowFields(RowSyntax format) : format_(format) {
  const auto mark = [this](char c, Mark as) { marks_[static_cast<unsigned char>(c)] = as; };
  mark('\n', Mark::kLineFeed);
  mark('\r', Mark::kReturn);
  mark(format.delimiter.front(), Mark::kDelimiter);
  in_quotes_[static_cast<unsigned char>(format.quote)] = true;
  // A NUL is never one of them: it is what is not set.
  for (const char c : {format.quote, format.comment, format.escape}) {
    if (c != 0) mark(c, Mark::kOther);
  }
  for (size_t c = 0; c < marks_.size(); ++c) {
    if (marks_[c] != Mark::kNone) marked_ += static_cast<char>(c);
  }
  const auto ends_text = [this](char c) {
    in_quotes_[static_cast<unsigned char>(c)] = true;
    only_quotes_ = false;
  };
  if (format.escape != 0) ends_text(format.escape);
  if (format.quoted) return;
  ends_text('\r');
  ends_text('\n');
}

void RowFields::Forget() {
  quiet_begin_ -= std::min(quiet_begin_, used_);
  quiet_end_ -= std::min(quiet_end_, used_);
  used_ = 0;
  block_ = kNoBlock;
}

#if defined(__x86_64__)

// SSE2, which every such processor has.
uint64_t RowFields::MarksIn(const char* block) const {
  const auto* from = reinterpret_cast<const __m128i*>(block);
  const __m128i a = _mm_loadu_si128(from);
  const __m128i b = _mm_loadu_si128(from + 1);
  const __m128i c = _mm_loadu_si128(from + 2);
  const __m128i d = _mm_loadu_si128(from + 3);
  __m128i in_a = _mm_setzero_si128();
  __m128i in_b = in_a;
  __m128i in_c = in_a;
  __m128i in_d = in_a;
  for (const char byte : marked_) {
    const __m128i wanted = _mm_set1_epi8(byte);
    in_a = _mm_or_si128(in_a, _mm_cmpeq_epi8(a, wanted));
    in_b = _mm_or_si128(in_b, _mm_cmpeq_epi8(b, wanted));
    in_c = _mm_or_si128(in_c, _mm_cmpeq_epi8(c, wanted));
    in_d = _mm_or_si128(in_d, _mm_cmpeq_epi8(d, wanted));
  }
  const auto bits = [](__m128i in) {
    return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(in))};
  };
  return bits(in_a) | bits(in_b) << 16 | bits(in_c) << 32 | bits(in_d) << 48;
}

#else

uint64_t RowFields::MarksIn(const char* block) const {
  uint64_t bits = 0;
  for (size_t i = 0; i < kMarkedBlock; ++i) {
    bits |= uint64_t{MarkOf(block[i]) != Mark::kNone} << i;
  }
  return bits;
}

#endif

// Where the first byte from `at` on is that matters within an unquoted field, or the end.
size_t RowFields::NextMark(std::string_view bytes, size_t at) {
  const char* const data = bytes.data();
  while (true) {
    const size_t block = at / kMarkedBlock * kMarkedBlock;
    if (bytes.size() < block + kMarkedBlock) break;
    if (block != block_) {
      marks_in_block_ = MarksIn(data + block);
      block_ = block;
    }
    const uint64_t left = marks_in_block_ >> (at - block);
    if (left != 0) return at + static_cast<size_t>(std::countr_zero(left));
    at = block + kMarkedBlock;
  }
  while (at < bytes.size() && MarkOf(data[at]) == Mark::kNone) ++at;
  return at;
}

// The same within a quoted one.
size_t RowFields::NextInQuotes(std::string_view bytes, size_t at) {
  const bool known = at >= quiet_begin_ && at < quiet_end_;
  size_t end = known ? quiet_end_ : at;
  if (only_quotes_) {
    end = std::min(bytes.find(format_.quote, end), bytes.size());
  } else {
    while (end < bytes.size() && !in_quotes_[static_cast<unsigned char>(bytes[end])]) ++end;
  }
  if (end < bytes.size()) return end;
  if (!known) quiet_begin_ = at;
  quiet_end_ = end;
  return end;
}

std::string& RowFields::Scratch() {
  if (scratch_used_ == scratch_.size()) scratch_.emplace_back();
  std::string& text = scratch_[scratch_used_++];
  text.clear();
  return text;
}

// Lines without a byte, of blanks and tabs only, or that begin with a comment. False when a row may
// begin but is not there.
bool RowFields::PassOver(std::string_view bytes, bool last) {
  size_t at = used_;
  while (true) {
    size_t end = at;
    while (end < bytes.size() && (bytes[end] == ' ' || bytes[end] == '\t') &&
           !Delimits(bytes, end)) {
      ++end;
    }
    if (end == at && end < bytes.size() && IsComment(bytes[end])) {
      end = std::min(bytes.find_first_of("\r\n", end), bytes.size());
    }
    if (end == bytes.size()) {
      if (last) used_ = end;
      return false;
    }
    if (!EndsLine(bytes[end])) break;
    if (bytes[end] == '\r') {
      if (end + 1 == bytes.size() && !last) return false;
      if (end + 1 < bytes.size() && bytes[end + 1] == '\n') ++end;
    }
    at = used_ = end + 1;
    ++lines_after_;
  }
  return true;
}

bool RowFields::Next(std::string_view bytes, bool last) {
  if (!PassOver(bytes, last)) return false;
  fields_.clear();
  scratch_used_ = 0;
  stray_ = false;
  lines_in_row_ = 0;
  size_t at = used_;
  while (!TakePlainFields(bytes, at)) {
    const Took took = TakeField(bytes, last, at);
    if (took == Took::kMore) return false;
    if (took == Took::kRow) break;
  }
  begin_ = used_;
  used_ = at;
  lines_ = lines_after_;
  lines_after_ += lines_in_row_;
  return true;
}

// What most fields are: without quotes, comments and escapes. True behind the end of the row; else
// `at` stands before what TakeField is for.
bool RowFields::TakePlainFields(std::string_view bytes, size_t& at) {
  size_t from = at;
  while (true) {
    const size_t end = NextMark(bytes, from);
    if (end == bytes.size()) return false;
    const Mark mark = MarkOf(bytes[end]);
    if (mark == Mark::kDelimiter && !Delimits(bytes, end)) {
      from = end + 1;  // a part of one, or cut where the text ends
      continue;
    }
    const bool both = mark == Mark::kReturn && end + 1 < bytes.size() && bytes[end + 1] == '\n';
    if (mark != Mark::kDelimiter && mark != Mark::kLineFeed && !both) return false;
    fields_.emplace_back(bytes.data() + at, end - at);
    if (mark == Mark::kDelimiter) {
      at = from = end + format_.delimiter.size();
      continue;
    }
    at = end + (both ? 2 : 1);
    ++lines_in_row_;
    return true;
  }
}

RowFields::Took RowFields::TakeField(std::string_view bytes, bool last, size_t& at) {
  std::string_view field;
  const bool quoted = at < bytes.size() && IsQuote(bytes[at]);
  if (quoted && !TakeQuoted(bytes, last, ++at, field)) return Took::kMore;
  if (!quoted && !TakePlain(bytes, last, at, nullptr, field)) return Took::kMore;
  if (at < bytes.size() && IsComment(bytes[at])) {
    at = std::min(bytes.find_first_of("\r\n", at), bytes.size());
  }
  if (at == bytes.size() && !last) return Took::kMore;
  fields_.push_back(field);
  if (at == bytes.size()) return Took::kRow;
  if (Delimits(bytes, at)) {
    at += format_.delimiter.size();
    return Took::kField;
  }
  if (bytes[at++] == '\r') {
    if (at == bytes.size() && !last) return Took::kMore;
    if (at < bytes.size() && bytes[at] == '\n') ++at;
  }
  ++lines_in_row_;
  return Took::kRow;
}

bool RowFields::TakeEscaped(std::string_view bytes, bool last, size_t& at, std::string& text) {
  if (++at == bytes.size()) return last;
  if (EndsLine(bytes[at])) ++lines_in_row_;
  text.push_back(bytes[at++]);
  return true;
}

bool RowFields::TakePlain(std::string_view bytes, bool last, size_t& at, std::string* text,
                          std::string_view& field) {
  size_t begin = at;
  while (true) {
    at = NextMark(bytes, at);
    if (at < bytes.size() && IsQuote(bytes[at])) {
      stray_ = true;
      ++at;
      continue;
    }
    if (at < bytes.size() && bytes[at] == format_.delimiter.front() && !Delimits(bytes, at)) {
      ++at;
      continue;
    }
    const std::string_view part = bytes.substr(begin, at - begin);
    const bool escape = at < bytes.size() && IsEscape(bytes[at]);
    if (escape && text == nullptr) text = &Scratch();
    if (text != nullptr) text->append(part);
    if (!escape) {
      field = text == nullptr ? part : std::string_view(*text);
      return true;
    }
    if (!TakeEscaped(bytes, last, at, *text)) return false;
    begin = at;
  }
}

bool RowFields::TakeQuoted(std::string_view bytes, bool last, size_t& at, std::string_view& field) {
  std::string* text = nullptr;
  while (true) {
    const size_t begin = at;
    at = NextInQuotes(bytes, begin);
    if (at == bytes.size() && !last) return false;
    const std::string_view part = bytes.substr(begin, at - begin);
    lines_in_row_ += CountLineEnds(part);
    if (at < bytes.size() && IsEscape(bytes[at])) {
      if (text == nullptr) text = &Scratch();
      text->append(part);
      if (!TakeEscaped(bytes, last, at, *text)) return false;
      continue;
    }
    const bool closed = at < bytes.size() && IsQuote(bytes[at]);
    if (closed && ++at == bytes.size() && !last) return false;
    const bool over = !closed || at == bytes.size() || Delimits(bytes, at) || EndsLine(bytes[at]);
    if (over && text == nullptr) {
      field = part;
      return true;
    }
    if (text == nullptr) text = &Scratch();
    text->append(part);
    if (over) {
      field = *text;
      return true;
    }
    if (IsQuote(bytes[at])) {
      text->push_back(bytes[at++]);
      continue;
    }
    stray_ = true;
    // Behind a closing quote neither of the two has a meaning.
    if (IsComment(bytes[at]) || IsEscape(bytes[at])) text->push_back(bytes[at++]);
    return TakePlain(bytes, last, at, text, field);
  }
}

}  // namespace parallelrun::plan
