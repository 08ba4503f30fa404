// RunEnd leads an epoch to its end: it says what is to be done next, and with which exit the
// process leaves. It knows what was done by being told so; whoever carries it out
// (CoordinatorServer with threads and a network, the simulation with events) decides nothing. Pure:
// no thread, no I/O, the time is passed in. Not thread-safe.
//
// Until something ends the epoch, Next says after each event, in this order:
//
//   1. what is due at all times: a look for a newer epoch, a pause where there is no room.
//   2. whether the epoch cannot go on: the ledger has failed, a signal came before there was a
//      verdict, it is superseded, its ledger is gone, or nobody wants it. That comes before all
//      that follows: who is superseded must show nothing, and without a ledger nothing can be
//      promised.
//   3. what is not durable is flushed.
//   4. what the phase calls for:
//        kFinalizing  the output is published, or the folder looked at that the script wrote
//                     to. Not sooner: an output that people see is of a verdict that no crash
//                     undoes.
//        kEnded       the items that were lost are named, then nodes have their time to leave: they
//                     upload their logs, of which the reports tell.
//        kDraining    once no node is left and all is durable, or there is no room for it.
//
// From the end on only these, one after the other, each once the one before it was told as done:
//
//   stop ▶ reports ▶ results ▶ token ▶ output ▶ logs ▶ leave
//
// Reports come before the output is given back: the next run that gets it may set the logs aside,
// and would find half of them its own. So do the names of what the script has left, which that run
// removes by. The token goes before the claim does: who has the claim must be alone. Logs that go
// to a store come after all that others wait for, so that a store which is slow or away keeps
// neither rows nor the next run. To leave comes last, for whoever supervises the process may start
// the next one then. A volume that hangs keeps nobody for ever: then it leaves as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/core/ending.h"
#include "coordinator/last_words.h"

namespace parallelrun::coordinator {

class RunEnd {
 public:
  struct Options {
    bool publishes = false;     // false: what the script wrote to the output folder is the result
    bool sends_logs = false;    // to a store
    std::string output_folder;  // the two are for messages
    std::string state_folder;
    Duration leave_limit = seconds(30);  // how long nodes may take to upload their logs at the end
    Duration ownerless_limit = std::chrono::hours(24);  // without a node and a call: it ends
  };

  // What the decisions say now (Coordinator::FactsOfEnd).
  struct Facts {
    Ending::Phase phase = Ending::Phase::kRunning;
    bool decided = false;    // there is a verdict, durable or not
    bool succeeded = false;  // so it says
    size_t nodes = 0;        // registered
    bool durable = true;     // all that was appended
    bool wants_look = false;
    bool superseded = false;
    std::string_view lost = {};    // why the ledger is gone; "": it is not
    std::string_view paused = {};  // why the ledger cannot be written for now; "": it can
  };

  enum class Do : uint8_t {
    kLook,              // for a newer epoch
    kPause,             // there is no_room()
    kFlush,             // the ledger, unless that goes on already
    kPublish,           // then tell Published
    kLookAtOutput,      // whether its folder is there; then tell OutputFolderSeen
    kNothingToPublish,  // the decisions may take the job for ended
    kNameLast,          // the items that were lost; then tell LastNamed
    // The end
    kStop,          // what would still begin, as the listing
    kWriteReports,  // each of these five: then tell Done
    kNameResults,   // of the script, so that a run that starts over can remove them
    kRemoveToken,   // without which nothing is published
    kGiveBack,      // the output
    kSendLogs,      // to their store
    kLeave,
  };

  RunEnd(Options options, Instant now) : options_(std::move(options)), heard_at_(now) {}

  // --- what has happened
  void Heard(Instant at) { heard_at_ = std::max(heard_at_, at); }  // the last call of anybody
  void HandOver() { hand_over_ = true; }  // by a signal: the next epoch goes on
  void FlushFailed(const Error& why, Instant now);
  // kNoSpace and kUnavailable: it is tried again. kStale: a newer epoch has taken the token.
  // kExists, kInvalid: what is in the output's place, or does not fit into it, is for people.
  void Published(const Status& published, Instant now);
  void OutputFolderSeen(const Result<bool>& there);
  void LastNamed() { last_named_ = true; }
  void Done(Do step);

  // What is to be done now, in this order. After each event, and at least each second.
  std::vector<Do> Next(const Facts& facts, Instant now);

  // --- what it says
  const std::string& no_room() const { return no_room_; }
  bool ending() const { return exit_.has_value(); }
  bool left() const { return left_; }
  CoordinatorExit exit() const { return exit_.value_or(CoordinatorExit::kDiskFailed); }
  // Why it ended early, in words; "" when the job was over.
  const std::string& because() const { return because_; }
  // The job is over, as exit() says.
  bool over() const;
  // The step that hung when it left; none: all was done.
  std::optional<Do> hung() const { return hung_; }

 private:
  void Pause(const std::string& why) { pauses_ = true, no_room_ = why; }
  void CannotGoOn(CoordinatorExit exit, std::string because);
  void GoOn(const Facts& facts, Instant now, std::vector<Do>& todo);
  void Follow(const Facts& facts, Instant now, std::vector<Do>& todo);
  void End(CoordinatorExit exit, std::string because, const Facts& facts, Instant now);
  void TakeStep(Instant now, std::vector<Do>& todo);

  const Options options_;
  Instant heard_at_;
  bool hand_over_ = false;
  std::optional<std::pair<CoordinatorExit, std::string>> cannot_;  // go on, and why
  bool pauses_ = false;
  std::string no_room_;
  Instant flush_at_;    // not before
  Instant publish_at_;  // not before
  bool publishing_ = false;
  bool nothing_to_publish_ = false;
  std::optional<Instant> ended_at_;  // the job
  bool last_named_ = false;
  // The end
  std::optional<CoordinatorExit> exit_;
  std::string because_;
  std::deque<Do> steps_;  // that are left
  bool at_work_ = false;  // the first of them
  Instant leave_by_;
  std::optional<Do> hung_;
  bool left_ = false;
};

}  // namespace parallelrun::coordinator
