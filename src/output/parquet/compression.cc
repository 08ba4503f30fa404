#include "output/parquet/compression.h"

#include <zstd.h>

namespace parallelrun::output {
namespace {

constexpr int kLevel = 1;  // as workers have it

}  // namespace

Result<std::string> Compressed(std::string_view bytes) {
  std::string stored(ZSTD_compressBound(bytes.size()), '\0');
  const size_t made =
      ZSTD_compress(stored.data(), stored.size(), bytes.data(), bytes.size(), kLevel);
  if (ZSTD_isError(made) != 0) return Error{Code::kInternal, "zstd cannot compress a page"};
  stored.resize(made);
  return stored;
}

Result<std::string> Decompressed(std::string_view bytes, uint32_t size) {
  std::string decoded(size, '\0');
  const size_t made = ZSTD_decompress(decoded.data(), size, bytes.data(), bytes.size());
  if (ZSTD_isError(made) != 0 || made != size) {
    return Error{Code::kCorrupt, "a page cannot be decompressed"};
  }
  return decoded;
}

}  // namespace parallelrun::output
