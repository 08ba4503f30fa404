// `parallelrun run --limit N | --sample N | --only ITEM…`: which items of the inputs a run takes,
// for who tries a job on a few of them. The choice depends on the names that are there and on
// nothing else, so that the same words choose the same files again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/selection.h"
#include "base/error.h"
#include "cli/run/local_job.h"

namespace parallelrun::cli {

struct Chosen {
  api::Selection selection;
  std::string note;  // for the user: what is taken; "": everything
};

// Lists the inputs where --sample or --only is given; blocking I/O. kInvalid names the word that
// cannot be used, or the items that are not there.
Result<Chosen> ChooseItems(const SelectWords& words, const LocalJob& job);

// Where a name stands in a sample: those with the lowest ranks are in it. Pure.
uint64_t SampleRank(std::string_view input, std::string_view name);

}  // namespace parallelrun::cli
