// Whether a column of a Parquet file has missing values where its footer does not count them, as
// the footers of Impala, of old parquet-mr and of parquet-rs do not: whoever takes it for one that
// may have some reads ids as 4.0. The file's column index is asked, and else the front of each
// page. Bytes are not trusted: what cannot be understood tells nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "plan/block_reader.h"

namespace parallelrun::plan {

// The values of a column in one row group, as the footer says where they are.
struct ParquetChunk {
  uint64_t offset = 0;  // of the first page's header
  uint64_t bytes = 0;
  uint64_t values = 0;  // with the missing ones
  int64_t codec = 0;    // Parquet's number
  uint64_t index_offset = 0;
  uint64_t index_bytes = 0;  // 0: there is no column index
};

enum class Nulls { kUntold, kNone, kSome };

// By a column index. Pure.
Nulls NullsByIndex(std::string_view index);

// What the front of a page tells of it.
struct PageNulls {
  Nulls nulls = Nulls::kUntold;
  uint64_t values = 0;  // 0: it is no page of data
  uint64_t size = 0;    // bytes to the next one
};
// Of a column at the top that may have missing values, and is no list. nullopt: `bytes` do not
// begin with the whole header of a page. Pure.
std::optional<PageNulls> ReadPageNulls(std::string_view bytes, int64_t codec);

// The most reads for one input: in a store each is a request.
inline constexpr uint64_t kMostNullReads = 1'000;

// Of one chunk, in `reads` reads at most, which are taken off. Errors are those of the store.
Result<Nulls> FindNulls(const BlockReader& file, const ParquetChunk& chunk, uint64_t& reads);

}  // namespace parallelrun::plan
