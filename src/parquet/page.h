// What stands in front of each page of a column: pages of data, version 1, without a dictionary.
// Bytes are not trusted. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parallelrun::parquet {

struct Page {
  uint32_t values = 0;   // missing ones too, and of a list its values
  uint32_t decoded = 0;  // bytes, before they were compressed
  uint32_t bytes = 0;    // that follow in the file

  friend bool operator==(const Page&, const Page&) = default;
};

// No header that is taken is longer.
inline constexpr size_t kMostPageHeader = 1024;

struct ReadPage {
  Page page;
  size_t header = 0;  // bytes of it
};

// nullopt: `bytes` do not begin with a whole header of such a page.
std::optional<ReadPage> ReadPageHeader(std::string_view bytes);

std::string PageHeader(const Page& page);

// The bytes of a page, not compressed, of so many missing values; of a list's column, too.
std::string MissingValues(uint32_t values, bool list);

}  // namespace parallelrun::parquet
