#include "ledger/claim.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "base/hex.h"
#include "ledger/history.h"

namespace parallelrun::ledger {
namespace {

constexpr int kClaimTries = 100;  // each lost to another coordinator that starts right now
constexpr std::string_view kTokenSuffix = ".tmp";
constexpr std::string_view kIndexSuffix = ".index.tmp";
constexpr size_t kHexDigits = 16;

Error NotExclusive(const std::string& path) {
  return {Code::kInvalid,
          fmt::format("{} could be created twice: its file system does not keep two coordinators "
                      "apart (some mounted buckets do not). Put the state folder on another volume",
                      path)};
}

// Made once the first log is there, so that a ledger without any log is told from none.
std::string BegunPath(const std::string& state_folder) { return state_folder + "/begun"; }

// What tells that a log was here although none is.
Status CheckBegun(const Files& files, const LedgerOptions& options) {
  const std::string begun = BegunPath(options.state_folder);
  const Result<bool> there = files.Exists(begun);
  if (!there.ok()) return there.error();
  if (!*there) return {};
  return Error{
      Code::kCorrupt,
      fmt::format("{}/{} is missing, but {} tells that the ledger had begun: restore it, or "
                  "remove the state folder to start the job from the beginning",
                  EpochsFolder(options.state_folder), LogName(1), begun)};
}

Status NoteBegun(Files& files, const LedgerOptions& options) {
  const std::string begun = BegunPath(options.state_folder);
  const Result<bool> there = files.Exists(begun);
  if (!there.ok()) return there.error();
  if (*there) return {};
  const Result<std::unique_ptr<File>> file = files.CreateExclusive(begun);
  if (!file.ok() && file.error().code != Code::kExists) return file.error();
  return files.SyncFolder(options.state_folder);
}

// Creates the log of the next epoch, empty, and fills in header.epoch and header.run_id.
Result<std::unique_ptr<File>> CreateLog(Files& files, const std::string& folder,
                                        const LedgerOptions& options, LogHeader& header) {
  for (int i = 0; i < kClaimTries; ++i) {
    const Result<uint32_t> highest = HighestEpoch(files, folder);
    if (!highest.ok()) return highest.error();
    if (*highest == 0) {
      if (Status none = CheckBegun(files, options); !none.ok()) return none.error();
    }
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

}  // namespace

std::string NameOf(const Token& token, const std::string& output_file) {
  return fmt::format(".{}.{:016x}.{}{}", output_file, token.run_id, token.epoch,
                     token.of_index ? kIndexSuffix : kTokenSuffix);
}

std::optional<Token> ParseToken(std::string_view name, const std::string& output_file) {
  const size_t run_at = output_file.size() + 2;  // behind ".<output file>."
  const size_t epoch_at = run_at + kHexDigits + 1;
  if (name.size() <= epoch_at + kTokenSuffix.size()) return std::nullopt;
  Token token;
  token.run_id = ParseHex(name.substr(run_at, kHexDigits)).value_or(0);
  std::from_chars(name.data() + epoch_at, name.data() + name.size(), token.epoch);
  token.of_index = name.ends_with(kIndexSuffix);
  // Only what this program writes: no other spelling of the same numbers.
  return token.epoch > 0 && NameOf(token, output_file) == name ? std::optional(token)
                                                               : std::nullopt;
}

std::string IndexTokenOf(const std::string& token_path) {
  return token_path.substr(0, token_path.size() - kTokenSuffix.size()) + std::string(kIndexSuffix);
}

Status RemoveToken(Files& files, const std::string& token_path) {
  for (const std::string& path : {token_path, IndexTokenOf(token_path)}) {
    Status removed = files.Remove(path);
    if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  }
  return {};
}

Result<std::optional<uint64_t>> RunOfEpoch(const Files& files, const std::string& state_folder,
                                           uint32_t epoch) {
  const std::string path = EpochsFolder(state_folder) + "/" + LogName(epoch);
  const Result<LogReader> reader = LogReader::Open(files, path, epoch, std::nullopt);
  if (!reader.ok() && reader.error().code == Code::kNotFound) return std::optional<uint64_t>();
  if (!reader.ok()) return reader.error();
  return reader->header() ? std::optional(reader->header()->run_id) : std::nullopt;
}

Status RemoveTokens(Files& files, const std::string& state_folder, const std::string& output_folder,
                    const std::string& output_file, uint32_t below) {
  const Result<std::vector<std::string>> names = files.List(output_folder);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const std::optional<Token> token = ParseToken(name, output_file);
    if (!token || token->epoch >= below) continue;
    const Result<std::optional<uint64_t>> run = RunOfEpoch(files, state_folder, token->epoch);
    if (!run.ok()) return run.error();
    if (*run != token->run_id) continue;  // another job's
    Status removed = files.Remove(output_folder + "/" + name);
    if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  }
  // Durable before anything is read: a stale coordinator's token must not come back with a crash.
  return files.SyncFolder(output_folder);
}

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
                               "the job from the beginning with another state folder",
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
  const std::string own = epochs_folder + "/" + LogName(epoch);
  const Result<bool> here = files.Exists(own);
  if (!here.ok()) return here.error();
  if (!*here) {
    return Error{Code::kNotFound,
                 fmt::format("{} is not there any more: it, or a folder above it, was removed or "
                             "moved while the job ran. Put it back, and continue the run",
                             own)};
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
  if (Status s = files.SyncFolder(folder); !s.ok()) {
    return s.error();
  }
  const uint32_t epoch = claimed.header.epoch;
  const std::string log_path = folder + "/" + LogName(epoch);
  if (Status s = CheckNonce(files, log_path, claimed.header); !s.ok()) return s.error();
  if (Status s = NoteBegun(files, options); !s.ok()) return s.error();

  if (options.output_folder.empty()) {
    if (Status s = CheckNewestEpoch(files, folder, epoch); !s.ok()) return s.error();
    return claimed;
  }
  if (Status s = files.MakeFolders(options.output_folder); !s.ok()) return s.error();
  claimed.token_path =
      options.output_folder + "/" + NameOf({claimed.header.run_id, epoch}, options.output_file);
  for (const std::string& path : {claimed.token_path, IndexTokenOf(claimed.token_path)}) {
    const Result<std::unique_ptr<File>> token = files.CreateExclusive(path);
    if (!token.ok()) return token.error();
  }
  // In this order: a successor that is not seen here has yet to remove the tokens made above.
  if (Status newest = CheckNewestEpoch(files, folder, epoch); !newest.ok()) {
    Status removed = RemoveToken(files, claimed.token_path);  // tidiness only: none is ever used
    return newest.error();
  }
  const Status removed =
      RemoveTokens(files, options.state_folder, options.output_folder, options.output_file, epoch);
  if (!removed.ok()) return removed.error();
  return claimed;
}

}  // namespace parallelrun::ledger
