#include "plan/columns/decide_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stop_token>
#include <utility>

#include "base/escape.h"
#include "base/in_order.h"
#include "base/processors.h"
#include "plan/columns/dialect.h"
#include "plan/columns/sample.h"
#include "plan/columns/sample_reader.h"
#include "plan/columns/table_header.h"
#include "plan/listing.h"
#include "plan/source.h"

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

// What reads at once, at most: the sample is small enough for these, and each has memory of its
// own.
constexpr size_t kMostThreads = 4;

class TypesReader {
 public:
  TypesReader(const PlanInput& input, store::Store& store, const TypesLimit& limit)
      : input_(input),
        store_(store),
        limit_(limit),
        ended_with_job_(input.stop, [this] { stop_.request_stop(); }),
        reader_(input, store, limit.check_rows, stop_.get_token()),
        listing_(input, store) {}

  Result<std::optional<TypedTable>> Decide() {
    if (const Status prepared = reader_.Prepare(); !prepared.ok()) return prepared.error();
    if (const Status listed = List(limit_.names); !listed.ok()) return listed.error();
    const Sample sample = PlanSample(sizes_, complete_, limit_.bytes);
    seen_.all = sample.all;
    share_ = limit_.bytes / std::max<size_t>(sample.files.size(), 1);
    if (const Status read = ReadFiles(sample.files); !read.ok()) return read.error();
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

  SampledFile Read(const SampleFile& file, size_t threads) const {
    return reader_.Read(names_[file.file], sizes_[file.file], file.blocks, columns_, threads);
  }

  // One after the other up to the one that says which columns there are; then several at once, or
  // the blocks of few.
  Status ReadFiles(const std::vector<SampleFile>& files) {
    const size_t threads =
        limit_.threads > 0 ? limit_.threads : std::min(kMostThreads, FindProcessors().AtOnce());
    size_t first = 0;
    for (; first < files.size() && columns_.empty(); ++first) {
      if (const Status taken = Take(Read(files[first], threads)); !taken.ok()) return taken;
    }
    const size_t rest = files.size() - first;
    const Makers makers{"types", std::max<size_t>(std::min(threads, rest), 1)};
    Status status;
    MakeInOrder(
        makers, rest, [&](size_t i) { return Read(files[first + i], threads / makers.threads); },
        [&](size_t, SampledFile file) {
          status = Take(std::move(file));
          // What is read behind it does not count.
          if (!status.ok()) stop_.request_stop();
          return status.ok();
        });
    return status;
  }

  Status Take(SampledFile file) {
    if (file.columns.empty()) return file.status;  // it is gone, or holds nothing but blank lines
    if (columns_.empty()) {
      columns_ = file.columns;
      seen_.columns.resize(columns_.size());
    }
    if (file.opened.delimiter_at_end && at_end_.empty()) at_end_ = reader_.ShownAs(file.name);
    if (file.reader) file.status = TakeFront(file);
    // Of the first file: what people are asked about is in most files the same.
    if (front_.empty() && (file.reader || !file.front.empty())) {
      front_ = file.opened.header + file.front;
    }
    seen_.Append(file.seen, file.order);
    if (!seen_.bad_row) return file.status;
    const BadRow& bad = *seen_.bad_row;
    const std::string dialect = Dialect();
    const Error error{Code::kInvalid,
                      fmt::format("{}:{}: the row has {}: fix the file, or write badRows: Skip{}{}",
                                  Printable(bad.place.file, 4096), bad.place.line, bad.what,
                                  dialect.empty() ? "" : "; ", dialect)};
    return error.With(PlaceOf(input_));
  }

  // The front of a compressed file: how much it holds nobody can tell without reading it. Its share
  // of what may be read, and what the files before it left; so these are read in turn.
  Status TakeFront(SampledFile& file) {
    budget_ += share_;
    const auto taken = reader_.ReadFront(file, budget_);
    if (!taken.ok()) return taken.error();
    budget_ -= std::min(*taken, budget_);
    decompressed_ += *taken;
    return {};
  }

  std::string Dialect() const { return DialectAdvice(front_, seen_.counts, input_); }

  TypedTable Table(const Sample& sample) const {
    TypedTable table;
    table.all = seen_.all;
    table.no_rows = seen_.all && seen_.counts.rows == 0;
    table.delimiter_at_end = at_end_;
    table.dialect = Dialect();
    if (!seen_.all) {
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
      const DecidedType type = DecideType(seen_.columns[i].bits(), seen_.all);
      table.columns.push_back(
          {columns_[i], IsRawName(columns_[i], input_), type, ReasonOf(type, seen_.columns[i])});
    }
    return table;
  }

  const PlanInput& input_;
  store::Store& store_;
  const TypesLimit limit_;
  std::stop_source stop_;  // of what is read: the job ended, or a file is refused
  const std::stop_callback<std::function<void()>> ended_with_job_;
  SampleReader reader_;
  Listing listing_;
  std::vector<std::string> names_;
  std::vector<uint64_t> sizes_;
  bool complete_ = false;  // the listing came to its end
  // Of compressed files, in bytes of what they hold.
  uint64_t share_ = 0;
  uint64_t budget_ = 0;
  uint64_t decompressed_ = 0;
  std::vector<std::string> columns_;
  SeenRows seen_;
  std::string at_end_;  // the first file whose rows end with a delimiter, as it is told
  std::string front_;   // of the first one: its header, and rows
};

}  // namespace

const TypesLimit kSampleLimit = {kMostSampleBytes, kMostSampleNames, false};
const TypesLimit kWholeInput = {std::numeric_limits<uint64_t>::max(),
                                std::numeric_limits<size_t>::max(), true};

Result<std::optional<TypedTable>> DecideTypes(const PlanInput& input, store::Store& store,
                                              const TypesLimit& limit) {
  return TypesReader(input, store, limit).Decide();
}

}  // namespace parallelrun::plan
