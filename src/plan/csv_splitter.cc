#include "plan/csv_splitter.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "api/text.h"
#include "base/escape.h"
#include "plan/columns/row_fields.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMaxHeader = 1024 * 1024;
constexpr size_t kMostPeeked = 8 * 1024 * 1024;

// "UTF_8" and "utf-8" are the same to Python.
std::string PlainEncoding(std::string_view encoding) {
  std::string plain;
  for (const char c : encoding) {
    if (c == '_' || c == ' ') {
      plain += '-';
    } else {
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return plain;
}

bool IsUtf8(const std::string& plain) {
  return plain == "utf-8" || plain == "utf8" || plain == "utf-8-sig" || plain == "ascii" ||
         plain == "us-ascii";
}

template <size_t n>
bool IsOf(const std::array<std::string_view, n>& families, const std::string& plain) {
  return std::any_of(families.begin(), families.end(),
                     [&](std::string_view family) { return plain.starts_with(family); });
}

// Bytes below 0x80 stand for ASCII, wherever they are.
bool IsAsciiPlus(const std::string& plain) {
  constexpr std::array<std::string_view, 14> kFamilies = {
      "latin", "l1",   "iso-8859",  "iso8859", "cp125",   "windows-125", "cp437",
      "cp85",  "cp86", "mac-roman", "koi8",    "tis-620", "gb2312",      "euc-"};
  return IsOf(kFamilies, plain);
}

// In these a later byte of a character may look like a digit or letter, or as one of
// "@[\\]^_`{|}~", but never like a quote or a line end.
bool HasLetterBytes(const std::string& plain) {
  constexpr std::array<std::string_view, 7> kFamilies = {"gbk",       "gb18030", "cp936", "big5",
                                                         "shift-jis", "sjis",    "cp932"};
  return IsOf(kFamilies, plain);
}

bool MayBeInCharacter(char c) { return (c >= '0' && c <= '9') || c >= '@'; }

bool HasOtherThanAscii(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

Status CheckDelimiter(const CsvFormat& format) {
  const std::string& delimiter = format.delimiter;
  if (!api::IsDelimiter(delimiter)) {
    return Error{Code::kInvalid,
                 fmt::format("tabular.delimiter \"{}\" must be 1 to {} bytes of UTF-8, without a "
                             "quotation mark, a line break and a NUL",
                             Printable(delimiter, 64), api::kMostDelimiter)};
  }
  const std::array<std::pair<char, const char*>, 3> marks = {
      {{format.quote, "quote"}, {format.comment, "comment"}, {format.escape, "escape"}}};
  for (const auto& [mark, name] : marks) {
    if (mark == 0 || delimiter.find(mark) == std::string::npos) continue;
    return Error{Code::kInvalid,
                 fmt::format("tabular.delimiter \"{}\" holds the character that tabular.{} is: "
                             "write another one",
                             Printable(delimiter, 64), name)};
  }
  return {};
}

}  // namespace

bool IsUtf8Encoding(std::string_view encoding) { return IsUtf8(PlainEncoding(encoding)); }

Status CheckCsvFormat(const CsvFormat& format) {
  if (const Status good = CheckDelimiter(format); !good.ok()) return good;
  const std::string_view delimiter = format.delimiter;
  const std::string plain = PlainEncoding(format.encoding);
  if (IsUtf8(plain)) return {};
  const bool known = IsAsciiPlus(plain) || HasLetterBytes(plain);
  if (known && HasOtherThanAscii(delimiter)) {
    return Error{Code::kInvalid,
                 fmt::format("tabular.delimiter \"{}\" has other bytes in {} than in UTF-8, in "
                             "which it is looked for; convert the files to utf-8 "
                             "(`iconv -f {} -t utf-8`)",
                             Printable(delimiter, 64), Printable(format.encoding, 64),
                             Printable(format.encoding, 64))};
  }
  if (IsAsciiPlus(plain)) return {};
  if (HasLetterBytes(plain)) {
    const bool quote = MayBeInCharacter(format.quote);
    // Behind a byte that is whole, the next one begins a character.
    if (!MayBeInCharacter(delimiter.front()) && !quote) return {};
    const std::string_view mark = quote ? std::string_view(&format.quote, 1) : delimiter;
    return Error{Code::kInvalid,
                 fmt::format("tabular.{} \"{}\" may be a part of a character in {}; convert "
                             "the files to utf-8 (`iconv -f {} -t utf-8`)",
                             quote ? "quote" : "delimiter", Printable(mark, 64),
                             Printable(format.encoding, 64), Printable(format.encoding, 64))};
  }
  return Error{Code::kInvalid,
               fmt::format("tabular.encoding \"{}\" cannot be cut at row boundaries; convert the "
                           "files to utf-8 (`iconv -f {} -t utf-8`); accepted are utf-8, ascii, "
                           "latin-1, iso-8859-*, cp125*, gbk, gb18030, big5, shift_jis, euc-*",
                           Printable(format.encoding, 64), Printable(format.encoding, 64))};
}

Result<std::unique_ptr<CsvSplitter>> CsvSplitter::Open(store::Store& store, const std::string& name,
                                                       const CsvFormat& format,
                                                       RowScanner::Kernel kernel) {
  auto reader = TextReader::Open(store, name, IsUtf8(PlainEncoding(format.encoding)), format.stop);
  if (!reader.ok()) return reader.error();
  const RowSyntax rows{Delimiter(format.delimiter),
                       format.quoted_newlines && format.quote != 0,
                       format.comment,
                       format.escape,
                       format.max_field_size,
                       format.fronts,
                       format.quote};
  std::unique_ptr<CsvSplitter> splitter(
      new CsvSplitter(std::move(*reader), rows, RowScanner(rows, kernel)));
  if (const Status passed = splitter->PassLines(format.skip_rows); !passed.ok()) {
    return passed.error();
  }
  return splitter;
}

// As pandas' skiprows: lines that are no rows count too, and a quoted line end is none.
Status CsvSplitter::PassLines(uint32_t lines) {
  bool quoted = false;
  bool carriage_return = false;
  while (lines > 0 || carriage_return) {
    if (reader_->rest().empty()) {
      if (const Status filled = reader_->Fill(); !filled.ok()) return filled;
      if (reader_->rest().empty()) break;
    }
    const char c = reader_->rest().front();
    if (lines == 0 && c != '\n') break;
    reader_->Pass(1);
    if (carriage_return && c == '\n') {
      carriage_return = false;
      continue;
    }
    if (c == format_.quote && format_.quoted) quoted = !quoted;
    carriage_return = c == '\r' && !quoted;
    if (!quoted && (c == '\n' || c == '\r')) --lines;
  }
  front_ = reader_->offset();
  return {};
}

void CsvSplitter::Seek(uint64_t offset) {
  uint64_t unused = 0;
  scanner_.Finish(unused);
  reader_->Seek(offset == 0 ? front_ : offset);
}

Result<std::string> CsvSplitter::TakeHeader() {
  std::string header;
  const auto taken = TakeRows(0, &header);
  if (!taken.ok()) return taken.error();
  if (taken->rows == 0) return std::string();
  header.erase(0, header.find_first_not_of("\r\n"));
  RowFields row(format_);
  if (format_.comment != 0 && row.Next(header, true)) header.erase(0, row.begin());
  if (header.back() != '\n' && header.back() != '\r') header += '\n';
  return header;
}

// Mostly it is whole in what was read: in a bucket each read is a request.
Result<std::string> CsvSplitter::PeekRow() {
  TextReader& reader = *reader_;
  if (reader.rest().empty()) {
    if (const Status filled = reader.Fill(); !filled.ok()) return filled.error();
  }
  const uint64_t begin = reader.offset();
  RowFields row(format_);
  const bool all = !compressed() && begin + reader.rest().size() >= found().size;
  if (row.Next(reader.rest(), all)) {
    return std::string(reader.rest().substr(row.begin(), row.used() - row.begin()));
  }
  std::string text;
  for (bool taken = false; !taken && !reader.rest().empty() && text.size() < kMostPeeked;) {
    text += reader.rest();
    reader.Pass(reader.rest().size());
    if (const Status filled = reader.Fill(); !filled.ok()) return filled.error();
    taken = row.Next(text, reader.rest().empty());
    if (taken) text = text.substr(row.begin(), row.used() - row.begin());
  }
  reader.Seek(begin);
  return text;
}

Result<std::string> CsvSplitter::PeekText(size_t most) {
  TextReader& reader = *reader_;
  const uint64_t begin = reader.offset();
  std::string text(reader.rest().substr(0, most));
  const bool all = !compressed() && begin + text.size() >= found().size;
  if (all || text.size() == most) return text;
  for (bool more = true; more && text.size() < most;) {
    reader.Pass(reader.rest().size());
    if (const Status filled = reader.Fill(); !filled.ok()) return filled.error();
    text += reader.rest().substr(0, most - text.size());
    more = !reader.rest().empty();
  }
  reader.Seek(begin);
  return text;
}

Result<std::optional<job::Slice>> CsvSplitter::Next(uint64_t size) {
  const auto slice = TakeRows(size, nullptr);
  if (!slice.ok()) return slice.error();
  return slice->rows == 0 ? std::optional<job::Slice>() : std::optional<job::Slice>(*slice);
}

// Only now are the lines before it counted, from the front of the file.
Error CsvSplitter::AtField(const std::string& what) {
  const auto before = reader_->LineEndsBefore(reader_->offset() - scanner_.field());
  if (!before.ok()) return before.error();
  return {Code::kInvalid,
          fmt::format("{}:{}: {}", Printable(reader_->path(), 4096), *before + 1, what)};
}

Result<job::Slice> CsvSplitter::TakeRows(uint64_t least, std::string* copy) {
  TextReader& reader = *reader_;
  const auto pass = [&](size_t size) {
    if (copy != nullptr) copy->append(reader.rest().substr(0, size));
    reader.Pass(size);
  };
  Status filled = reader.rest().empty() ? reader.Fill() : Status();
  const uint64_t begin = reader.offset();
  uint64_t rows = 0;
  while (filled.ok() && !reader.rest().empty()) {
    const uint64_t done = reader.offset() - begin;
    const auto step = scanner_.Scan(reader.rest(), least > done ? least - done : 0, rows);
    const bool carriage_return = reader.rest()[step.used - 1] == '\r';
    pass(step.used);
    if (step.too_long) {
      return AtField(
          fmt::format("a field is longer than {} bytes: close the quote that it begins "
                      "with, if there is one, or raise tabular.maxFieldSize",
                      format_.max_field));
    }
    if (copy != nullptr && copy->size() > kMaxHeader) {
      return Error{Code::kInvalid,
                   fmt::format("{}: the header line is longer than 1 MiB; check its quotes, or set "
                               "tabular.header to None",
                               Printable(reader.path(), 4096))};
    }
    if (reader.rest().empty()) filled = reader.Fill();
    if (!step.cut) continue;
    if (filled.ok() && carriage_return && reader.rest().starts_with('\n')) pass(1);
    break;
  }
  if (!filled.ok()) return filled.error();
  if (reader.rest().empty() && scanner_.open() && format_.max_field != kAnyField) {
    return AtField(
        "the quote that this field begins with is still open at the end of the file: "
        "close or remove it");
  }
  if (reader.rest().empty()) scanner_.Finish(rows);
  may_lose_ = scanner_.TakeMayLose();
  if (rows > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalid, fmt::format("{}: a mini-batch of {} rows is too large; lower "
                                             "miniBatchSize",
                                             Printable(reader.path(), 4096), rows)};
  }
  return job::Slice{begin, reader.offset() - begin, static_cast<uint32_t>(rows)};
}

}  // namespace parallelrun::plan
