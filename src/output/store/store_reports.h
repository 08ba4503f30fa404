// Reports of a run as objects beside its output, so that what explains a job outlives its logs
// (docs/ledger.md, "Reports beside it"). Whoever puts them holds the output's claim. Blocking I/O;
// NextReportStep is pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "output/store/store_sink.h"
#include "store/write_store.h"

namespace parallelrun::output {

// "rows.txt.run/report.html"
std::string ReportNameOf(const std::string& output, const std::string& report);

struct Report {
  std::string name;  // "report.html"
  // Nothing: the run has none, and one that is there becomes an empty object.
  std::optional<uint64_t> bytes;
  // Fewer only at the end.
  std::function<Result<size_t>(uint64_t offset, std::span<char> to)> read;
};

struct ReportOptions {
  std::string output;  // its name in the store
  OutputMark mark;
  std::function<Status()> newest;  // kStale when a newer epoch was claimed
};

// What is to be done about what stands in a report's place: kComplete or kForeign. `of_output`: the
// mark of the output that is there, if it has one.
StoreStep NextReportStep(const std::optional<store::Stored>& there, const OutputMark& own,
                         const std::optional<OutputMark>& of_output);

// kExists: what is there stays, and is named. kStale: a newer epoch puts its own.
Status PutReport(store::WriteStore& store, const ReportOptions& options, const Report& report);

}  // namespace parallelrun::output
