#include "cli/ledger_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/escape.h"
#include "base/files.h"
#include "cli/run/local_run.h"
#include "cli/run/quick_output.h"
#include "cli/runs/inspect_state.h"
#include "cli/verify_command.h"
#include "job/job_state.h"
#include "job/losses.h"

namespace parallelrun::cli {
namespace {

constexpr size_t kMostNamed = 10;

std::string Text(const job::Fence& fence) {
  return fmt::format("{}.{}", fence.epoch, fence.number);
}

// ", waited 0.001000 s, read 0.002000 s": what is known.
std::string Spent(const job::AttemptResult& result) {
  std::string text;
  job::EachAmount(result, [&](const job::Amount& amount, const std::optional<uint64_t>& ns) {
    if (ns) text += fmt::format(", {} {:.6f} s", amount.name, static_cast<double>(*ns) / 1e9);
  });
  return text;
}

// One line that says what the record says; rows are only counted.
struct Describe {
  std::string operator()(const job::SealRecord& r) const {
    return fmt::format("seal         of epoch {}, {} bytes, digest {:016x}", r.predecessor,
                       r.length, r.digest);
  }
  std::string operator()(const job::SettingsRecord& r) const {
    return fmt::format("settings     generation {}, at {}, code {:016x}", r.generation,
                       Rfc3339(WallTime(Duration(r.wall_us))), r.code_digest);
  }
  std::string operator()(const job::PlanChunkRecord& r) const {
    return fmt::format("plan chunk   mini-batches {} to {}, {} items, input {}", r.first,
                       r.first + r.Batches() - 1, r.Items(), r.input);
  }
  std::string operator()(const job::TypesRecord& r) const {
    return fmt::format("types        input {}, {}", r.input, Printable(r.types, 1000));
  }
  std::string operator()(const job::PlanEndRecord& r) const {
    return fmt::format("plan end     {} mini-batches, {} items", r.batches, r.items);
  }
  std::string operator()(const job::RowsRecord& r) const {
    return fmt::format("rows         mini-batch {}, fence {}, {} bytes", job::MiniBatchText(r.id),
                       Text(r.fence), r.rows.size());
  }
  std::string operator()(const job::ResultRecord& r) const {
    return fmt::format(
        "result       mini-batch {}, fence {}, node {}, process{:03}, {} items, {} rows, {} bytes",
        job::MiniBatchText(r.id), Text(r.fence), r.node, r.process, r.items_succeeded, r.row_count,
        r.rows.size());
  }
  std::string operator()(const job::SkippedRecord& r) const {
    return fmt::format("skipped      mini-batch {}, fence {}, {} items", job::MiniBatchText(r.id),
                       Text(r.fence), r.items);
  }
  std::string operator()(const job::ShutdownRecord& r) const {
    const char* const ends[] = {"", "open", "closed", "failed", "cut off", "lost"};
    return fmt::format("shutdown     node {}, process{:03}, {}{}{}", r.node, r.process,
                       ends[static_cast<size_t>(r.end)], r.message.empty() ? "" : ": ",
                       Printable(r.message, 500));
  }
  std::string operator()(const job::AgainRecord& r) const {
    return fmt::format("again        node {}, process{:03}, {} mini-batches", r.node, r.process,
                       r.results.size());
  }
  std::string operator()(const job::FailedRecord& r) const {
    const char* const ends[] = {"", ", final", ", split"};
    const job::OutputRanges& o = r.output;
    const std::string output =
        o.known() ? fmt::format(" (bytes {} to {} of stdout, {} to {} of stderr)", o.stdout_begin,
                                o.stdout_end, o.stderr_begin, o.stderr_end)
                  : "";
    return fmt::format("failed       mini-batch {}, fence {}, node {}, process{:03}{}: {}: {}{}",
                       job::MiniBatchText(r.id), Text(r.fence), r.node, r.process,
                       ends[static_cast<size_t>(r.end)], Printable(r.kind, 100),
                       Printable(r.message, 500), output);
  }
  std::string operator()(const job::LostRecord& r) const {
    return fmt::format("lost         mini-batch {}, fence {}", job::MiniBatchText(r.id),
                       Text(r.fence));
  }
  std::string operator()(const job::StartedRecord& r) const {
    return fmt::format("started      mini-batch {}, fence {}{}", job::MiniBatchText(r.id),
                       Text(r.fence), r.begun ? "" : ", handed back");
  }
  std::string operator()(const job::CompanyRecord& r) const {
    std::string ids;
    for (size_t i = 0; i < std::min<size_t>(r.ids.size(), kMostNamed); ++i) {
      ids += (i == 0 ? "" : ", ") + job::MiniBatchText(r.ids[i]);
    }
    const size_t more = r.ids.size() - std::min<size_t>(r.ids.size(), kMostNamed);
    return fmt::format("company      at most {} on a node that holds one of mini-batches {}{}",
                       r.most, ids, more == 0 ? "" : fmt::format(" and {} more", more));
  }
  std::string operator()(const job::VerdictRecord& r) const {
    return fmt::format("verdict      {}, {}: {}",
                       r.outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed",
                       Printable(r.reason, 100), Printable(r.message, 1000));
  }
  std::string operator()(const job::PublishedRecord& r) const {
    return fmt::format("published    {}, {} rows, {} bytes", Printable(r.path, 500), r.rows,
                       r.bytes);
  }
  std::string operator()(const job::UnknownRecord& r) const {
    job::AttemptResult of;
    const auto name = r.type == job::kUsageType ? job::DecodeUsage(r.body, of) : std::nullopt;
    if (name) {
      return fmt::format("usage        mini-batch {}, fence {}{}", job::MiniBatchText(name->id),
                         Text(name->fence), Spent(of));
    }
    return fmt::format("type {:<7} of a later version, {} bytes, passed over", r.type,
                       r.body.size());
  }
  std::string operator()(const job::HeaderRecord& r) const {
    return fmt::format("header       {}", Printable(r.line, 500));
  }
};

}  // namespace

int PrintLedger(const std::string& state_folder, bool records) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  job::JobState state;
  uint64_t count = 0;
  uint32_t epoch = 0;
  std::string folder = std::filesystem::absolute(state_folder).lexically_normal();
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::string beside = RunFolderOf(folder) + "/state";
  std::error_code absent;
  if (std::filesystem::is_directory(beside, absent)) folder = beside;
  const Result<uint64_t> run_id =
      InspectState(*files, folder,
                   [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
                     ++count;
                     epoch = place.epoch;
                     if (records) {
                       fmt::print("{:>6} {:>12} {}\n", place.epoch, place.offset,
                                  std::visit(Describe{}, record));
                     }
                     return state.Apply(record, place, rows);
                   });
  if (!run_id.ok()) {
    fmt::print(stderr, "{}\n", run_id.error().message);
    return run_id.error().code == Code::kNotFound ? kExitUsage : kExitFailed;
  }
  const job::JobCounts& counts = state.counts();
  fmt::print("sound: {} records, the last of epoch {}, run {:016x}, generation {}\n", count, epoch,
             *run_id, state.settings() ? state.settings()->generation : 0);
  fmt::print("mini-batches: {} succeeded, {} failed, {} open, of {}{}\n", counts.succeeded,
             counts.failed, counts.planned - counts.succeeded - counts.failed,
             state.plan_ended() ? "" : "at least ", counts.planned);
  const job::FailureRules rules =
      state.settings() ? job::RulesOf(state.settings()->job) : job::FailureRules{};
  fmt::print("items: {}; rows: {}\n", job::ItemsText(counts, job::CountLosses(counts, rules)),
             counts.rows);
  if (const auto& verdict = state.verdict()) {
    fmt::print("verdict: {}: {}\n", verdict->reason, Printable(verdict->message, 1000));
  }
  if (const auto& published = state.published()) {
    fmt::print("published: {} ({} bytes)\n", Printable(published->path, 500), published->bytes);
    const Result<OutputCheck> check = CheckPublished(*files, folder, state);
    if (!check.ok()) {
      fmt::print(stderr, "{}\n", check.error().message);
      return kExitFailed;
    }
    fmt::print("{}", CheckText(*check));
    return check->whole() ? kExitOk : kExitFailed;
  }
  return kExitOk;
}

}  // namespace parallelrun::cli
