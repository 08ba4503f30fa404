// Publishing (docs/ledger.md): the rows of all succeeded mini-batches, read back from the ledger in
// order, joined as their format says, into the sink, which shows exactly one complete output, or
// none. What is not this run's own is not replaced unless a person has said so. Blocking; runs on a
// thread of its own while the state does not change any more.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/data.h"
#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"
#include "ledger/ledger.h"
#include "output/result_rows.h"
#include "output/side_files.h"
#include "output/sink.h"
#include "output/store/stored_side_files.h"

namespace parallelrun::output {

// Of a job that stages side files. They are moved to their places before its rows are published.
struct StagedOutput {
  // On a volume these two, and in a store the third.
  Files* files = nullptr;
  StagedPlaces places = {};
  std::optional<StoredSidePlaces> stored = {};
  // Their list is the output, in place of rows; else it stands in the index.
  bool list_alone = false;
  std::function<Status()> newest;  // kStale: a newer epoch is there
};

struct PublishOptions {
  RowOrder order = RowOrder::kMiniBatch;
  api::OutputFormat format = api::OutputFormat::kText;
  // Of kCsv and kParquet; empty: those of the first mini-batch with rows.
  std::vector<std::string> columns{};
  std::optional<StagedOutput> staged{};  // exactly where the state says that results begin so
};

struct Publication {
  job::Published published;
  std::string set_aside;  // where what stood in the output's place is now; empty: nothing did
  uint64_t lines = 0;     // of kText, without a header: more than rows where rows hold line breaks
};

// kNoSpace, kUnavailable: nothing was published as far as is known, a later call starts over.
// kStale: a newer epoch took the token away, so this coordinator is superseded. kExists: something
// that is not this run's is in the output's place, or another run has claimed it. kInvalid: a
// result does not fit the output's columns, or a side file is not there any more. Memory stays flat
// in the size of the output, but for the footer of Parquet; by completion it takes 4 bytes a
// mini-batch.
Result<Publication> PublishOutput(Sink& sink, const ledger::Ledger& ledger,
                                  const job::JobState& state, const PublishOptions& options);

}  // namespace parallelrun::output
