#include "plan/row_scanner.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace parallelrun::plan {
namespace {

constexpr size_t kBlock = 64;

bool EndsLine(char c) { return c == '\n' || c == '\r'; }

bool HasBlockKernel() {
#if defined(__x86_64__)
  static const bool has = __builtin_cpu_supports("avx2") != 0 &&
                          __builtin_cpu_supports("pclmul") != 0 &&
                          __builtin_cpu_supports("popcnt") != 0;
  return has;
#else
  return false;
#endif
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) inline uint64_t Bits(__m256i low, __m256i high) {
  return uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(high))} << 32 |
         static_cast<uint32_t>(_mm256_movemask_epi8(low));
}

__attribute__((target("avx2"))) inline uint64_t Equal(__m256i low, __m256i high, __m256i to) {
  return Bits(_mm256_cmpeq_epi8(low, to), _mm256_cmpeq_epi8(high, to));
}

__attribute__((target("avx2"))) inline uint64_t EqualEither(__m256i low, __m256i high, __m256i a,
                                                            __m256i b) {
  return Bits(_mm256_or_si256(_mm256_cmpeq_epi8(low, a), _mm256_cmpeq_epi8(low, b)),
              _mm256_or_si256(_mm256_cmpeq_epi8(high, a), _mm256_cmpeq_epi8(high, b)));
}

// Each bit becomes the xor of itself and all below it.
__attribute__((target("avx2,pclmul"))) inline uint64_t PrefixXor(uint64_t bits) {
  const __m128i ones = _mm_set1_epi8(static_cast<char>(0xFF));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(
      _mm_clmulepi64_si128(_mm_set_epi64x(0, static_cast<int64_t>(bits)), ones, 0)));
}

// From `first` to `last`.
__attribute__((target("avx2"))) inline uint64_t Within(__m256i low, __m256i high, char first,
                                                       char last) {
  const __m256i from = _mm256_set1_epi8(first);
  const __m256i size = _mm256_set1_epi8(static_cast<char>(last - first));
  low = _mm256_sub_epi8(low, from);
  high = _mm256_sub_epi8(high, from);
  return Bits(_mm256_cmpeq_epi8(_mm256_min_epu8(low, size), low),
              _mm256_cmpeq_epi8(_mm256_min_epu8(high, size), high));
}

// As FieldFronts::Bits has them.
struct Fronts {
  uint64_t loose, minus, zeros, digits;
};

__attribute__((target("avx2"))) inline Fronts FrontsOf(__m256i low, __m256i high) {
  return {EqualEither(low, high, _mm256_set1_epi8('+'), _mm256_set1_epi8(' ')) |
              Within(low, high, '\t', '\r'),
          Equal(low, high, _mm256_set1_epi8('-')), Equal(low, high, _mm256_set1_epi8('0')),
          Within(low, high, '0', '9')};
}

#endif

}  // namespace

RowScanner::RowScanner(RowSyntax format, Kernel kernel)
    : format_(format),
      blocks_(kernel == Kernel::kBest && HasBlockKernel() && format.max_field >= kBlock &&
              format.delimiter.size() == 1),
      fronts_(format.delimiter.front(), format.quote, format.quoted) {
  stops_['\n'] = stops_['\r'] = true;
  if (format_.quote == 0) format_.quoted = false;
  stops_[static_cast<unsigned char>(format_.quote)] = format_.quoted;
  // A NUL is never one of them: it is what is not set.
  if (format.comment != 0) stops_[static_cast<unsigned char>(format.comment)] = true;
  if (format.escape != 0) stops_[static_cast<unsigned char>(format.escape)] = true;
  // One byte is run over.
  if (format.delimiter.size() > 1) {
    stops_[static_cast<unsigned char>(format.delimiter.front())] = true;
  }
}

RowScanner::Step RowScanner::Scan(std::string_view bytes, size_t least, uint64_t& rows) {
  if (!blocks_) return ScanBytes(bytes, 0, bytes.size(), least, rows);
  size_t pos = 0;
  while (true) {
    pos = ScanBlocks(bytes, pos, least, rows);
    if (pos == bytes.size()) return {pos, false};
    const Step step = ScanBytes(bytes, pos, std::min(bytes.size(), pos + kBlock), least, rows);
    if (step.cut || step.too_long) return step;
    pos = step.used;
  }
}

void RowScanner::Finish(uint64_t& rows) {
  for (size_t i = 0; i < seen_; ++i) Pass(format_.delimiter.bytes()[i], false);
  seen_ = 0;
  if (!NoRow()) ++rows;
  at_ = At::kRowStart;
  field_ = 0;
  fronts_.NextRow();
}

// Measures the fields in bytes without a quote or a line end; false behind the one that is too
// long.
bool RowScanner::PassRun(std::string_view run, size_t& passed) {
  const size_t last = run.rfind(format_.delimiter.front());
  if (field_ + run.size() <= format_.max_field) {
    // None of them can be: this is all that most runs need.
    field_ = last == std::string_view::npos ? field_ + run.size() : run.size() - last - 1;
    passed = run.size();
    return true;
  }
  for (passed = 0; passed < run.size();) {
    const size_t end = std::min(run.find(format_.delimiter.front(), passed), run.size());
    field_ += end - passed;
    passed = end;
    if (field_ > format_.max_field) return false;
    if (end == run.size()) return true;
    field_ = 0;
    ++passed;
  }
  return true;
}

// A byte that is no run: the first one of a field, its quote, or what ends it.
void RowScanner::LookAtFront(char c, bool delimits) {
  const bool quote = c == format_.quote && format_.quoted;
  const bool blank = (c == ' ' || c == '\t') && !delimits;
  if (EndsLine(c)) {
    fronts_.NextRow();
  } else if (blank && (at_ == At::kRowStart || at_ == At::kBlank)) {
    // It may be a line of blanks, which is no row.
  } else if (at_ == At::kBlank || (at_ == At::kQuoteInQuoted && !quote && !delimits)) {
    fronts_.Odd();
    if (delimits) {
      fronts_.NextField();
    } else {
      fronts_.Text({&c, 1});
    }
  } else if (delimits) {
    fronts_.NextField();
  } else if (!quote || at_ == At::kField || at_ == At::kQuoteInQuoted) {
    const bool text = (format_.escape == 0 || c != format_.escape) &&
                      (format_.comment == 0 || c != format_.comment);
    if (text) fronts_.Text({&c, 1});
  }
}

// Likewise: what the text is in behind it. `delimits`: it ends a delimiter.
void RowScanner::Pass(char c, bool delimits) {
  if (format_.fronts) LookAtFront(c, delimits);
  if (EndsLine(c)) {
    at_ = At::kRowStart;
  } else if (c == format_.quote && format_.quoted) {
    at_ = at_ == At::kBlank || at_ == At::kField ? At::kField : At::kQuoted;
  } else if (delimits) {
    at_ = At::kFieldStart;
  } else if (format_.escape != 0 && c == format_.escape && at_ != At::kQuoteInQuoted) {
    at_ = At::kEscaped;
  } else if (format_.comment != 0 && c == format_.comment && at_ != At::kQuoteInQuoted) {
    at_ = at_ == At::kRowStart ? At::kLineComment : At::kComment;
  } else if ((c == ' ' || c == '\t') && (at_ == At::kRowStart || at_ == At::kBlank)) {
    at_ = At::kBlank;
  } else {
    at_ = At::kField;
  }
}

// Whether a delimiter of several bytes ends with this one. Those that may be its front are kept
// back, and passed as text once they are not: a block may end in the midst of one.
bool RowScanner::EndsDelimiter(char c) {
  const Delimiter& delimiter = format_.delimiter;
  const size_t before = seen_;
  seen_ = delimiter.Seen(before, c);
  if (seen_ == delimiter.size()) {
    seen_ = 0;
    return true;
  }
  const size_t text = std::min(before, before + 1 - seen_);
  for (size_t i = 0; i < text; ++i) Pass(delimiter.bytes()[i], false);
  return false;
}

RowScanner::Step RowScanner::ScanBytes(std::string_view bytes, size_t begin, size_t end,
                                       size_t least, uint64_t& rows) {
  const bool one_byte = format_.delimiter.size() == 1;
  size_t pos = begin;
  while (pos < end) {
    if (at_ == At::kEscaped || at_ == At::kEscapedInQuoted) {
      at_ = at_ == At::kEscaped ? At::kField : At::kQuoted;
      if (format_.fronts) fronts_.Text(bytes.substr(pos, 1));
      ++pos;
      if (++field_ > format_.max_field) return {pos, false, true};
      continue;
    }
    if (at_ == At::kComment || at_ == At::kLineComment) {
      while (pos < end && !EndsLine(bytes[pos])) ++pos;
      if (pos == end) break;
    }
    if (at_ == At::kQuoted && format_.escape != 0) {
      const size_t run = pos;
      while (pos < end && bytes[pos] != format_.escape && bytes[pos] != format_.quote) ++pos;
      const uint64_t left = format_.max_field - field_;
      const bool too_long = pos - run > left;
      if (too_long) pos = run + left + 1;
      if (format_.fronts) fronts_.Text(bytes.substr(run, pos - run));
      field_ += pos - run;
      if (too_long) return {pos, false, true};
      if (pos == end) break;
      at_ = bytes[pos++] == format_.quote ? At::kQuoteInQuoted : At::kEscapedInQuoted;
      if (++field_ > format_.max_field) return {pos, false, true};
      continue;
    }
    if (at_ == At::kQuoted) {
      const void* quote = std::memchr(bytes.data() + pos, format_.quote, end - pos);
      const size_t to =
          quote == nullptr
              ? end
              : static_cast<size_t>(static_cast<const char*>(quote) - bytes.data()) + 1;
      field_ += to - pos;
      if (format_.fronts) fronts_.Text(bytes.substr(pos, to - pos - (quote == nullptr ? 0 : 1)));
      pos = to;
      if (field_ > format_.max_field) return {pos, false, true};
      if (quote == nullptr) return {end};
      at_ = At::kQuoteInQuoted;
      continue;
    }
    if (at_ == At::kField && seen_ == 0) {
      // Delimiters of one byte are run over: one matters only in front of a quote, or at the end.
      const size_t run = pos;
      while (pos < end && !stops_[static_cast<unsigned char>(bytes[pos])]) ++pos;
      if (format_.fronts) fronts_.Run(bytes.substr(run, pos - run));
      size_t passed = 0;
      if (!PassRun(bytes.substr(run, pos - run), passed)) return {run + passed, false, true};
      if (pos > run && bytes[pos - 1] == format_.delimiter.front()) at_ = At::kFieldStart;
      if (pos == end) break;
    }
    const char c = bytes[pos++];
    // An escape in front of it would have been met above.
    const bool ends = EndsLine(c);
    const bool delimits = one_byte ? c == format_.delimiter.front() : EndsDelimiter(c);
    ++field_;
    if (!delimits && field_ - (ends ? 1 : seen_) > format_.max_field) return {pos, false, true};
    if (ends || delimits) field_ = 0;
    if (seen_ > 0) continue;
    if (ends && !NoRow()) ++rows;
    Pass(c, delimits);
    if (ends && pos >= least && rows > 0) return {pos, true};
  }
  return {end, false};
}

#if defined(__x86_64__)

// One bit a byte of the block for each kind of byte. The prefix xor of the quotes' bits gives the
// bytes within quotes (simdjson's method; Langdale and Lemire, 2019).
__attribute__((target("avx2,pclmul,popcnt"))) size_t RowScanner::ScanBlocks(std::string_view bytes,
                                                                            size_t begin,
                                                                            size_t least,
                                                                            uint64_t& rows) {
  if (OnlyByBytes()) return begin;
  const __m256i line_feed = _mm256_set1_epi8('\n');
  const __m256i carriage_return = _mm256_set1_epi8('\r');
  const __m256i quote = _mm256_set1_epi8(format_.quote);
  const char delimits = format_.delimiter.front();
  const __m256i delimiter = _mm256_set1_epi8(delimits);
  const __m256i space = _mm256_set1_epi8(delimits == ' ' ? '\t' : ' ');
  const __m256i tab = _mm256_set1_epi8(delimits == '\t' ? ' ' : '\t');
  const char mark = format_.comment != 0 ? format_.comment : format_.escape;
  const __m256i comment = _mm256_set1_epi8(mark);
  const __m256i escape = _mm256_set1_epi8(format_.escape != 0 ? format_.escape : mark);
  FieldFronts::Carry carry{at_ == At::kRowStart || at_ == At::kFieldStart, at_ == At::kQuoted,
                           at_ == At::kQuoteInQuoted};

  uint64_t in_quotes = at_ == At::kQuoted ? ~uint64_t{0} : 0;  // all bits: the block begins so
  uint64_t row_start = at_ == At::kRowStart ? 1 : 0;
  uint64_t may_open = at_ != At::kField ? 1 : 0;  // a quote in front may open a field
  // Where the field at hand begins: before `bytes`, if it wraps.
  uint64_t field_begin = begin - field_;
  size_t pos = begin;
  for (; bytes.size() - pos >= kBlock; pos += kBlock) {
    const auto* block = reinterpret_cast<const __m256i*>(bytes.data() + pos);
    const __m256i low = _mm256_loadu_si256(block);
    const __m256i high = _mm256_loadu_si256(block + 1);
    if (mark != 0 && EqualEither(low, high, comment, escape) != 0) break;
    const uint64_t ends = EqualEither(low, high, line_feed, carriage_return);
    const uint64_t blanks = EqualEither(low, high, space, tab);
    uint64_t quotes = 0;
    uint64_t quoted = 0;
    uint64_t fields = 0;
    const uint64_t bounds = Equal(low, high, delimiter) | ends;
    if (format_.quoted) {
      quotes = Equal(low, high, quote);
      fields = bounds | quotes;
      quoted = PrefixXor(quotes) ^ in_quotes;
      // A quote that would open a field in the midst of one is text.
      if ((quotes & quoted & ~(fields << 1 | may_open)) != 0) break;
    }
    const uint64_t row_ends = ends & ~quoted;
    const uint64_t starts = row_ends << 1 | row_start;
    if (const uint64_t leading = blanks & starts; leading != 0) {
      // A carry runs through the blanks in front of each line, to the byte behind them.
      const uint64_t sum = blanks + leading;
      if (sum < blanks || (sum & ~blanks & row_ends) != 0) break;  // or the block ends in them
    }
    if (row_ends != 0 && pos + kBlock >= least) break;
    // Within a block no field is too long; the one that ends or goes on in it may be.
    const uint64_t between = bounds & ~quoted;
    const uint64_t first = between == 0 ? kBlock : static_cast<uint64_t>(__builtin_ctzll(between));
    if (pos + first - field_begin > format_.max_field) break;
    if (between != 0) field_begin = pos + kBlock - static_cast<uint64_t>(__builtin_clzll(between));
    rows += static_cast<uint64_t>(__builtin_popcountll(row_ends & ~starts));
    if (format_.fronts) {
      if (!format_.quoted && format_.quote != 0) quotes = Equal(low, high, quote);
      const Fronts found = FrontsOf(low, high);
      const uint64_t closes = quotes & ~quoted;
      fronts_.Block({between, row_ends, bounds, quotes, closes, found.loose, found.minus,
                     found.zeros, found.digits},
                    carry);
      const uint64_t opens = quotes & quoted;
      carry = {between >> 63 != 0, opens >> 63 != 0, closes >> 63 != 0};
    }
    in_quotes = quoted >> 63 != 0 ? ~uint64_t{0} : 0;
    row_start = row_ends >> 63;
    may_open = fields >> 63;
  }
  if (pos == begin) return pos;
  field_ = pos - field_begin;
  const char last = bytes[pos - 1];
  if (in_quotes != 0) {
    at_ = At::kQuoted;
  } else if (EndsLine(last)) {
    at_ = At::kRowStart;
  } else if (last == delimits) {
    at_ = At::kFieldStart;
  } else {
    at_ = last == format_.quote && format_.quoted ? At::kQuoteInQuoted : At::kField;
  }
  return pos;
}

#else

size_t RowScanner::ScanBlocks(std::string_view, size_t begin, size_t, uint64_t&) { return begin; }

#endif

}  // namespace parallelrun::plan
