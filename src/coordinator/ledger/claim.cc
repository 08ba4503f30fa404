#include "coordinator/ledger/claim.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/mutation.h"
#include "coordinator/ledger/history.h"

namespace parallelrun {
namespace {

constexpr int kClaimTries = 100;  // each lost to another coordinator that starts right now
constexpr std::string_view kTokenSuffix = ".tmp";
constexpr size_t kHexDigits = 16;

Error NotExclusive(const std::string& path) {
  return {Code::kInvalid,
          fmt::format("{} could be created twice: its file system does not keep two coordinators "
                      "apart (some mounted buckets do not). Put the state folder on another volume",
                      path)};
}

// Creates the log of the next epoch, empty, and fills in header.epoch and header.run_id.
Result<std::unique_ptr<File>> CreateLog(Files& files, const std::string& folder,
                                        const LedgerOptions& options, LogHeader& header) {
  for (int i = 0; i < kClaimTries; ++i) {
    const Result<uint32_t> highest = HighestEpoch(files, folder);
    if (!highest.ok()) return highest.error();
    // Nothing may be built on a log whose own entry could still get lost.
    if (Status synced = files.SyncFolder(folder); !synced.ok()) return synced.error();
    const Result<std::optional<uint64_t>> run_id = RunIdBelow(files, folder, *highest + 1);
    if (!run_id.ok()) return run_id.error();
    header.epoch = *highest + 1;
    header.run_id = run_id->value_or(options.new_run_id);
    const std::string path = folder + "/" + LogName(header.epoch);
    Result<std::unique_ptr<File>> log = files.CreateExclusive(path);
    if (!log.ok() && log.error().code == Code::kExists) continue;
    if (!log.ok()) return log;
    const Result<std::unique_ptr<File>> again = files.CreateExclusive(path);
    if (again.ok()) return NotExclusive(path);
    if (again.error().code != Code::kExists) return again.error();
    return log;
  }
  return Error{Code::kUnavailable,
               folder + ": other coordinators start at the same time, over and over"};
}

Status CheckNonce(const Files& files, const std::string& path, const LogHeader& header) {
  const Result<LogReader> reader = LogReader::Open(files, path, header.epoch, std::nullopt);
  if (!reader.ok()) return reader.error();
  if (!reader->header() || reader->header()->nonce != header.nonce) return NotExclusive(path);
  return {};
}

// Epoch of a token of `output_file`, of whatever run.
std::optional<uint32_t> EpochOfToken(std::string_view name, const std::string& output_file) {
  const std::string prefix = "." + output_file + ".";
  if (name.size() <= prefix.size() + kHexDigits + 1 + kTokenSuffix.size() ||
      name.substr(0, prefix.size()) != prefix ||
      name.substr(name.size() - kTokenSuffix.size()) != kTokenSuffix) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(kTokenSuffix.size());
  const std::string_view run = name.substr(0, kHexDigits);
  const std::string_view number = name.substr(kHexDigits + 1);
  uint32_t epoch = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), epoch);
  if (error != std::errc() || end != number.data() + number.size() || name[kHexDigits] != '.' ||
      run.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return std::nullopt;
  }
  return epoch;
}

Status RemoveLowerTokens(Files& files, const LedgerOptions& options, uint32_t epoch) {
  const Result<std::vector<std::string>> names = files.List(options.output_folder);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const std::optional<uint32_t> of = EpochOfToken(name, options.output_file);
    if (!of || *of >= epoch) continue;
    Status removed = files.Remove(options.output_folder + "/" + name);
    if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  }
  // Durable before anything is read: a stale coordinator's token must not come back with a crash.
  return files.SyncFolder(options.output_folder);
}

}  // namespace

std::string EpochsFolder(const std::string& state_folder) { return state_folder + "/epochs"; }

Result<uint32_t> HighestEpoch(const Files& files, const std::string& folder) {
  const Result<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return names.error();
  std::vector<uint32_t> epochs;
  for (const std::string& name : *names) {
    if (const std::optional<uint32_t> epoch = EpochOfLogName(name)) epochs.push_back(*epoch);
  }
  std::sort(epochs.begin(), epochs.end());
  for (size_t i = 0; i < epochs.size(); ++i) {
    if (epochs[i] != i + 1) {
      return Error{Code::kCorrupt,
                   fmt::format("{}/{} is missing, but later logs are there: restore it, or start "
                               "the job anew with another state folder",
                               folder, LogName(static_cast<uint32_t>(i + 1)))};
    }
  }
  if (epochs.size() >= std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalid, folder + ": no epoch is left"};
  }
  return static_cast<uint32_t>(epochs.size());
}

Status CheckNewestEpoch(const Files& files, const std::string& epochs_folder, uint32_t epoch) {
  // Epochs are dense: a still higher one cannot be there without the next one.
  const std::string path = epochs_folder + "/" + LogName(epoch + 1);
  const Result<bool> there = files.Exists(path);
  if (!there.ok()) return there.error();
  if (*there) {
    return Error{
        Code::kStale,
        fmt::format("{} is there: a newer coordinator has taken over from epoch {}", path, epoch)};
  }
  return {};
}

Result<ClaimedEpoch> ClaimEpoch(Files& files, const LedgerOptions& options) {
  const std::string folder = EpochsFolder(options.state_folder);
  if (Status made = files.MakeFolders(folder); !made.ok()) return made.error();

  ClaimedEpoch claimed;
  claimed.header.nonce = options.nonce;
  Result<std::unique_ptr<File>> log = CreateLog(files, folder, options, claimed.header);
  if (!log.ok()) return log.error();
  claimed.log = std::move(*log);
  if (Status s = claimed.log->WriteAt(0, EncodeLogHeader(claimed.header)); !s.ok()) {
    return s.error();
  }
  if (Status s = claimed.log->Sync(); !s.ok()) return s.error();
  if (Status s = PARALLELRUN_MUTATED(kFolderNotSynced) ? Status() : files.SyncFolder(folder);
      !s.ok()) {
    return s.error();
  }
  const uint32_t epoch = claimed.header.epoch;
  const std::string log_path = folder + "/" + LogName(epoch);
  if (Status s = CheckNonce(files, log_path, claimed.header); !s.ok()) return s.error();

  if (options.output_folder.empty()) {
    if (Status s = CheckNewestEpoch(files, folder, epoch); !s.ok()) return s.error();
    return claimed;
  }
  if (Status s = files.MakeFolders(options.output_folder); !s.ok()) return s.error();
  claimed.token_path = fmt::format("{}/.{}.{:016x}.{}{}", options.output_folder,
                                   options.output_file, claimed.header.run_id, epoch, kTokenSuffix);
  const Result<std::unique_ptr<File>> token = files.CreateExclusive(claimed.token_path);
  if (!token.ok()) return token.error();
  // In this order: a successor that is not seen here has yet to remove the token made above.
  if (Status newest = CheckNewestEpoch(files, folder, epoch); !newest.ok()) {
    Status removed = files.Remove(claimed.token_path);  // tidiness only: it is never used
    return newest.error();
  }
  if (Status s = RemoveLowerTokens(files, options, epoch); !s.ok()) return s.error();
  return claimed;
}

}  // namespace parallelrun
