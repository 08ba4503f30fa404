// The judge of a simulated run. It knows only what was said to the outside (replies, exit codes,
// the published file) and what the workers did, never the product's own bookkeeping, and compares
// it with what each later epoch replays. Its list of invariants is in docs/reliability.md.
//
// What an epoch promises binds its successors as long as it was said before they read the history;
// what it says later, as a stale epoch, binds nobody ("void").
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/last_words.h"
#include "job/job_state.h"
#include "job/node_messages.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/sim_input.h"

namespace parallelrun::simulation {

class Oracle {
 public:
  Oracle(const Scenario& scenario, const SimInput& input)
      : scenario_(scenario), input_(input), one_at_a_time_(OneAtATime(scenario)) {}

  // Empty while nothing is wrong.
  const std::string& violation() const { return violation_; }
  void Violated(const std::string& invariant, const std::string& what);

  // A point in the order of all that was said.
  uint64_t Now() { return ++order_; }

  // --- epochs
  // A run is named by its first epoch: ifExists Overwrite begins another one.
  void Claimed(uint32_t epoch, uint64_t read_at, uint32_t run, const job::JobState& state);
  void Begins(uint32_t epoch, uint64_t read_at, uint32_t run, uint32_t generation,
              const std::string& uid);
  bool Stale(uint32_t epoch) const { return epoch < newest_begun_; }
  uint32_t newest_claimed() const { return newest_claimed_; }

  // --- planners: what an epoch itself planned, from mini-batch `first` on
  void Planned(uint32_t epoch, job::BatchId first, const Items& files);

  // --- workers
  void Given(job::BatchId id) { ++At(id).given; }
  void Succeeded(job::BatchId id, uint64_t worker) {
    ++At(id).ran_well;
    if (scenario_.shutdown) At(id).by.insert(worker);
  }
  // Its shutdown() has returned.
  void ShutsDown(uint64_t worker) { shut_down_.insert(worker); }
  // `worker` names a process of all nodes.
  void RunBegins(job::BatchId id, uint64_t worker);
  void RunEnds(job::BatchId id, uint64_t worker);
  // Kubernetes killed a container: what its node held is blamed for that, rightly or not.
  void ContainerKilled() { ++containers_killed_; }

  // --- coordinators
  void Asked(const job::ExchangeRequest& request);
  void Replied(uint32_t epoch, const job::ExchangeReply& reply, const job::JobState& state);
  // A person has its result, whose process did not close, made anew.
  void RunsAgain(job::BatchId id) { At(id).success.reset(); }
  // What its ledger says was published before it began.
  void FindsPublished(uint32_t epoch) { finds_published_.insert(epoch); }
  // The steps of its end, whether they went well or not. `over`: the job is.
  void Reports(uint32_t epoch) { reports_.insert(epoch); }
  void GivesBack(uint32_t epoch, bool over);
  // Some step of them takes too long: it leaves without.
  void GivesUp(uint32_t epoch) { gives_up_.insert(epoch); }
  // It could not see whether the output folder is there.
  void FolderNotSeen(uint32_t epoch) { folder_not_seen_.insert(epoch); }
  void Leaves(uint32_t epoch, coordinator::CoordinatorExit exit, const job::JobState& state,
              bool folder_there);
  // Somebody has put a file of his own where the output is to be.
  void ForeignFile() { foreign_file_ = true; }
  void ForeignFileGone() { foreign_file_ = false; }
  // Somebody has moved the output folder away.
  void FolderGone() { folder_gone_at_ = Now(); }
  // `index` is what lies in the index's place then.
  void Renamed(uint32_t epoch, const std::string& bytes, const std::string& index,
               const job::JobState& state);
  // What memory holds against a replay of the same bytes.
  void Replayed(uint32_t epoch, const job::JobState& memory, const job::JobState& replay);
  void Counts(uint32_t epoch, const job::JobState& state, uint64_t running, uint64_t pending);

  // run() of that mini-batch is about to end its agent.
  void EndsItsNode(job::BatchId id);

  const std::optional<std::string>& published() const { return published_; }

 private:
  struct Said {  // by an epoch, at a point
    uint32_t epoch = 0;
    uint64_t at = 0;
  };
  struct FailedTry {
    Said said;
    job::Fence fence;
    uint32_t generation = 0;
  };
  struct Batch {
    std::optional<std::pair<Said, Items>> meaning;
    std::optional<std::pair<Said, job::Fence>> success;
    std::vector<FailedTry> failed;
    uint64_t given = 0;
    uint64_t deaths = 0;  // of agents, at its hands
    uint64_t ran_well = 0;
    std::set<uint64_t> by;  // workers that did
  };
  struct Told {
    uint32_t epoch = 0;
    uint32_t run = 0;
    uint32_t generation = 0;
    bool succeeded = false;
  };
  Batch& At(job::BatchId id) {
    if (job::IsPiece(id)) return pieces_[id];
    if (id >= batches_.size()) batches_.resize(id + 1);
    return batches_[id];
  }
  // Calls visit(id, batch) for all mini-batches and pieces.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (job::BatchId id = 0; id < batches_.size(); ++id) visit(id, batches_[id]);
    for (auto& [id, piece] : pieces_) visit(id, piece);
  }
  void CheckBatch(job::BatchId id, const std::set<uint32_t>& there);
  void CheckLosses(const job::JobState& state);
  void CheckKillers(const job::JobState& state);
  void CheckShutdowns(const job::JobState& state);
  // The coordinator ended with this verdict.
  void Ended(uint32_t epoch, bool succeeded, const job::JobState& state);
  bool InnocentsSurvive() const;
  job::Fence& Newest(uint32_t epoch, job::BatchId id);
  void TellVerdict(uint32_t epoch, const job::JobState& state);
  void CheckOutput(const std::string& bytes, const job::JobState& state);

  const Scenario& scenario_;
  const SimInput& input_;
  const bool one_at_a_time_;
  std::string violation_;
  uint64_t order_ = 0;
  uint64_t containers_killed_ = 0;
  uint32_t newest_claimed_ = 0;
  uint32_t newest_begun_ = 0;
  std::vector<Batch> batches_;
  std::map<job::BatchId, Batch> pieces_;
  std::map<std::pair<job::BatchId, job::Fence>, job::Finished::Kind> reported_;
  std::map<std::pair<uint32_t, job::BatchId>, job::Fence> newest_fence_;  // by epoch
  std::map<std::pair<uint32_t, job::BatchId>, job::Fence> accepted_;      // by epoch
  std::map<std::pair<uint32_t, job::BatchId>, Items> meanings_;           // by epoch
  std::map<std::pair<uint32_t, job::BatchId>, Items> planned_;            // by epoch
  std::map<std::pair<job::BatchId, job::Fence>, Items> leased_;  // what was leased under a fence
  std::map<uint32_t, uint32_t> run_;                             // by epoch
  std::map<uint32_t, std::string> uid_;                          // of the job, by epoch
  std::map<uint32_t, uint32_t> generation_;                      // by epoch
  std::set<uint64_t> shut_down_;                                 // workers
  std::set<std::pair<job::BatchId, uint64_t>> in_run_;           // where one_at_a_time_
  std::vector<Told> told_;
  uint32_t published_by_ = 0;  // epoch
  std::optional<std::string> published_;
  bool foreign_file_ = false;
  std::set<uint32_t> finds_published_;  // epochs, as the next four
  std::set<uint32_t> gives_up_;
  std::set<uint32_t> reports_;
  std::set<uint32_t> gives_back_;
  std::set<uint32_t> folder_not_seen_;
  std::map<uint32_t, uint64_t> leased_at_;  // an epoch's last lease
  uint64_t folder_gone_at_ = 0;
};

}  // namespace parallelrun::simulation
