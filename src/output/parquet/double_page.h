// A page of whole numbers, as a page of numbers: where other mini-batches have numbers in the
// column. Bytes are not trusted. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "parquet/column.h"
#include "parquet/page.h"

namespace parallelrun::output {

// No page of whole numbers that is taken is longer, compressed or not: workers make them of 1 MB.
inline constexpr uint32_t kMostIntegerPage = uint32_t{64} << 20;

struct DoublePage {
  parquet::Page page;
  std::string bytes;  // compressed as those were
};

// `bytes` are all of `page`, of a column of int64, or of lists of them. kCorrupt: they are not;
// kInvalid: a number is none that a double holds, and the message begins with "has".
Result<DoublePage> ToDoubles(const parquet::Page& page, std::string_view bytes,
                             parquet::Codec codec, const parquet::Column& column);

}  // namespace parallelrun::output
