// Takes gzip and zstd apart, piece by piece: a file of a few kilobytes may hold terabytes, so
// nothing here grows with what it holds. Several members or frames in one file are one text.
// Memory: gzip 32 KiB, zstd up to 128 MiB, which its library takes for the longest reach; a file
// that wants more is an error. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"

namespace parallelrun::plan {

class Decompressor {
 public:
  virtual ~Decompressor() = default;

  struct Step {
    size_t used = 0;  // bytes of the input
    size_t made = 0;  // bytes of the output
  };
  // Takes what it can of `from`, which goes on behind what was used before, and writes what it can
  // into `to`. Nothing used of something and nothing made does not happen. With nothing more to
  // take it writes what it still holds. kInvalid: the bytes are not what they began as.
  virtual Result<Step> Run(std::string_view from, std::span<char> to) = 0;

  // Whether the input may end here.
  virtual bool whole() const = 0;
};

// By the first four bytes of a file; nullptr where they are of neither.
std::unique_ptr<Decompressor> MakeDecompressor(std::string_view begin);

}  // namespace parallelrun::plan
