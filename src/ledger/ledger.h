// The ledger of a job as its coordinator uses it (docs/ledger.md): claim an epoch, replay the
// history, append records, make them durable in groups, read rows and plan chunks back. One kind
// are logs in a folder, which are claimed here, the other a chain of objects (chain_ledger.h).
//
// Threads: Begin, Append, FlushIn and the accessors belong to the decision thread; Flush to one
// other thread (or the same), not during Begin; Read and durable are thread-safe. No thread of its
// own, no clock: a simulation drives it as is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "job/records.h"

namespace parallelrun::ledger {

struct LedgerOptions {
  std::string state_folder;   // absolute; made if missing
  std::string output_folder;  // with output_file: where the token goes; empty: none is published
  std::string output_file;
  uint64_t nonce = 0;       // random: the owner of this epoch's log
  uint64_t new_run_id = 0;  // random: used when the state folder is first used
};

class Ledger {
 public:
  // Called for each record of the history, in order, seals included. `record` is the place of the
  // whole encoded record (type and length included), `rows` that of its rows (empty: it has none).
  // An error ends the claim.
  using Visitor =
      std::function<Status(const job::Record&, const job::Place& record, const job::Place& rows)>;

  // Steps 1 to 3 of "Claiming an epoch". kCorrupt names file and offset; kStale: a higher epoch
  // appeared; kPermission and kNoSpace as the file system says.
  static Result<std::unique_ptr<Ledger>> Claim(Files& files, const LedgerOptions& options,
                                               const Visitor& visit);
  // Replays what the next epoch would count, without claiming one; returns the run id. For reports
  // and inspection: a coordinator may be at work meanwhile. kNotFound when there is no ledger.
  static Result<uint64_t> Inspect(const Files& files, const std::string& state_folder,
                                  const Visitor& visit);
  virtual ~Ledger() = default;

  virtual uint32_t epoch() const = 0;
  virtual uint64_t run_id() const = 0;
  // No settings record was replayed: this state folder was never used, or only by epochs that
  // ended before their first group.
  virtual bool fresh() const = 0;

  // Step 4: writes and syncs the first group, and takes over the reserve of earlier epochs.
  // `overwrite_run_id` starts anew with an empty history
  // under that run id (the caller then forgets what it replayed). kNoSpace: call it again, the
  // first call's group is written. Any other error is final.
  virtual Status Begin(const std::optional<job::SettingsRecord>& settings,
                       std::optional<uint64_t> overwrite_run_id) = 0;

  struct Appended {
    uint64_t position = 0;  // durable once durable() >= position
    job::Place record;
    job::Place rows;
  };
  // Buffers a record; no I/O. After Begin. A record over 64 MiB - 1 KiB is a programmer's error: it
  // is dropped, its position never becomes durable, and Flush fails with kInvalid.
  virtual Appended Append(const job::Record& record) = 0;
  // The same for a record that is encoded already.
  virtual Appended AppendEncoded(std::string_view encoded) = 0;

  // For how long the next Flush is best put off, so that more comes along. Zero: it is taken to
  // begin now.
  virtual Duration FlushIn(Instant now) = 0;
  // Writes and syncs all that was appended before the call; returns the durable length. kNoSpace,
  // kUnavailable: nothing is lost, the same bytes are written by the next Flush (when only records
  // that end a job wait, they may use a reserve of a disk that is full). Any other error is final
  // for this epoch: exit. kStale: a newer one has taken over.
  virtual Result<uint64_t> Flush() = 0;
  // Gives back what was reserved. Nothing is flushed after this.
  virtual void GiveBackReserve() = 0;
  virtual uint64_t durable() const = 0;
  virtual uint64_t appended() const = 0;  // position of the last record appended

  // Bytes of any epoch's log. kUnavailable: not durable yet; kCorrupt: the log ends before them.
  virtual Result<std::string> Read(const job::Place& place) const = 0;

  // Replays what the next epoch would count; returns the run id. Reads all of it.
  virtual Result<uint64_t> Replay(const Visitor& visit) const = 0;

  // kStale when a higher epoch has been claimed.
  virtual Status CheckNewest() const = 0;

  // The token file, absolute; empty with SummaryOnly.
  virtual const std::string& token_path() const = 0;
};

}  // namespace parallelrun::ledger
