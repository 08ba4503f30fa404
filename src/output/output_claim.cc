#include "output/output_claim.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/escape.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/small_file.h"
#include "job/job_state.h"
#include "ledger/chain_note.h"
#include "ledger/claim.h"
#include "ledger/ledger.h"

namespace parallelrun::output {
namespace {

using nlohmann::json;

constexpr std::string_view kSuffix = "parallelrun-claim";
constexpr std::string_view kBegin = "{\"parallelrunClaim\":1,";
constexpr size_t kMaxText = size_t{64} << 10;
constexpr size_t kMaxPath = 4096;
constexpr size_t kBesideDigits = 16;
constexpr int kTries = 20;  // each lost to another run that starts right now

enum class Owner { kOver, kAtWork, kUnknown };

// The claim's text; nothing when there is none.
Result<std::optional<std::string>> ReadClaim(const Files& files, const std::string& path) {
  Result<std::string> text = ReadBegin(files, path, kMaxText);
  if (!text.ok() && text.error().code == Code::kNotFound) return std::optional<std::string>();
  if (!text.ok()) return text.error();
  return std::optional(std::move(*text));
}

// Of a run that ended between the creation of its claim and the first bytes in it.
bool IsTorn(std::string_view text) {
  return kBegin.starts_with(text.substr(0, kBegin.size())) && !ParseClaim(text);
}

// A name beside the claim that no user gives a file, and no other run that has another `whose`.
std::string Beside(const std::string& claim, const std::string& whose) {
  return fmt::format("{}.{:0{}x}", claim, XXH3_64bits(whose.data(), whose.size()), kBesideDigits);
}

bool IsBeside(std::string_view name, const std::string& claim_name) {
  if (name.size() != claim_name.size() + 1 + kBesideDigits) return false;
  const std::string_view digits = name.substr(claim_name.size() + 1);
  return name.starts_with(claim_name + ".") &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Status WriteNew(Files& files, const std::string& path, const std::string& text) {
  const Result<std::unique_ptr<File>> file = files.CreateExclusive(path);
  if (!file.ok()) return file.error();
  Status written = (*file)->WriteAt(0, text);
  if (written.ok()) written = (*file)->Sync();
  if (!written.ok()) static_cast<void>(files.Remove(path));  // the first error tells
  return written;
}

// Makes the claim with all its text at one go. kExists: there is one. kUnavailable: try again.
Status Make(Files& files, const std::string& path, const std::string& text) {
  const std::string beside = Beside(path, text);
  if (Status written = WriteNew(files, beside, text); !written.ok()) return written;
  const Result<bool> renamed = files.RenameNew(beside, path);
  if (renamed.ok() && *renamed) return {};
  static_cast<void>(files.Remove(beside));               // tidiness: the next claim removes it, too
  if (renamed.ok()) return WriteNew(files, path, text);  // it may be seen empty, and is torn then
  if (renamed.error().code == Code::kNotFound) {
    return Error{Code::kUnavailable, beside + " is gone: another run claims the output now"};
  }
  return renamed.error();
}

// Removes the claim if its text is `text`, for `whose`. What is another one's is put back: its
// owner, if it looks meanwhile, finds none, and makes it again.
Status Displace(Files& files, const std::string& path, const std::string& text,
                const std::string& whose) {
  const std::string aside = Beside(path, whose + text);
  const Status renamed = files.Rename(path, aside);
  if (!renamed.ok()) return renamed.error().code == Code::kNotFound ? Status() : renamed;
  const Result<std::optional<std::string>> got = ReadClaim(files, aside);
  if (!got.ok()) return got.error();
  if (*got && **got != text) {
    const Result<bool> back = files.RenameNew(aside, path);
    if (back.ok() && *back) return {};
    if (!back.ok() && back.error().code == Code::kNotFound) return {};
    if (!back.ok() && back.error().code != Code::kExists) return back.error();
    if (back.ok()) static_cast<void>(WriteNew(files, path, **got));
  }
  const Status removed = files.Remove(aside);
  return removed.ok() || removed.error().code == Code::kNotFound ? Status() : removed;
}

bool HasEnded(const Files& files, const std::string& state_folder) {
  job::JobState state;
  const Result<uint64_t> run = ledger::Ledger::Inspect(
      files, state_folder,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        return state.Apply(record, place, rows);
      });
  if (!run.ok() || !state.verdict()) return false;
  const bool publishes = state.verdict()->outcome == job::Outcome::kSucceeded;
  return !publishes || state.published();
}

Owner Judge(const Files& files, const ClaimOptions& options, const OutputOwner& owner) {
  const OutputOwner& own = options.owner;
  if (owner.uid == own.uid || IsStateOf(files, own.state_folder, owner)) return Owner::kOver;
  std::string near;
  if (!owner.near_state.empty()) {
    near = (std::filesystem::path(options.output_folder) / owner.near_state).lexically_normal();
  }
  for (const std::string& folder : {owner.state_folder, near}) {
    if (!IsStateOf(files, folder, owner)) continue;
    if (!owner.in_pod) return options.at_work(folder) ? Owner::kAtWork : Owner::kOver;
    if (HasEnded(files, folder)) return Owner::kOver;
    break;
  }
  // Its state is gone, or another run's by now.
  if (!owner.in_pod && owner.host == own.host) return Owner::kOver;
  const bool same = !own.address.empty() && owner.address == own.address;
  if (same && options.first_start) return Owner::kOver;
  return Owner::kUnknown;
}

Error Refusal(const std::string& output, const std::string& claim, const OutputOwner& owner,
              Owner state) {
  if (state == Owner::kAtWork) {
    return {Code::kExists,
            fmt::format("{} is what another run publishes to, which is at work: job {}; wait for "
                        "its end, stop it, or choose another output",
                        output, Named(owner))};
  }
  return {Code::kExists,
          fmt::format("{} is what another run publishes to: job {}. Whether that is over cannot be "
                      "seen from here: if it is, remove {} and start again; else wait for its end, "
                      "or choose another output",
                      output, Named(owner), claim)};
}

// Without its token a run publishes nothing, whoever was wrong about its end.
Status RemoveTokensOf(Files& files, const ClaimOptions& options, const OutputOwner& owner) {
  if (options.output_file.empty() || owner.run_id == options.owner.run_id) return {};
  const Result<std::vector<std::string>> names = files.List(options.output_folder);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const std::optional<ledger::Token> token = ledger::ParseToken(name, options.output_file);
    if (!token || token->run_id != owner.run_id) continue;
    Status removed = files.Remove(options.output_folder + "/" + name);
    if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  }
  return files.SyncFolder(options.output_folder);
}

// What runs that ended in the middle of a claim have left. Nothing rests on it.
void RemoveBeside(Files& files, const std::string& folder, const std::string& claim_name) {
  const Result<std::vector<std::string>> names = files.List(folder);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsBeside(name, claim_name)) static_cast<void>(files.Remove(folder + "/" + name));
  }
}

// Clears what is in the way; kExists and kInvalid: it stays.
Status TakeOver(Files& files, const ClaimOptions& options, const std::string& path) {
  const Result<std::optional<std::string>> text = ReadClaim(files, path);
  if (!text.ok()) return text.error();
  if (!*text) return {};
  const std::string output = options.output_file.empty()
                                 ? options.output_folder
                                 : options.output_folder + "/" + options.output_file;
  const Judged judged = JudgeClaim(files, options, **text, path, output);
  if (!judged.over) return judged.refused;
  if (judged.owner) {
    if (Status removed = RemoveTokensOf(files, options, *judged.owner); !removed.ok()) {
      return removed;
    }
  }
  return Displace(files, path, **text, ClaimText(options.owner));
}

}  // namespace

std::string Named(const OutputOwner& owner) {
  return fmt::format("{} (uid {}, run {:016x}, since {}, state folder {})",
                     Printable(owner.job, 200), Printable(owner.uid, 100), owner.run_id,
                     Printable(owner.since, 40), Printable(owner.state_folder, 1000));
}

// Whether this is the state folder of the owner's run.
bool IsStateOf(const Files& files, const std::string& folder, const OutputOwner& owner) {
  if (folder.empty() || folder.front() != '/') return false;
  const Result<std::optional<uint64_t>> run = ledger::RunOfEpoch(files, folder, owner.epoch);
  if (run.ok() && *run == owner.run_id) return true;
  // Its ledger may lie in a store.
  const Result<std::optional<ledger::ChainNote>> note = ledger::ReadChainNote(files, folder);
  return note.ok() && *note && (*note)->run_id == owner.run_id && owner.epoch <= (*note)->epoch;
}

Judged JudgeClaim(const Files& files, const ClaimOptions& options, std::string_view text,
                  const std::string& claim, const std::string& output) {
  Judged judged;
  judged.owner = ParseClaim(text);
  if (!judged.owner) {
    judged.over = IsTorn(text);
    if (!judged.over) {
      judged.refused =
          Error{Code::kInvalid, claim +
                                    " is there, and no run of ParallelRun has made it: move it "
                                    "away, or choose another output"};
    }
    return judged;
  }
  const Owner state = Judge(files, options, *judged.owner);
  judged.over = state == Owner::kOver;
  if (!judged.over) judged.refused = Refusal(output, claim, *judged.owner, state);
  return judged;
}

std::string ClaimName(const std::string& output_file) {
  return output_file.empty() ? fmt::format(".{}", kSuffix)
                             : fmt::format(".{}.{}", output_file, kSuffix);
}

bool IsClaimFile(const std::string& name, const std::string& output_file) {
  const std::string claim_name = ClaimName(output_file);
  return name == claim_name || IsBeside(name, claim_name);
}

std::string ClaimText(const OutputOwner& owner) {
  const json rest = {{"job", owner.job},
                     {"uid", owner.uid},
                     {"run", fmt::format("{:016x}", owner.run_id)},
                     {"epoch", owner.epoch},
                     {"state", owner.state_folder},
                     {"nearState", owner.near_state},
                     {"host", owner.host},
                     {"inPod", owner.in_pod},
                     {"address", owner.address},
                     {"since", owner.since}};
  // The mark comes first, so that a torn one is known.
  return std::string(kBegin) + rest.dump(-1, ' ', true, json::error_handler_t::replace).substr(1) +
         "\n";
}

std::optional<OutputOwner> ParseClaim(std::string_view text) {
  if (!text.starts_with(kBegin)) return std::nullopt;
  const json value = ParseJson(text).value_or(nullptr);
  const auto word = [&value](const char* key, size_t limit) -> std::string {
    std::string held = lenient::Text(value, key);
    return held.size() <= limit && held.find('\0') == std::string::npos ? held : "";
  };
  const std::string run = word("run", kBesideDigits);
  OutputOwner owner;
  const std::optional<uint64_t> run_id = ParseHex(run);
  constexpr uint64_t kNone = UINT64_MAX;
  const uint64_t epoch = lenient::Unsigned(value, "epoch", kNone);
  if (run.size() != kBesideDigits || !run_id || epoch > UINT32_MAX) return std::nullopt;
  owner.run_id = *run_id;
  owner.epoch = static_cast<uint32_t>(epoch);
  owner.job = word("job", 1000);
  owner.uid = word("uid", 1000);
  owner.state_folder = word("state", kMaxPath);
  owner.near_state = word("nearState", kMaxPath);
  owner.host = word("host", 1000);
  owner.in_pod = lenient::Boolean(value, "inPod");
  owner.address = word("address", kMaxText);
  owner.since = word("since", 100);
  return owner;
}

Result<HeldOutput> ClaimOutput(Files& files, const ClaimOptions& options) {
  const std::string name = ClaimName(options.output_file);
  const HeldOutput held{options.output_folder + "/" + name, ClaimText(options.owner)};
  for (int i = 0; i < kTries; ++i) {
    const Status made = Make(files, held.path, held.text);
    if (made.ok()) {
      if (Status synced = files.SyncFolder(options.output_folder); !synced.ok()) {
        return synced.error();
      }
      // Where it could not be made at one go, somebody may have taken it for torn.
      const Result<std::optional<std::string>> there = ReadClaim(files, held.path);
      if (!there.ok()) return there.error();
      if (*there != held.text) continue;
      RemoveBeside(files, options.output_folder, name);
      return held;
    }
    if (made.error().code == Code::kUnavailable) continue;
    if (made.error().code != Code::kExists) return made.error();
    if (Status taken = TakeOver(files, options, held.path); !taken.ok()) return taken.error();
  }
  return Error{Code::kUnavailable,
               held.path + ": other runs claim this output at the same time, over and over"};
}

Status KeepHeld(Files& files, const HeldOutput& held) {
  if (held.path.empty()) return {};
  const Result<std::optional<std::string>> text = ReadClaim(files, held.path);
  if (!text.ok()) return text.error();
  if (!*text) return Make(files, held.path, held.text);
  if (**text == held.text) return {};
  const std::optional<OutputOwner> other = ParseClaim(**text);
  return Error{Code::kExists,
               fmt::format("{}: another run has taken this output meanwhile: {}", held.path,
                           other ? "job " + Named(*other) : "which one is not to be seen")};
}

Result<bool> IsClaimedBy(const Files& files, const std::string& output_folder,
                         const std::string& output_file, const std::string& uid) {
  const Result<std::optional<std::string>> text =
      ReadClaim(files, output_folder + "/" + ClaimName(output_file));
  if (!text.ok()) return text.error();
  const std::optional<OutputOwner> owner = *text ? ParseClaim(**text) : std::nullopt;
  return owner && owner->uid == uid;
}

Status ReleaseOutput(Files& files, const HeldOutput& held) {
  return held.path.empty() ? Status() : Displace(files, held.path, held.text, "");
}

Status RemoveLeftBeside(Files& files, const std::string& state_folder,
                        const std::string& output_folder, const std::string& output_file,
                        const std::string& published) {
  if (!published.empty()) {
    const Status removed = ledger::RemoveTokens(files, state_folder, output_folder, published,
                                                std::numeric_limits<uint32_t>::max());
    if (!removed.ok()) return removed;
  }
  const std::string path = output_folder + "/" + ClaimName(output_file);
  const Result<std::optional<std::string>> text = ReadClaim(files, path);
  if (!text.ok()) return text.error();
  const std::optional<OutputOwner> owner = *text ? ParseClaim(**text) : std::nullopt;
  if (!owner || !IsStateOf(files, state_folder, *owner)) return {};
  return Displace(files, path, **text, state_folder);
}

}  // namespace parallelrun::output
