// JobState is what the ledger says of a job: the plan, and per mini-batch what became of it. The
// live coordinator and a replay both change it by Apply alone, so that memory and ledger cannot
// disagree. Leases are not in it: see Availability, which still ends some while other threads read
// this for the output and the reports. Pure, not thread-safe; 24 bytes a mini-batch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/companies.h"
#include "job/errors.h"
#include "job/ids.h"
#include "job/job_facts.h"
#include "job/mini_batches.h"
#include "job/records.h"
#include "job/result_parts.h"
#include "job/shutdowns.h"
#include "job/side_list.h"

namespace parallelrun::job {

// A part of a mini-batch that was split.
struct Piece {
  MiniBatch batch;
  uint32_t first = 0;  // of its items, within the whole mini-batch
};

class JobState {
 public:
  // Changes the state as the record says. kCorrupt when the record cannot follow what came before
  // (a gap in the plan, a result for a mini-batch that is settled): a ledger that says so was not
  // written by this program.
  Status Apply(const Record& record, const Place& record_place, const Place& rows);

  // Where what was published is now, if anything was: records say where it was at the time, and its
  // folder may have been moved since.
  void OutputIsAt(const std::string& path);

  const MiniBatches& batches() const { return batches_; }
  const std::map<BatchId, Piece>& pieces() const { return pieces_; }
  // A mini-batch or a piece; it must be known.
  MiniBatch batch(BatchId id) const { return IsPiece(id) ? pieces_.at(id).batch : batches_[id]; }
  MiniBatch::State StateOf(BatchId id) const {
    return IsPiece(id) ? pieces_.at(id).batch.state : batches_.StateOf(id);
  }
  bool known(BatchId id) const { return IsPiece(id) ? pieces_.contains(id) : id < batches_.size(); }
  // The first of its items, within the whole mini-batch.
  uint32_t FirstItemOf(BatchId id) const { return IsPiece(id) ? pieces_.at(id).first : 0; }
  // Mini-batches with a loss on which run() had begun when that was last heard of them.
  const std::map<BatchId, Fence>& started() const { return started_; }
  // Of those that were held at deaths and have not succeeded since; for all generations.
  const Companies& companies() const { return companies_; }
  const JobCounts& counts() const { return counts_; }
  const std::optional<Settings>& settings() const { return settings_; }
  const std::optional<Verdict>& verdict() const { return verdict_; }
  const std::optional<Published>& published() const { return published_; }
  // What this run published last, also in an earlier generation.
  const std::optional<Published>& last_published() const { return last_published_; }
  const DistinctErrors& errors() const { return errors_; }
  // Processes with a shutdown(), and how they ended.
  const Shutdowns& shutdowns() const { return shutdowns_; }
  // The first line of the output; empty: none.
  const std::string& header() const { return header_; }
  bool plan_ended() const { return plan_ended_; }
  // Results begin with the list of their side files.
  bool stages_side_files() const { return stages_side_files_; }
  const SideNames& side_names() const { return side_names_; }
  // How the columns of inputs are read, as JSON, by the input's index; the first record counts.
  const std::map<uint32_t, std::string>& types() const { return types_; }
  // No attempt of it counts any more.
  bool settled(BatchId id) const { return StateOf(id) != MiniBatch::State::kPending; }
  bool all_settled() const {
    return plan_ended_ && counts_.succeeded + counts_.failed == counts_.planned;
  }

  // The chunk that holds a mini-batch: its first id and the place of its record.
  struct Chunk {
    BatchId first = 0;
    uint32_t batches = 0;
    Place place;
  };
  const std::vector<Chunk>& chunks() const { return chunks_; }
  const Chunk& ChunkOf(BatchId id) const;

  // A result or a failed attempt with this fence is in the ledger: to say it again changes nothing.
  bool Recorded(BatchId id, const Fence& fence) const;

  // Bytes of rows received in parts for an unfinished result with this fence.
  uint64_t PartBytes(BatchId id, const Fence& fence) const { return parts_.Bytes(id, fence); }
  // Where the rows of a succeeded mini-batch lie, in order; those of its pieces, if it was split.
  std::vector<Place> RowsOf(BatchId id) const;
  // The same, behind what `parts` holds: an output has millions of them.
  struct RowsPart {
    Place place;
    bool first = false;  // of its result: a mini-batch has several where it was split
    bool last = false;   // in front of it stands how many rows the result has; it may be empty
  };
  void AppendRows(BatchId id, std::vector<RowsPart>& parts) const;

 private:
  Status ApplyChunk(const PlanChunkRecord& chunk, const Place& place);
  Status ApplyResult(const ResultRecord& result, const Place& rows);
  Status ApplyFailed(const FailedRecord& failed);
  Status ApplyCompany(const CompanyRecord& company);
  Status ApplySkipped(const SkippedRecord& skipped);
  Status ApplyAgain(const AgainRecord& again);
  void Split(BatchId id);
  void SettlePiece(BatchId id, bool succeeded);
  void ApplySettings(const SettingsRecord& settings);
  void StartGeneration();
  void ReopenPieces();
  void ReopenPiece(BatchId id, MiniBatch& piece);
  void Reopen(BatchId id);
  std::optional<MiniBatch> Find(BatchId id) const;
  void Put(BatchId id, const MiniBatch& batch);

  // The pieces of one mini-batch.
  struct Tally {
    uint32_t open = 0;
    uint32_t succeeded = 0;
  };

  MiniBatches batches_;
  std::map<BatchId, Piece> pieces_;   // few: only with isolateFailures
  std::map<BatchId, Tally> tallies_;  // by whole mini-batch
  std::map<BatchId, Fence> started_;
  Companies companies_;
  std::vector<Chunk> chunks_;
  ResultParts parts_;
  // Of failed attempts; only of mini-batches that are still pending.
  std::map<BatchId, std::vector<Fence>> failed_fences_;
  JobCounts counts_;
  DistinctErrors errors_;
  Shutdowns shutdowns_;
  std::string header_;
  bool plan_ended_ = false;
  bool stages_side_files_ = false;
  SideNames side_names_;
  std::map<uint32_t, std::string> types_;
  std::optional<Settings> settings_;
  std::optional<Verdict> verdict_;
  std::optional<Published> published_;
  std::optional<Published> last_published_;
};

}  // namespace parallelrun::job
