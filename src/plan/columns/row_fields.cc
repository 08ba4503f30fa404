#include "plan/columns/row_fields.h"

#include <algorithm>

namespace parallelrun::plan {
namespace {

bool EndsLine(char c) { return c == '\n' || c == '\r'; }

}  // namespace

uint64_t CountLineEnds(std::string_view text) {
  auto ends = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  for (size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1)) {
    if (at + 1 == text.size() || text[at + 1] != '\n') ++ends;
  }
  return ends;
}

RowFields::RowFields(RowSyntax format) : format_(format), in_quotes_(1, format.quote) {
  for (const char c : {'\n', '\r', format.delimiter.front()}) {
    stops_[static_cast<unsigned char>(c)] = true;
  }
  // A NUL is never one of them: it is what is not set.
  for (const char c : {format.quote, format.comment, format.escape}) {
    if (c != 0) stops_[static_cast<unsigned char>(c)] = true;
  }
  if (format.escape != 0) in_quotes_ += format.escape;
  if (!format.quoted) in_quotes_ += "\r\n";
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
  while (true) {
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
    while (at < bytes.size() && !stops_[static_cast<unsigned char>(bytes[at])]) ++at;
    if (at < bytes.size() && IsQuote(bytes[at])) {
      stray_ = true;
      ++at;
      continue;
    }
    if (MayDelimit(bytes, last, at)) return false;
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
    at = in_quotes_.size() == 1 ? bytes.find(format_.quote, begin)
                                : bytes.find_first_of(in_quotes_, begin);
    at = std::min(at, bytes.size());
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
    if (closed && MayDelimit(bytes, last, ++at)) return false;
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
