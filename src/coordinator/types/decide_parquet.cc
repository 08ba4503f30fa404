#include "coordinator/types/decide_parquet.h"

#include <utility>

#include "coordinator/plan/listing.h"
#include "coordinator/plan/parquet_splitter.h"
#include "coordinator/plan/source.h"

namespace parallelrun {

Result<ParquetTypes> DecideParquetTypes(const PlanInput& input, const PlanDisk& disk) {
  ParquetTypes types;
  Listing listing(disk.files, ListingOf(input, disk));
  while (true) {
    const auto name = listing.Next();
    if (!name.ok()) return name.error();
    if (!*name) return types;
    if (input.stop.stop_requested()) {
      return Error{Code::kUnavailable, PlaceOf(input) + ": its files are not read: the job ended"};
    }
    const std::string path = JoinPath(listing.folder(), **name);
    auto columns = ReadParquetColumns(disk.files, path);
    if (!columns.ok() && columns.error().code == Code::kNotFound) continue;  // gone by now
    if (!columns.ok()) return columns.error().With(PlaceOf(input));
    if (columns->empty()) continue;
    if (const Status added = types.Add(path, *std::move(columns)); !added.ok()) {
      return added.error().With(PlaceOf(input));
    }
  }
}

}  // namespace parallelrun
