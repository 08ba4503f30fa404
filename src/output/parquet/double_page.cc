#include "output/parquet/double_page.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/escape.h"
#include "output/parquet/compression.h"

namespace parallelrun::output {
namespace {

constexpr double kBeyond = 0x1p63;  // the first number that an int64 does not hold

Error NoPage() { return {Code::kCorrupt, "a page of whole numbers cannot be read"}; }

}  // namespace

Result<DoublePage> ToDoubles(const parquet::Page& page, std::string_view bytes,
                             parquet::Codec codec, const parquet::Column& column) {
  if (page.decoded > kMostIntegerPage || bytes.size() != page.bytes) return NoPage();
  const bool compressed = codec == parquet::Codec::kZstd;
  Result<std::string> decoded =
      compressed ? Decompressed(bytes, page.decoded) : Result<std::string>(std::string(bytes));
  if (!decoded.ok()) return decoded.error();
  // Levels first, each with its length in front; then the values that are there.
  Decoder levels(*decoded);
  if (column.list) levels.Text();
  levels.Text();
  if (!levels.ok() || levels.left() % sizeof(int64_t) != 0) return NoPage();
  for (size_t at = decoded->size() - levels.left(); at < decoded->size(); at += sizeof(int64_t)) {
    int64_t whole = 0;
    std::memcpy(&whole, decoded->data() + at, sizeof whole);
    const auto number = static_cast<double>(whole);
    if (number == kBeyond || static_cast<int64_t>(number) != whole) {
      return Error{Code::kInvalid,
                   fmt::format("has {} in the column {}, where other mini-batches have numbers of "
                               "type double, which do not hold it. Have run() return it as a text",
                               whole, Printable(column.name, kShownShort))};
    }
    std::memcpy(decoded->data() + at, &number, sizeof number);
  }
  DoublePage made{page, std::move(*decoded)};
  if (compressed) {
    Result<std::string> stored = Compressed(made.bytes);
    if (!stored.ok()) return stored.error();
    made.bytes = std::move(*stored);
    made.page.bytes = static_cast<uint32_t>(made.bytes.size());
  }
  return made;
}

}  // namespace parallelrun::output
