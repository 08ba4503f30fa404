#include "plan/line_splitter.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace parallelrun::plan {

Result<std::unique_ptr<LineSplitter>> LineSplitter::Open(store::Store& store,
                                                         const std::string& name,
                                                         std::stop_token stop) {
  auto reader = TextReader::Open(store, name, true, std::move(stop));
  if (!reader.ok()) return reader.error();
  return std::unique_ptr<LineSplitter>(new LineSplitter(std::move(*reader)));
}

Result<std::optional<job::Slice>> LineSplitter::Next(uint64_t lines) {
  TextReader& reader = *reader_;
  const uint64_t wanted = std::clamp<uint64_t>(lines, 1, std::numeric_limits<uint32_t>::max());
  Status filled = reader.rest().empty() ? reader.Fill() : Status();
  const uint64_t begin = reader.offset();
  uint32_t found = 0;
  bool content = false;  // in the line at hand
  while (filled.ok() && !reader.rest().empty() && found < wanted) {
    const std::string_view rest = reader.rest();
    const size_t end = std::min(rest.find('\n'), rest.size());
    content =
        content || rest.substr(0, end).find_first_not_of(" \t\r\v\f") != std::string_view::npos;
    if (end < rest.size()) {
      if (content) ++found;
      content = false;
    }
    reader.Pass(std::min(end + 1, rest.size()));
    if (reader.rest().empty()) filled = reader.Fill();
  }
  if (!filled.ok()) return filled.error();
  if (content) ++found;  // the last line has no LF
  if (found == 0) return std::optional<job::Slice>();
  return std::optional<job::Slice>(job::Slice{begin, reader.offset() - begin, found});
}

}  // namespace parallelrun::plan
