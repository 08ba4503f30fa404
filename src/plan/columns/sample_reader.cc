#include "plan/columns/sample_reader.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/in_order.h"
#include "plan/columns/dialect.h"
#include "plan/columns/table_header.h"
#include "plan/csv_splitter.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

// Bytes, by which a reading is looked at that may be wrong.
constexpr size_t kPart = 16 * 1024;

PlanInput EndedBy(PlanInput input, std::stop_token stop) {
  input.stop = std::move(stop);
  return input;
}

// `take` is called with each part in turn, until it returns false.
template <typename Take>
Status EachPart(TextReader& reader, uint64_t begin, uint64_t end, Take take) {
  reader.Seek(begin);
  while (reader.offset() < end) {
    if (const Status filled = reader.Fill(); !filled.ok()) return filled;
    const uint64_t left = end - std::min(end, reader.offset());
    if (reader.rest().empty() || !take(reader.rest().substr(0, left))) break;
    reader.Pass(reader.rest().size());
  }
  return {};
}

// What the plan of a run refuses is found here too.
Status CutToTheEnd(RowSplitter& splitter) {
  while (true) {
    const auto slice = splitter.Next(splitter.compressed() ? std::numeric_limits<uint64_t>::max()
                                                           : kMostSliceBytes);
    if (!slice.ok()) return slice.error();
    if (!*slice) return {};
  }
}

}  // namespace

SampleReader::SampleReader(PlanInput input, store::Store& store, bool check_rows,
                           std::stop_token stop)
    : input_(EndedBy(std::move(input), std::move(stop))),
      store_(store),
      check_rows_(check_rows),
      format_(RowSyntaxOf(input_)),
      missing_(input_.tabular.na_values, input_.tabular.keep_default_na),
      files_(input_, store) {}

Status SampleReader::Prepare() { return files_.Prepare(""); }

std::string SampleReader::ShownAs(const std::string& name) const {
  return JoinPath(std::string(LastPart(store_.Location(""))), name);
}

BadRowsWanted SampleReader::BadOnes() const {
  return {check_rows_ && input_.tabular.bad_rows == api::BadRows::kFail,
          IsUtf8Encoding(input_.tabular.encoding)};
}

SampledFile SampleReader::Read(const std::string& name, uint64_t size,
                               const std::vector<SampleBlock>& blocks,
                               const std::vector<std::string>& table, size_t threads) const {
  SampledFile file;
  file.name = name;
  auto opened = files_.Open(name);
  if (!opened.ok()) {
    file.status = opened.error();
    return file;
  }
  file.opened = std::move(*opened);
  if (!file.opened.splitter) return file;  // removed since it was listed
  file.status = TakeColumns(table, file);
  if (file.status.ok() && !file.columns.empty()) {
    file.status = ReadBlocks(size, blocks, threads, file);
  }
  file.opened.splitter.reset();
  if (!file.status.ok()) file.status = file.status.error().With(PlaceOf(input_));
  return file;
}

// The first file's columns are those of the table; the others have the same, in any order.
Status SampleReader::TakeColumns(const std::vector<std::string>& table, SampledFile& file) const {
  const bool named = input_.tabular.header != api::HeaderMode::kNone;
  if (named) {
    file.columns = NamesOf(file.opened.header, input_);
  } else if (table.empty()) {
    auto text = CsvSplitter::Open(store_, file.name, FormatOf(input_));
    if (!text.ok()) return text.error();
    const auto row = (*text)->TakeHeader();
    if (!row.ok()) return row.error();
    file.columns = NumberedNames(*row, input_);
  }
  if (file.columns.empty()) file.columns = table;
  if (table.empty() || file.columns == table) {
    file.order.resize(file.columns.size());
    std::iota(file.order.begin(), file.order.end(), size_t{0});
    return {};
  }
  if (const std::string other = DifferenceOfColumns(table, file.columns); !other.empty()) {
    return OtherColumns(store_.Location(file.name), other);
  }
  for (const std::string& one : file.columns) {
    file.order.push_back(
        static_cast<size_t>(std::find(table.begin(), table.end(), one) - table.begin()));
  }
  return {};
}

Status SampleReader::ReadBlocks(uint64_t size, const std::vector<SampleBlock>& blocks,
                                size_t threads, SampledFile& file) const {
  file.seen.columns.resize(file.columns.size());
  if (check_rows_) {
    if (const Status cut = CutToTheEnd(*file.opened.splitter); !cut.ok()) return cut;
  }
  auto first = OpenText(file.name);
  if (!first.ok()) return first.error();
  if ((*first)->compressed()) {
    file.reader = std::move(*first);
    return {};
  }
  const auto place = [&](const SampleBlock& block) {
    const bool begins = block.begin == 0;
    return BlockPlace{ShownAs(file.name),
                      begins ? file.opened.begin : block.begin,
                      0,
                      begins,
                      block.end >= size,
                      file.opened.delimiter_at_end};
  };
  const size_t columns = file.columns.size();
  const Makers makers{"types", std::min(threads, blocks.size())};
  const auto read = [&](size_t i) {
    if (i == 0 || makers.threads == 1) {
      return ReadBlock(**first, place(blocks[i]), blocks[i].end, columns);
    }
    const auto own = OpenText(file.name);
    if (own.ok()) return ReadBlock(**own, place(blocks[i]), blocks[i].end, columns);
    Block block;
    block.status = own.error();
    return block;
  };
  Status status;
  MakeInOrder(makers, blocks.size(), read, [&](size_t, const Block& block) {
    status = block.status;
    if (!status.ok()) return false;
    if (file.front.empty()) file.front = block.front;
    if (block.seen) file.seen.Append(*block.seen);
    return !file.seen.bad_row;
  });
  return status;
}

Result<std::unique_ptr<TextReader>> SampleReader::OpenText(const std::string& name) const {
  return TextReader::Open(store_, name, IsUtf8Encoding(input_.tabular.encoding), input_.stop);
}

SampleReader::Block SampleReader::ReadBlock(TextReader& reader, BlockPlace place, uint64_t end,
                                            size_t columns) const {
  using From = BlockReading::From;
  Block block;
  if (place.offset >= end) return block;
  if (place.begins_row) {
    const auto before = reader.LineEndsBefore(place.offset);
    if (!before.ok()) {
      block.status = before.error();
      return block;
    }
    place.line = 1 + *before;
  }
  const bool quotes = !place.begins_row && input_.tabular.quoted_newlines && format_.quote != 0;
  BlockReading first(format_, missing_, columns, place,
                     place.begins_row ? From::kRow : From::kOutsideQuotes, BadOnes());
  BlockReading second(format_, missing_, columns, place, From::kWithinQuotes);
  // A wrong reading is mostly told by its first rows, and left there.
  uint64_t second_end = quotes ? place.offset : end;
  bool left = !quotes;
  block.status = EachPart(reader, place.offset, end, [&](std::string_view bytes) {
    if (block.front.empty()) block.front = bytes.substr(0, kDialectFront);
    first.Feed(bytes);
    for (size_t at = 0; at < bytes.size() && !left; at += kPart) {
      const std::string_view part = bytes.substr(at, kPart);
      second.Feed(part);
      second_end += part.size();
      left = IsCertain(first, second);
    }
    return !first.given_up() || !(left || second.given_up());
  });
  first.Finish();
  if (block.status.ok() && quotes && !IsCertain(first, second)) {
    block.status = EachPart(reader, second_end, end, [&](std::string_view bytes) {
      second.Feed(bytes);
      return !second.given_up();
    });
    second.Finish();
  }
  const BlockReading* chosen = quotes ? Choose(first, second) : &first;
  if (block.status.ok() && chosen != nullptr) block.seen = chosen->seen();
  return block;
}

// What stands in its middle nobody can tell either.
Result<uint64_t> SampleReader::ReadFront(SampledFile& file, uint64_t most) const {
  TextReader& reader = *file.reader;
  const auto before = reader.LineEndsBefore(file.opened.begin);
  if (!before.ok()) return before.error().With(PlaceOf(input_));
  BlockReading reading(format_, missing_, file.columns.size(),
                       {ShownAs(file.name), file.opened.begin, 1 + *before, true, true,
                        file.opened.delimiter_at_end},
                       BlockReading::From::kRow, BadOnes());
  reader.Seek(file.opened.begin);
  uint64_t taken = 0;
  bool ended = false;
  while (taken < most && !ended && !reading.given_up()) {
    if (const Status filled = reader.Fill(); !filled.ok()) {
      return filled.error().With(PlaceOf(input_));
    }
    if (file.front.empty()) file.front = reader.rest().substr(0, kDialectFront);
    reading.Feed(reader.rest());
    ended = reader.rest().empty();
    taken += reader.rest().size();
    reader.Pass(reader.rest().size());
  }
  if (ended) reading.Finish();
  file.seen = reading.seen();
  file.seen.all = file.seen.all && ended;
  return taken;
}

}  // namespace parallelrun::plan
