#include "ledger/ledger.h"

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <cassert>
#include <deque>
#include <utility>

#include "base/escape.h"
#include "job/record_codec.h"
#include "ledger/claim.h"
#include "ledger/history.h"
#include "ledger/pending.h"

namespace parallelrun::ledger {
namespace {

// Kept free behind the log, so that a job can end with a reason although the disk is full.
constexpr uint64_t kEndReserve = uint64_t{256} << 10;
constexpr size_t kFolderShown = 1000;                 // bytes
constexpr uint64_t kReserveStep = uint64_t{4} << 20;  // a reservation is a system call

class LogLedger final : public Ledger {
 public:
  struct State;
  explicit LogLedger(std::unique_ptr<State> state);
  ~LogLedger() override;

  uint32_t epoch() const override;
  uint64_t run_id() const override;
  bool fresh() const override;
  Status Begin(const std::optional<job::SettingsRecord>& settings,
               std::optional<uint64_t> overwrite_run_id) override;
  Appended Append(const job::Record& record) override;
  Appended AppendEncoded(std::string_view encoded) override;
  Duration FlushIn(Instant) override { return Duration{0}; }
  Result<uint64_t> Flush() override;
  void GiveBackReserve() override;
  uint64_t durable() const override;
  uint64_t appended() const override;
  Result<std::string> Read(const job::Place& place) const override;
  Result<uint64_t> Replay(const Visitor& visit) const override;
  Status CheckNewest() const override;
  const std::string& token_path() const override;

 private:
  const std::unique_ptr<State> state_;
};

struct LogLedger::State {
  State(Files& f, const std::string& folder, ClaimedEpoch claimed, History replayed)
      : files(f),
        state_folder(folder),
        epochs_folder(EpochsFolder(folder)),
        header(claimed.header),
        token_path(std::move(claimed.token_path)),
        log(std::move(claimed.log)),
        history(std::move(replayed)),
        run_id(history.run_id),
        fresh(!history.has_settings) {}

  std::string LogPath(uint32_t epoch) const { return epochs_folder + "/" + LogName(epoch); }
  Appended PlaceOf(const Result<Pending::Added>& added, job::RecordType type);
  Status MakeRoom(const Round& round);
  Status Reserve(uint64_t end);
  void TrimEarlier();
  Status Write(Round& round);
  Result<const File*> LogOf(uint32_t epoch);

  Files& files;
  const std::string state_folder;
  const std::string epochs_folder;
  const LogHeader header;
  const std::string token_path;
  const std::unique_ptr<File> log;

  // Decision thread.
  History history;
  uint64_t run_id;
  const bool fresh;
  bool begun = false;
  bool trimmed = false;
  uint64_t appended = kLogHeaderSize;

  Pending pending{kLogHeaderSize};

  // The thread that flushes.
  std::deque<Round> writing;  // taken from `pending`; stays here while the disk is full
  uint64_t reserved = 0;
  std::optional<Error> failed;  // for ever
  std::atomic<uint64_t> durable{kLogHeaderSize};

  std::mutex logs_mutex;
  std::map<uint32_t, std::unique_ptr<File>> logs;  // of earlier epochs, by `logs_mutex`
};

LogLedger::LogLedger(std::unique_ptr<State> state) : state_(std::move(state)) {}
LogLedger::~LogLedger() = default;

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::Claim(Files& files, const LedgerOptions& options,
                                              const Visitor& visit) {
  Result<ClaimedEpoch> claimed = ClaimEpoch(files, options);
  if (!claimed.ok()) return claimed.error();
  const std::string folder = EpochsFolder(options.state_folder);
  Result<History> history =
      ReplayHistory(files, folder, claimed->header.epoch, claimed->header.run_id, visit);
  if (!history.ok()) return history.error();
  return std::unique_ptr<Ledger>(std::make_unique<LogLedger>(std::make_unique<LogLedger::State>(
      files, options.state_folder, std::move(*claimed), std::move(*history))));
}

Result<uint64_t> Ledger::Inspect(const Files& files, const std::string& state_folder,
                                 const Visitor& visit) {
  const std::string folder = EpochsFolder(state_folder);
  const Result<uint32_t> highest = HighestEpoch(files, folder);
  if (highest.ok() ? *highest == 0 : highest.error().code == Code::kNotFound) {
    return Error{Code::kNotFound, folder + " holds no ledger: give the state folder of a job"};
  }
  if (!highest.ok()) return highest.error();
  const uint32_t next = *highest + 1;
  const Result<std::optional<uint64_t>> run_id = RunIdBelow(files, folder, next);
  if (!run_id.ok()) return run_id.error();
  const Result<History> history = ReplayHistory(files, folder, next, run_id->value_or(0), visit);
  if (!history.ok()) return history.error();
  return history->run_id;
}

namespace {

// What cannot be given back now, the next epoch does.
void LogLedger::GiveBackReserve() {
  if (state_->reserved > 0) static_cast<void>(state_->log->Trim());
}

uint32_t LogLedger::epoch() const { return state_->header.epoch; }
uint64_t LogLedger::run_id() const { return state_->run_id; }
bool LogLedger::fresh() const { return state_->fresh; }
uint64_t LogLedger::durable() const { return state_->durable.load(std::memory_order_acquire); }
uint64_t LogLedger::appended() const { return state_->appended; }
const std::string& LogLedger::token_path() const { return state_->token_path; }

Status LogLedger::Begin(const std::optional<job::SettingsRecord>& settings,
                        std::optional<uint64_t> overwrite_run_id) {
  State& s = *state_;
  if (!s.begun) {
    s.begun = true;
    if (overwrite_run_id) {
      s.run_id = *overwrite_run_id;
      s.history = History{};
      s.history.seal.digest = *overwrite_run_id;
    }
    // One group, so that there is no seal without what it takes over.
    std::string first;
    job::EncodeRecord(s.history.seal, first);
    assert(first.size() == kSealSize);
    first.append(s.history.copied);
    const auto added = s.pending.AddGroup(first, 1 + s.history.copied_records);
    if (!added.ok()) return added.error();
    s.appended = added->offset + added->length;
    s.history.copied = {};
    if (settings) Append(*settings);
  }
  const Result<uint64_t> flushed = Flush();
  if (!flushed.ok()) return flushed.error();
  if (!std::exchange(s.trimmed, true)) s.TrimEarlier();
  return s.Reserve(*flushed);
}

Ledger::Appended LogLedger::Append(const job::Record& record) {
  assert(state_->begun);
  return state_->PlaceOf(state_->pending.Add(record), job::TypeOf(record));
}

Ledger::Appended LogLedger::AppendEncoded(std::string_view encoded) {
  assert(state_->begun && !encoded.empty());
  return state_->PlaceOf(state_->pending.AddEncoded(encoded),
                         job::RecordType{static_cast<uint8_t>(encoded.front())});
}

Result<uint64_t> LogLedger::Flush() {
  State& s = *state_;
  if (s.failed) return *s.failed;
  Result<std::deque<Round>> taken = s.pending.Take();
  if (!taken.ok()) {
    s.failed = taken.error();
    return *s.failed;
  }
  for (Round& round : *taken) s.writing.push_back(std::move(round));
  for (; !s.writing.empty(); s.writing.pop_front()) {
    if (Status written = s.Write(s.writing.front()); !written.ok()) return written.error();
    s.pending.Recycle(std::move(s.writing.front()));
  }
  return durable();
}

Ledger::Appended LogLedger::State::PlaceOf(const Result<Pending::Added>& added,
                                           job::RecordType type) {
  const Appended at = AppendedAt(header.epoch, added, type);
  if (added.ok()) appended = at.position;
  return at;
}

// kNoSpace changes nothing; every other error is remembered.
Status LogLedger::State::Write(Round& round) {
  Status status = MakeRoom(round);
  if (status.ok()) {
    for (size_t i = 0; i < round.groups.size(); ++i) {
      const size_t start = round.groups[i].start;
      const size_t end =
          i + 1 < round.groups.size() ? round.groups[i + 1].start : round.bytes.size();
      // `durable` stands still until this round is written, so a repeated write has the same bytes.
      WriteGroupHeader(header, round.offset + start, round.groups[i].records, durable,
                       round.bytes.data() + start, end - start);
    }
    status = log->WriteAt(round.offset, round.bytes);
  }
  if (!status.ok() && status.error().code == Code::kNoSpace) return status;
  if (!status.ok()) {
    failed = status.error();
    // No second try of a write to a disk mends anything else.
    if (failed->code == Code::kUnavailable) failed->code = Code::kInternal;
    return *failed;
  }
  if (Status synced = log->Sync(); !synced.ok()) {
    // Whatever the reason, "disk full" included: the system may have dropped the bytes, and a
    // second sync would not say so.
    failed = Error{Code::kInternal, synced.error().message +
                                        ": it is unknown what reached the disk; the next "
                                        "coordinator goes on from what did"};
    return *failed;
  }
  durable.store(round.end(), std::memory_order_release);
  return {};
}

Status LogLedger::State::MakeRoom(const Round& round) {
  Status made = Reserve(round.end());
  if (made.ok() || made.error().code != Code::kNoSpace) return made;
  const bool from_reserve = round.ends_job && round.end() <= reserved;
  // What is kept for the end may be in the log of the epoch before: it is taken over after this.
  const bool first = header.epoch > 1 && durable == kLogHeaderSize;
  return from_reserve || first ? Status() : made;
}

// Room for a log of that length, and for the end of the job behind it.
Status LogLedger::State::Reserve(uint64_t end) {
  const uint64_t needed = end + kEndReserve;
  if (needed <= reserved) return {};
  uint64_t size = needed + kReserveStep;
  Status made = log->Reserve(size);
  if (!made.ok() && made.error().code == Code::kNoSpace) {
    size = needed;
    made = log->Reserve(size);
  }
  if (made.ok()) {
    reserved = size;
    return {};
  }
  if (made.error().code != Code::kNoSpace) return made;
  return Error{Code::kNoSpace, fmt::format("the disk of {} is full, {} KiB more are needed ({})",
                                           Printable(epochs_folder, kFolderShown),
                                           (needed - reserved + 1023) >> 10, made.error().message)};
}

// The seal is durable, so what counts of those logs is fixed: one that is written to all the same,
// by a coordinator that does not know yet that it is superseded, loses nothing that is ever read.
// An epoch that crashed could not do it itself. What cannot be given back now stays, for the next
// epoch.
void LogLedger::State::TrimEarlier() {
  for (uint32_t epoch = 1; epoch < header.epoch; ++epoch) {
    if (const auto earlier = files.Open(LogPath(epoch)); earlier.ok()) {
      static_cast<void>((*earlier)->Trim());
    }
  }
}

// The log of an earlier epoch; a log once opened stays open.
Result<const File*> LogLedger::State::LogOf(uint32_t epoch) {
  const std::lock_guard lock(logs_mutex);
  std::unique_ptr<File>& file = logs[epoch];
  if (!file) {
    Result<std::unique_ptr<File>> opened = files.OpenRead(LogPath(epoch));
    if (!opened.ok()) return opened.error();
    file = std::move(*opened);
  }
  return file.get();
}

Result<std::string> LogLedger::Read(const job::Place& place) const {
  State& s = *state_;
  if (place.epoch == s.header.epoch && !s.begun) {  // Begin will write it there
    return s.history.copied.substr(place.offset - kCopiedAt, place.length);
  }
  const File* file = s.log.get();
  if (place.epoch != s.header.epoch) {
    const Result<const File*> opened = s.LogOf(place.epoch);
    if (!opened.ok()) return opened.error();
    file = *opened;
  } else if (place.offset + place.length > durable()) {
    return Error{Code::kUnavailable,
                 fmt::format("{} at {}: {} bytes are not durable yet", s.LogPath(place.epoch),
                             place.offset, place.length)};
  }
  Result<std::string> bytes = file->ReadAt(place.offset, place.length);
  if (bytes.ok() && bytes->size() < place.length) {
    return Error{Code::kCorrupt,
                 fmt::format("{} at {}: the log ends after {} of {} bytes", s.LogPath(place.epoch),
                             place.offset, bytes->size(), place.length)};
  }
  return bytes;
}

Result<uint64_t> LogLedger::Replay(const Visitor& visit) const {
  return Inspect(state_->files, state_->state_folder, visit);
}

Status LogLedger::CheckNewest() const {
  return CheckNewestEpoch(state_->files, state_->epochs_folder, state_->header.epoch);
}

}  // namespace
}  // namespace parallelrun::ledger
