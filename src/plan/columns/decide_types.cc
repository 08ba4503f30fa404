#include "plan/columns/decide_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "base/escape.h"
#include "plan/columns/block_types.h"
#include "plan/columns/dialect.h"
#include "plan/columns/sample.h"
#include "plan/columns/table_header.h"
#include "plan/csv_splitter.h"
#include "plan/listing.h"
#include "plan/row_files.h"
#include "plan/source.h"
#include "plan/text_reader.h"

namespace parallelrun::plan {
namespace {

// "12 GB", "640 KB", "87 bytes": for people.
std::string HumanSize(uint64_t bytes) {
  constexpr uint64_t kThousand = 1000;
  uint64_t unit = 1;
  std::string_view name = "bytes";
  for (const std::string_view larger : {"KB", "MB", "GB", "TB"}) {
    if (bytes / unit < kThousand) break;
    unit *= kThousand;
    name = larger;
  }
  return fmt::format("{} {}", (bytes + unit / 2) / unit, name);
}

// "12,345"
std::string Grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

// Bytes, by which a reading is looked at that may be wrong.
constexpr size_t kPart = 16 * 1024;

class TypesReader {
 public:
  TypesReader(const PlanInput& input, store::Store& store)
      : input_(input),
        store_(store),
        format_(RowSyntaxOf(input)),
        missing_(input.tabular.na_values, input.tabular.keep_default_na),
        files_(input, store),
        listing_(input, store) {}

  Result<std::optional<TypedTable>> Decide(const TypesLimit& limit) {
    if (const Status prepared = files_.Prepare(""); !prepared.ok()) return prepared.error();
    if (const Status listed = List(limit.names); !listed.ok()) return listed.error();
    const Sample sample = PlanSample(sizes_, complete_, limit.bytes);
    all_ = sample.all;
    rows_checked_ = limit.check_rows;
    share_ = limit.bytes / std::max<size_t>(sample.files.size(), 1);
    for (const SampleFile& file : sample.files) {
      if (const Status read = ReadFile(file); !read.ok()) return read.error();
    }
    if (columns_.empty()) return std::optional<TypedTable>();
    TypedTable table = Table(sample);
    if (const Status written = CheckWrittenTypes(table, input_); !written.ok()) {
      return written.error();
    }
    return std::optional(std::move(table));
  }

 private:
  Status List(size_t most) {
    while (names_.size() < most) {
      auto next = listing_.Next();
      if (!next.ok()) return next.error();
      if (!*next) {
        complete_ = true;
        return {};
      }
      std::string name((*next)->name);
      std::optional<store::Found> found = std::move((*next)->found);
      if (!found) {
        auto looked = Look(input_, store_, name);
        if (!looked.ok()) return looked.error();
        if (!*looked) continue;  // removed since it was listed
        found = std::move(**looked);
      }
      names_.push_back(std::move(name));
      sizes_.push_back(found->size);
    }
    return {};
  }

  Status ReadFile(const SampleFile& sampled) {
    const std::string& name = names_[sampled.file];
    auto opened = files_.Open(name);
    if (!opened.ok()) return opened.error();
    if (!opened->splitter) return {};  // removed since it was listed
    if (const Status header = TakeColumns(name, opened->header); !header.ok()) {
      return header.error().With(PlaceOf(input_));
    }
    if (columns_.empty()) return {};  // nothing but blank lines
    header_ = opened->header;
    if (opened->delimiter_at_end && at_end_.empty()) at_end_ = ShownAs(name);
    if (rows_checked_) {
      const Status cut = CutToTheEnd(*opened->splitter);
      if (!cut.ok()) return cut.error().With(PlaceOf(input_));
    }
    auto reader =
        TextReader::Open(store_, name, IsUtf8Encoding(input_.tabular.encoding), input_.stop);
    if (!reader.ok()) return reader.error().With(PlaceOf(input_));
    if ((*reader)->compressed()) {
      const Status front = ReadFront(**reader, name, *opened);
      return front.ok() ? front : Status(front.error().With(PlaceOf(input_)));
    }
    for (const SampleBlock& block : sampled.blocks) {
      const bool begins = block.begin == 0;
      const uint64_t begin = begins ? opened->begin : block.begin;
      if (begin >= block.end) continue;
      BlockPlace place{ShownAs(name),           begin, 0, begins, block.end >= sizes_[sampled.file],
                       opened->delimiter_at_end};
      if (begins) {
        const auto before = (*reader)->LineEndsBefore(begin);
        if (!before.ok()) return before.error().With(PlaceOf(input_));
        place.line = 1 + *before;
      }
      const Status read = ReadBlock(**reader, place, block.end);
      if (!read.ok()) return read.error().With(PlaceOf(input_));
    }
    return {};
  }

  // What the plan of a run refuses is found here too.
  static Status CutToTheEnd(RowSplitter& splitter) {
    while (true) {
      const auto slice = splitter.Next(splitter.compressed() ? std::numeric_limits<uint64_t>::max()
                                                             : kMostSliceBytes);
      if (!slice.ok()) return slice.error();
      if (!*slice) return {};
    }
  }

  BadRowsWanted BadOnes() const {
    return {rows_checked_ && input_.tabular.bad_rows == api::BadRows::kFail,
            IsUtf8Encoding(input_.tabular.encoding)};
  }

  std::string ShownAs(const std::string& name) const {
    return JoinPath(std::string(LastPart(store_.Location(""))), name);
  }

  // The front of a compressed file: how much it holds nobody can tell without reading it, and what
  // stands in its middle neither. Its share of what may be read, and what the files before it left.
  Status ReadFront(TextReader& reader, const std::string& name, const RowFiles::Opened& file) {
    budget_ += share_;
    const auto before = reader.LineEndsBefore(file.begin);
    if (!before.ok()) return before.error();
    BlockReading reading(
        format_, missing_, columns_.size(),
        {ShownAs(name), file.begin, 1 + *before, true, true, file.delimiter_at_end},
        BlockReading::From::kRow, BadOnes());
    reader.Seek(file.begin);
    uint64_t taken = 0;
    bool ended = false;
    while (taken < budget_ && !ended && !reading.given_up()) {
      if (const Status filled = reader.Fill(); !filled.ok()) return filled;
      KeepFront(reader.rest());
      reading.Feed(reader.rest());
      ended = reader.rest().empty();
      taken += reader.rest().size();
      reader.Pass(reader.rest().size());
    }
    if (ended) reading.Finish();
    if (!ended || reading.given_up()) all_ = false;
    budget_ -= std::min(taken, budget_);
    decompressed_ += taken;
    return Take(reading);
  }

  std::string Dialect() const { return DialectAdvice(front_, counts_, input_); }

  // Of the first file: what people are asked about is in most files the same.
  void KeepFront(std::string_view bytes) {
    if (front_.empty()) front_ = header_ + std::string(bytes.substr(0, kDialectFront));
  }

  Status Take(const BlockReading& reading) {
    for (size_t i = 0; i < order_.size(); ++i) seen_[order_[i]].Append(reading.columns()[i]);
    counts_.rows += reading.rows();
    counts_.wide += reading.wide_rows();
    counts_.few += reading.short_rows();
    if (reading.bad_row()) {
      const BadRow& bad = *reading.bad_row();
      return Error{Code::kInvalid,
                   fmt::format("{}:{}: the row has {}: fix the file, or write badRows: Skip{}{}",
                               Printable(bad.place.file, 4096), bad.place.line, bad.what,
                               Dialect().empty() ? "" : "; ", Dialect())};
    }
    return {};
  }

  // The first file's columns are those of the table; the others have the same, in any order.
  Status TakeColumns(const std::string& name, const std::string& header) {
    std::vector<std::string> names;
    if (input_.tabular.header == api::HeaderMode::kNone) {
      if (!columns_.empty()) return {};
      auto file = CsvSplitter::Open(store_, name, FormatOf(input_));
      if (!file.ok()) return file.error();
      const auto row = (*file)->TakeHeader();
      if (!row.ok()) return row.error();
      names = NumberedNames(*row, input_);
    } else {
      names = NamesOf(header, input_);
    }
    if (names.empty()) return {};
    if (columns_.empty()) {
      columns_ = names;
      seen_.resize(columns_.size());
    } else if (const std::string other = DifferenceOfColumns(columns_, names); !other.empty()) {
      return OtherColumns(store_.Location(name), other);
    }
    order_.clear();
    for (const std::string& one : names) {
      order_.push_back(
          static_cast<size_t>(std::find(columns_.begin(), columns_.end(), one) - columns_.begin()));
    }
    return {};
  }

  // `take` is called with each part in turn, until it returns false.
  template <typename Take>
  static Status EachPart(TextReader& reader, uint64_t begin, uint64_t end, Take take) {
    reader.Seek(begin);
    while (reader.offset() < end) {
      if (const Status filled = reader.Fill(); !filled.ok()) return filled;
      const uint64_t left = end - std::min(end, reader.offset());
      if (reader.rest().empty() || !take(reader.rest().substr(0, left))) break;
      reader.Pass(reader.rest().size());
    }
    return {};
  }

  Status ReadBlock(TextReader& reader, const BlockPlace& place, uint64_t end) {
    using From = BlockReading::From;
    const bool quotes = !place.begins_row && input_.tabular.quoted_newlines && format_.quote != 0;
    const size_t columns = columns_.size();
    BlockReading first(format_, missing_, columns, place,
                       place.begins_row ? From::kRow : From::kOutsideQuotes, BadOnes());
    BlockReading second(format_, missing_, columns, place, From::kWithinQuotes);
    // A wrong reading is mostly told by its first rows, and left there.
    uint64_t second_end = quotes ? place.offset : end;
    bool left = !quotes;
    Status read = EachPart(reader, place.offset, end, [&](std::string_view bytes) {
      KeepFront(bytes);
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
    if (read.ok() && quotes && !IsCertain(first, second)) {
      read = EachPart(reader, second_end, end, [&](std::string_view bytes) {
        second.Feed(bytes);
        return !second.given_up();
      });
      second.Finish();
    }
    if (!read.ok()) return read;
    const BlockReading* chosen = quotes ? Choose(first, second) : &first;
    if (chosen == nullptr) return {};
    if (chosen->given_up()) all_ = false;
    return Take(*chosen);
  }

  TypedTable Table(const Sample& sample) const {
    TypedTable table;
    table.all = all_;
    table.no_rows = all_ && counts_.rows == 0;
    table.delimiter_at_end = at_end_;
    table.dialect = Dialect();
    if (!all_) {
      const uint64_t total = std::accumulate(sizes_.begin(), sizes_.end(), uint64_t{0});
      table.from = HumanSize(decompressed_ > 0 ? decompressed_ : sample.bytes);
      if (decompressed_ > 0) {
        table.from += ", decompressed";  // of how much nobody knows
      } else if (complete_) {
        table.from += " of " + HumanSize(total);
      }
      if (names_.size() > 1) {
        table.from += fmt::format(", {} of {}{} files", Grouped(sample.files.size()),
                                  complete_ ? "" : "the first ", Grouped(names_.size()));
      }
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      const DecidedType type = DecideType(seen_[i].bits(), all_);
      table.columns.push_back(
          {columns_[i], IsRawName(columns_[i], input_), type, ReasonOf(type, seen_[i])});
    }
    return table;
  }

  const PlanInput& input_;
  store::Store& store_;
  const RowSyntax format_;
  const MissingWords missing_;
  RowFiles files_;
  Listing listing_;
  std::vector<std::string> names_;
  std::vector<uint64_t> sizes_;
  bool complete_ = false;  // the listing came to its end
  bool all_ = false;
  bool rows_checked_ = false;
  // Of compressed files, in bytes of what they hold.
  uint64_t share_ = 0;
  uint64_t budget_ = 0;
  uint64_t decompressed_ = 0;
  std::vector<std::string> columns_;
  std::vector<size_t> order_;  // which of them each column of the file at hand is
  std::vector<SeenColumn> seen_;
  std::string at_end_;  // the first file whose rows end with a delimiter, as it is told
  RowCounts counts_;
  std::string header_;  // of the file at hand
  std::string front_;   // of the first one: its header, and rows
};

}  // namespace

const TypesLimit kSampleLimit = {kMostSampleBytes, kMostSampleNames, false};
const TypesLimit kWholeInput = {std::numeric_limits<uint64_t>::max(),
                                std::numeric_limits<size_t>::max(), true};

Result<std::optional<TypedTable>> DecideTypes(const PlanInput& input, store::Store& store,
                                              const TypesLimit& limit) {
  return TypesReader(input, store).Decide(limit);
}

}  // namespace parallelrun::plan
