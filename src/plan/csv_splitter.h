// Cuts one delimited text file into slices of whole rows by reading it once from front to back.
// What a row is: plan/row_scanner.h. Every slice holds at least one row and has at
// least the size asked for (but the last), so that pandas.read_csv of header + slice has as many
// rows. With quoted_newlines false the file is read as well, for the rows are counted, but quotes
// are ignored. A field that is longer than max_field_size, and a quote that is still open at the
// end of the file, are kInvalid with file and line: pandas would take all behind the quote for one
// field. Memory: one buffer of 256 KiB. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/row_scanner.h"
#include "plan/row_splitter.h"
#include "plan/text_reader.h"

namespace parallelrun::plan {

struct CsvFormat {
  std::string delimiter = ",";  // at most api::kMostDelimiter bytes
  std::string encoding = "utf-8";
  bool quoted_newlines = true;
  char comment = 0;        // 0: none
  char escape = 0;         // 0: none
  uint32_t skip_rows = 0;  // lines at the front
  // Bytes. With a bound, a quote that is still open at the end of the file is an error too.
  uint64_t max_field_size = kAnyField;
  bool fronts = false;     // may_lose() is asked for
  char quote = '"';        // 0: none
  std::stop_token stop{};  // see TextReader
};

// kInvalid, with the mend, unless the delimiter is one (api::IsDelimiter) that holds none of the
// other marks, and the encoding one in which the bytes of these stand for nothing else.
Status CheckCsvFormat(const CsvFormat& format);

// Bytes are UTF-8, or ASCII, which is a part of it.
bool IsUtf8Encoding(std::string_view encoding);

class CsvSplitter : public RowSplitter {
 public:
  // `format` has passed CheckCsvFormat.
  static Result<std::unique_ptr<CsvSplitter>> Open(
      store::Store& store, const std::string& name, const CsvFormat& format,
      RowScanner::Kernel kernel = RowScanner::Kernel::kBest);

  const store::Found& found() const override { return reader_->found(); }
  bool compressed() const override { return reader_->compressed(); }

  // Takes the first row off, with its line end (an LF if it has none); empty when nothing is left.
  // kInvalid when it is longer than 1 MiB.
  Result<std::string> TakeHeader();
  // The row that comes next, or the front of a long one; it is not passed. Empty at the end.
  Result<std::string> PeekRow();
  // The text that comes next, so many bytes of it or all that there is; it is not passed.
  Result<std::string> PeekText(size_t most);
  // Where it goes on.
  uint64_t offset() const { return reader_->offset(); }
  // Goes on at `offset`, where a row begins; 0 is behind a byte order mark and the lines that are
  // passed over.
  void Seek(uint64_t offset) override;
  // The next slice: ends with the first row that ends at or after `size` bytes. nullopt at the end.
  Result<std::optional<job::Slice>> Next(uint64_t size) override;
  uint64_t may_lose() const override { return may_lose_; }

 private:
  CsvSplitter(std::unique_ptr<TextReader> reader, RowSyntax format, RowScanner scanner)
      : reader_(std::move(reader)), format_(format), scanner_(scanner) {}
  Status PassLines(uint32_t lines);
  // Scans up to the end of a row as RowScanner::Scan does; appends what it passes to `copy`, if
  // any.
  Result<job::Slice> TakeRows(uint64_t least, std::string* copy);
  // kInvalid at the field that began so many bytes before the next one. Nothing is read then.
  Error AtField(const std::string& what);

  const std::unique_ptr<TextReader> reader_;
  const RowSyntax format_;
  uint64_t front_ = 0;  // behind the lines that are passed over
  RowScanner scanner_;
  uint64_t may_lose_ = 0;  // of the rows that were taken last
};

}  // namespace parallelrun::plan
