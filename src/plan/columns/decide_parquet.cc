#include "plan/columns/decide_parquet.h"

#include <utility>

#include "plan/listing.h"
#include "plan/parquet_splitter.h"
#include "plan/source.h"

namespace parallelrun::plan {

Result<ParquetTypes> DecideParquetTypes(const PlanInput& input, store::Store& store) {
  ParquetTypes types;
  NullReads reads;
  Listing listing(input, store);
  while (true) {
    const auto next = listing.Next();
    if (!next.ok()) return next.error();
    if (!*next) return types;
    if (input.stop.stop_requested()) {
      return Error{Code::kUnavailable, PlaceOf(input) + ": its files are not read: the job ended"};
    }
    const std::string name((*next)->name);
    auto columns = ReadParquetColumns(store, name, reads);
    if (!columns.ok() && columns.error().code == Code::kNotFound) continue;  // gone by now
    if (!columns.ok()) return columns.error().With(PlaceOf(input));
    if (columns->empty()) continue;
    if (const Status added = types.Add(store.Location(name), *std::move(columns)); !added.ok()) {
      return added.error().With(PlaceOf(input));
    }
  }
}

}  // namespace parallelrun::plan
