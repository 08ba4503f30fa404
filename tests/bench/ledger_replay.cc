// bench_ledger_replay FOLDER [MINI-BATCHES]: writes the ledger of a job whose mini-batches have all
// been committed into a new folder, and measures what a coordinator does with it when it starts:
// claim an epoch, verify and replay the history, hold its state in memory, publish the output in
// either order. Each run is a process of its own, so that the peak of its memory is its own too.
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "base/files.h"
#include "job/job_state.h"
#include "ledger/ledger.h"
#include "output/folder_sink.h"
#include "output/publisher.h"

namespace parallelrun {
namespace {

constexpr uint64_t kFilesOfChunk = 4'096;
constexpr uint64_t kResultsOfSync = 10'000;
constexpr uint64_t kWindow = 64;  // mini-batches that are done in another order than planned
constexpr int kRuns = 6;
constexpr char kOutput[] = "rows.txt";

struct Epoch {
  job::JobState state;
  std::unique_ptr<ledger::Ledger> ledger;
};

Result<Epoch> Claim(Files& files, const std::string& folder, uint64_t nonce) {
  Epoch epoch;
  ledger::LedgerOptions options;
  options.state_folder = folder;
  options.output_folder = folder + "/out";
  options.output_file = kOutput;
  options.nonce = nonce;
  options.new_run_id = 1;
  Result<std::unique_ptr<ledger::Ledger>> ledger = ledger::Ledger::Claim(
      files, options,
      [&epoch](const job::Record& record, const job::Place& place, const job::Place& rows) {
        return epoch.state.Apply(record, place, rows);
      });
  if (!ledger.ok()) return ledger.error();
  epoch.ledger = std::move(*ledger);
  return epoch;
}

job::PlanChunkRecord Chunk(uint64_t first, uint64_t count, std::string& names) {
  names.clear();
  for (uint64_t i = first; i < first + count; ++i) {
    if (!names.empty()) names.push_back('\0');
    names += fmt::format("f{:07}", i);
  }
  job::FilesChunk content;
  content.root = "/in";
  content.names = names;
  content.versions.assign(count, job::kNoVersion);
  return {first, first, 0, std::move(content)};
}

Status Write(Files& files, const std::string& folder, uint64_t batches) {
  Result<Epoch> epoch = Claim(files, folder, 1);
  if (!epoch.ok()) return epoch.error();
  ledger::Ledger& ledger = *epoch->ledger;
  job::SettingsRecord settings;
  settings.generation = 1;
  settings.plan_settings = settings.job = "{}";
  settings.may_replace = true;  // each run publishes
  if (Status begun = ledger.Begin(settings, std::nullopt); !begun.ok()) return begun;
  std::string names;
  for (uint64_t first = 0; first < batches; first += kFilesOfChunk) {
    ledger.Append(Chunk(first, std::min(kFilesOfChunk, batches - first), names));
    if (const Result<uint64_t> flushed = ledger.Flush(); !flushed.ok()) return flushed.error();
  }
  ledger.Append(job::PlanEndRecord{batches, batches});
  for (uint64_t i = 0; i < batches; ++i) {
    const uint64_t turned = i ^ (kWindow - 1);
    job::ResultRecord result;
    result.id = turned < batches ? turned : i;
    result.fence = {ledger.epoch(), i + 1};
    result.items_succeeded = result.row_count = 1;
    result.waited_ns = result.read_ns = result.wrote_ns = 1'000;
    result.rows = "/in/f0000000 0.123456\n";
    const std::string usage = job::EncodeUsage({result.id, result.fence}, result);
    ledger.Append(job::UnknownRecord{job::kUsageType, usage});
    ledger.Append(result);
    if (i % kResultsOfSync != 0) continue;
    if (const Result<uint64_t> flushed = ledger.Flush(); !flushed.ok()) return flushed.error();
  }
  const Result<uint64_t> flushed = ledger.Flush();
  return flushed.ok() ? Status() : Status(flushed.error());
}

// Resident memory at its highest so far, of this process.
uint64_t PeakMegabytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  uint64_t kib = 0;
  while (status >> word) {
    if (word == "VmHWM:") status >> kib;
  }
  return kib * 1024 / 1'000'000;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Each run is an epoch more, as a coordinator that is started again and again has it.
Status Measure(Files& files, const std::string& folder, uint64_t batches, int run) {
  const auto start = std::chrono::steady_clock::now();
  Result<Epoch> epoch = Claim(files, folder, 2 + static_cast<uint64_t>(run));
  if (!epoch.ok()) return epoch.error();
  if (Status begun = epoch->ledger->Begin(std::nullopt, std::nullopt); !begun.ok()) return begun;
  const double replayed = SecondsSince(start);
  if (epoch->state.counts().succeeded != batches) {
    return Error{Code::kInternal, "the replay does not have all mini-batches"};
  }
  const uint64_t held = PeakMegabytes();
  const auto end = std::chrono::steady_clock::now();
  const output::RowOrder order =
      run % 2 == 0 ? output::RowOrder::kMiniBatch : output::RowOrder::kCompletion;
  const std::unique_ptr<output::Sink> sink =
      output::MakeFolderSink(files, folder + "/out/" + kOutput, epoch->ledger->token_path(), {});
  const Result<output::Publication> published =
      output::PublishOutput(*sink, *epoch->ledger, epoch->state, {.order = order});
  if (!published.ok()) return published.error();
  if (published->published.rows != batches) {
    return Error{Code::kInternal, "the output does not have all rows"};
  }
  fmt::print(
      "{} committed mini-batches replayed in {:.2f} s, peak {} MB; published in the order of {} in "
      "{:.2f} s, peak {} MB\n",
      batches, replayed, held,
      order == output::RowOrder::kMiniBatch ? "mini-batches" : "completion", SecondsSince(end),
      PeakMegabytes());
  return {};
}

// Whether a process of its own did it.
bool Apart(const std::function<Status()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    const Status status = work();
    if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message);
    std::fflush(nullptr);
    _exit(status.ok() ? 0 : 1);
  }
  int end = 0;
  return child > 0 && waitpid(child, &end, 0) == child && WIFEXITED(end) && WEXITSTATUS(end) == 0;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: bench_ledger_replay FOLDER [MINI-BATCHES]\n");
    return 2;
  }
  const std::string folder = argv[1];
  const uint64_t batches = argc > 2 ? std::stoull(argv[2]) : 1'000'000;
  const std::unique_ptr<Files> files = MakeSystemFiles();
  bool good = Apart([&] { return Write(*files, folder, batches); });
  for (int run = 0; good && run < kRuns; ++run) {
    good = Apart([&] { return Measure(*files, folder, batches, run); });
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
