// Reads the text of one file from front to back, as BlockReader does its bytes: what the file
// holds, if it is compressed with gzip or zstd. Offsets are those in the text. A byte order mark at
// the front is passed over; what begins as no text does is refused. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/block_reader.h"
#include "plan/decompressor.h"
#include "plan/read_window.h"
#include "store/store.h"

namespace parallelrun::plan {

class TextReader : public ReadWindow {
 public:
  // With `skip_mark` the bytes of a UTF-8 byte order mark are. Fill() is refused once `stop` was
  // asked for.
  static Result<std::unique_ptr<TextReader>> Open(store::Store& store, const std::string& name,
                                                  bool skip_mark, std::stop_token stop = {});

  const store::Found& found() const { return bytes_->found(); }
  const std::string& path() const { return bytes_->path(); }
  bool compressed() const { return decompressor_ != nullptr; }

  // Reads the next bytes into the empty rest(), which stays empty at the end. In a compressed
  // file, all up to a place that was passed is made again after a Seek. kInvalid for what is
  // no text, and for a compressed file that is damaged or cut short.
  Status Fill();
  // How many lines end in front of `end`, with LF, CR or both; rest() is empty then. kInvalid
  // when there are fewer bytes.
  Result<uint64_t> LineEndsBefore(uint64_t end);

 private:
  TextReader(std::unique_ptr<BlockReader> bytes, std::string begin, bool skip_mark,
             std::stop_token stop);
  Status FillPlain();
  Status FillDecompressed();
  Result<std::string_view> Decompress();

  const std::unique_ptr<BlockReader> bytes_;
  const std::string begin_;
  const bool skip_mark_;
  const std::stop_token stop_;
  // Of a compressed file
  std::unique_ptr<Decompressor> decompressor_;
  uint64_t made_ = 0;  // bytes of the text
  std::unique_ptr<char[]> buffer_;
};

}  // namespace parallelrun::plan
