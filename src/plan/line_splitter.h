// Cuts one file of JSON lines. A line ends at LF and nowhere else (a lone CR, U+2028 and the like
// are data); a line of nothing but blanks, tabs and CRs is no line. A byte order mark is passed
// over. Memory: one buffer of 256 KiB. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/error.h"
#include "plan/row_splitter.h"
#include "plan/text_reader.h"

namespace parallelrun::plan {

class LineSplitter : public RowSplitter {
 public:
  static Result<std::unique_ptr<LineSplitter>> Open(store::Store& store, const std::string& name,
                                                    std::stop_token stop = {});

  const store::Found& found() const override { return reader_->found(); }
  bool compressed() const override { return reader_->compressed(); }
  void Seek(uint64_t offset) override { reader_->Seek(offset); }
  // The next `lines` lines, or what is left; ends behind the LF of the last one.
  Result<std::optional<job::Slice>> Next(uint64_t lines) override;

 private:
  explicit LineSplitter(std::unique_ptr<TextReader> reader) : reader_(std::move(reader)) {}

  const std::unique_ptr<TextReader> reader_;
};

}  // namespace parallelrun::plan
