#include "coordinator/core/program_errors.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/count_of.h"
#include "job/failure_text.h"
#include "job/verdict.h"

namespace parallelrun::coordinator {
namespace {

// Before that, a fault that passes (a volume that is mounted late) may have spent the budget.
constexpr Duration kStartsLeast = seconds(120);

}  // namespace

void ProgramErrors::InitFailed(std::string why) {
  ++init_failures_;
  init_error_ = std::move(why);
}

void ProgramErrors::GaveUp(std::string why) {
  if (init_error_.empty()) init_error_ = std::move(why);
}

void ProgramErrors::KilledInInit(uint32_t node, uint32_t processes, bool disk) {
  init_failures_ += processes;
  init_error_ = fmt::format(
      "the {} before init() had ended: {}",
      disk ? fmt::format(
                 "pod of node {} was evicted, since it used more disk than its limits allow,", node)
           : fmt::format("container of node {} was killed for lack of memory (OOMKilled)", node),
      disk ? "raise ephemeral-storage of spec.resources.limits or the sizeLimit of its volume, or "
             "have init() write less"
           : "raise spec.resources.limits.memory, or lower spec.processCountPerNode");
}

void ProgramErrors::AttemptFailed(uint32_t node, uint32_t process, job::BatchId id,
                                  std::string_view kind, std::string_view message) {
  if (!job::OfProgram(kind, message)) return;
  ++attempts_;
  failed_[node].insert(process);
  failed_at_.insert(job::WholeOf(id));
}

std::optional<job::Verdict> ProgramErrors::Judge(
    const job::JobState& state, const Nodes& nodes, WorkInstant worked,
    const std::function<std::string(job::BatchId)>& items) const {
  if (AllFailed(state, nodes.expected())) return job::ProgramVerdict(state, items);
  if (!NoneStarts(state, nodes, worked)) return std::nullopt;
  return job::FailedFor("InitFailed", fmt::format("init() failed in every process ({}): {}",
                                                  CountOf(init_failures_, "time"), init_error_));
}

// A name that is not defined fails each mini-batch at each try, for hours perhaps. But one branch
// of the script may have it that few items reach, and a module may be missing on one node: so it
// takes the word of every process of every node, on more than one mini-batch, and not one that
// succeeded. Of processes that have no mini-batch to say it of, or are still starting while the
// others try each one again and again, nobody waits for the word.
bool ProgramErrors::AllFailed(const job::JobState& state, uint32_t nodes) const {
  if (state.counts().succeeded > 0 || failed_at_.size() < 2) return false;
  uint64_t failed = 0;
  for (const auto& [node, processes] : failed_) {
    failed += std::min<uint64_t>(processes.size(), processes_);
  }
  const uint64_t all = uint64_t{nodes} * processes_;
  if (failed >= all) return true;
  if (failed_.size() < nodes) return false;
  const bool each = state.plan_ended() && failed_at_.size() >= state.counts().planned;
  return each || (attempts_ >= all && AllReadyFailed(nodes));
}

bool ProgramErrors::AllReadyFailed(uint32_t nodes) const {
  uint32_t told = 0;  // nodes whose living processes are known
  for (const auto& [node, ready] : ready_) {
    if (ready.empty()) continue;
    const auto failed = failed_.find(node);
    if (failed == failed_.end()) return false;
    if (!std::includes(failed->second.begin(), failed->second.end(), ready.begin(), ready.end())) {
      return false;
    }
    ++told;
  }
  return told >= nodes;
}

// Every expected node has given up on init(), or the budget of the whole job is spent.
bool ProgramErrors::NoneStarts(const job::JobState& state, const Nodes& nodes,
                               WorkInstant worked) const {
  const size_t gave_up = nodes.gave_up();
  if (gave_up > 0 && gave_up >= nodes.expected()) return true;
  const uint64_t budget = uint64_t{2} * nodes.expected() * processes_;
  return budget > 0 && init_failures_ >= budget && worked - started_ > kStartsLeast &&
         state.counts().succeeded + state.counts().failed == 0 && !nodes.any_ready();
}

}  // namespace parallelrun::coordinator
