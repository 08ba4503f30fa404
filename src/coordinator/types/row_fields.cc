#include "coordinator/types/row_fields.h"

#include <algorithm>

namespace parallelrun {
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

RowFields::RowFields(RowFormat format) : format_(format) {
  for (const char c : {'\n', '\r', '"', format.delimiter}) {
    stops_[static_cast<unsigned char>(c)] = true;
  }
}

std::string& RowFields::Scratch() {
  if (scratch_used_ == scratch_.size()) scratch_.emplace_back();
  std::string& text = scratch_[scratch_used_++];
  text.clear();
  return text;
}

// Lines without a byte, or of blanks and tabs only. False when a row may begin but is not there.
bool RowFields::PassOver(std::string_view bytes, bool last) {
  size_t at = used_;
  while (true) {
    size_t end = at;
    while (end < bytes.size() && (bytes[end] == ' ' || bytes[end] == '\t') &&
           bytes[end] != format_.delimiter) {
      ++end;
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
  if (at < bytes.size() && bytes[at] == '"') {
    if (!TakeQuoted(bytes, last, ++at, field)) return Took::kMore;
  } else {
    field = TakePlain(bytes, at);
  }
  if (at == bytes.size()) {
    if (!last) return Took::kMore;
    fields_.push_back(field);
    return Took::kRow;
  }
  fields_.push_back(field);
  const char c = bytes[at++];
  if (c == format_.delimiter) return Took::kField;
  if (c == '\r') {
    if (at == bytes.size() && !last) return Took::kMore;
    if (at < bytes.size() && bytes[at] == '\n') ++at;
  }
  ++lines_in_row_;
  return Took::kRow;
}

std::string_view RowFields::TakePlain(std::string_view bytes, size_t& at) {
  const size_t begin = at;
  while (true) {
    while (at < bytes.size() && !stops_[static_cast<unsigned char>(bytes[at])]) ++at;
    if (at == bytes.size() || bytes[at] != '"') return bytes.substr(begin, at - begin);
    stray_ = true;
    ++at;
  }
}

bool RowFields::TakeQuoted(std::string_view bytes, bool last, size_t& at,
                           std::string_view& field) {
  std::string* text = nullptr;
  while (true) {
    const size_t begin = at;
    size_t end = format_.quoted ? bytes.find('"', begin) : bytes.find_first_of("\"\r\n", begin);
    if (end == std::string_view::npos) {
      if (!last) return false;
      end = bytes.size();
    }
    const std::string_view part = bytes.substr(begin, end - begin);
    lines_in_row_ += CountLineEnds(part);
    at = end;
    const bool closed = end < bytes.size() && bytes[end] == '"';
    if (closed && end + 1 == bytes.size() && !last) return false;
    if (closed) ++at;
    const bool doubled = closed && at < bytes.size() && bytes[at] == '"';
    const bool over = !closed || at == bytes.size() || bytes[at] == format_.delimiter ||
                      EndsLine(bytes[at]);
    if (over && text == nullptr) {
      field = part;
      return true;
    }
    if (text == nullptr) text = &Scratch();
    text->append(part);
    if (doubled) {
      text->push_back('"');
      ++at;
      continue;
    }
    if (!over) {
      stray_ = true;
      text->append(TakePlain(bytes, at));
    }
    field = *text;
    return true;
  }
}

}  // namespace parallelrun
