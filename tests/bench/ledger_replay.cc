// bench_ledger_replay FOLDER [MINI-BATCHES]: writes the ledger of a job whose mini-batches have all
// been committed into a new folder, and measures what a coordinator does with it when it starts:
// claim an epoch, verify and replay the history, hold its state in memory.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/files.h"
#include "coordinator/ledger/ledger.h"
#include "job/job_state.h"

namespace parallelrun {
namespace {

constexpr uint64_t kFilesOfChunk = 4'096;
constexpr uint64_t kResultsOfSync = 10'000;
constexpr int kRuns = 5;

struct Epoch {
  JobState state;
  std::unique_ptr<Ledger> ledger;
};

Result<Epoch> Claim(Files& files, const std::string& folder, uint64_t nonce) {
  Epoch epoch;
  LedgerOptions options;
  options.state_folder = folder;
  options.nonce = nonce;
  options.new_run_id = 1;
  Result<std::unique_ptr<Ledger>> ledger = Ledger::Claim(
      files, options, [&epoch](const Record& record, const Place& place, const Place& rows) {
        return epoch.state.Apply(record, place, rows);
      });
  if (!ledger.ok()) return ledger.error();
  epoch.ledger = std::move(*ledger);
  return epoch;
}

PlanChunkRecord Chunk(uint64_t first, uint64_t count, std::string& names) {
  names.clear();
  for (uint64_t i = first; i < first + count; ++i) {
    if (!names.empty()) names.push_back('\0');
    names += fmt::format("f{:07}", i);
  }
  FilesChunk content;
  content.root = "/in";
  content.names = names;
  content.stamps.assign(count, {});
  return {first, first, 0, std::move(content)};
}

Status Write(Files& files, const std::string& folder, uint64_t batches) {
  Result<Epoch> epoch = Claim(files, folder, 1);
  if (!epoch.ok()) return epoch.error();
  Ledger& ledger = *epoch->ledger;
  SettingsRecord settings;
  settings.generation = 1;
  settings.plan_settings = settings.job = "{}";
  if (Status begun = ledger.Begin(settings, std::nullopt); !begun.ok()) return begun;
  std::string names;
  for (uint64_t first = 0; first < batches; first += kFilesOfChunk) {
    ledger.Append(Chunk(first, std::min(kFilesOfChunk, batches - first), names));
  }
  ledger.Append(PlanEndRecord{batches, batches});
  for (uint64_t id = 0; id < batches; ++id) {
    ResultRecord result;
    result.id = id;
    result.fence = {ledger.epoch(), id + 1};
    result.items_succeeded = result.row_count = 1;
    result.rows = "/in/f0000000 0.123456\n";
    ledger.Append(result);
    if (id % kResultsOfSync != 0) continue;
    if (const Result<uint64_t> flushed = ledger.Flush(); !flushed.ok()) return flushed.error();
  }
  const Result<uint64_t> flushed = ledger.Flush();
  return flushed.ok() ? Status() : Status(flushed.error());
}

// Each run is an epoch more, as a coordinator that is started again and again has it.
Status Measure(Files& files, const std::string& folder, uint64_t batches) {
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    Result<Epoch> epoch = Claim(files, folder, 2 + static_cast<uint64_t>(run));
    if (!epoch.ok()) return epoch.error();
    if (Status begun = epoch->ledger->Begin(std::nullopt, std::nullopt); !begun.ok()) return begun;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (epoch->state.counts().succeeded != batches) {
      return Error{Code::kInternal, "the replay does not have all mini-batches"};
    }
    fmt::print("{} committed mini-batches replayed in {:.2f} s\n", batches, took.count());
  }
  return {};
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_ledger_replay FOLDER [MINI-BATCHES]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const uint64_t batches = argc > 2 ? std::stoull(argv[2]) : 1'000'000;
  const std::unique_ptr<Files> files = MakeSystemFiles();
  Status status = Write(*files, folder, batches);
  if (status.ok()) status = Measure(*files, folder, batches);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
