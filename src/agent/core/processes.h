// Processes: the worker processes of this node and what each of them holds: hand-out, answers,
// time-outs, taking back, stops and deaths. It knows mini-batches by their keys only, and nothing
// of leases. Whose fault a death is says blame.h, which time-out has passed overdue.h. Pure; not
// thread-safe. A view in an action is valid until the next method is called.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/core/process_facts.h"
#include "base/time.h"

namespace parallelrun::agent {

struct Given {
  uint64_t sequence = 0;
  Key key = 0;
  Instant since{};                 // when it was handed out
  uint32_t bounces = 0;            // see blame.h
  std::optional<Instant> refused;  // since when its result is wanted no more
};

class Processes {
 public:
  // `terms` are those of the registration in force.
  explicit Processes(const Registration& terms) : terms_(terms) {}

  // False if one of that name lives.
  bool Start(uint32_t number);
  ProcessState StateOf(uint32_t number) const;
  void Ready(uint32_t number) { processes_.at(number).state = ProcessState::kReady; }
  // Its script has a shutdown(): what it gathered is lost with it.
  void Owes(uint32_t number) { processes_.at(number).owes = true; }
  // It said that shutdown() is over: it has a while to end by itself.
  void Stopped(uint32_t number, Instant now);
  // It said that it cannot start. It may end by itself, for a while.
  void StartFailed(uint32_t number, Instant now);
  void Status(uint32_t number, const StatusReading& page);
  uint64_t CountTold(uint32_t number) { return ++processes_.at(number).told; }
  // It is gone; nothing is known of it any more.
  Ended Exited(uint32_t number, bool no_room, Instant now);

  // The process to give the next mini-batch to: the one that holds least, less than `depth`. A
  // mini-batch with bounces is tried alone in async mode.
  std::optional<uint32_t> Idlest(uint32_t depth, uint32_t bounces) const;
  void Give(uint32_t number, Key key, uint32_t bounces, std::string_view work, Instant now);
  // The mini-batch that it may answer now under that sequence number.
  std::optional<Key> Answerable(uint32_t number, uint64_t sequence) const;
  Answered Answer(uint32_t number, uint64_t sequence, Instant now);
  // It did not begin with one that was taken back. False if it may not say that; `key` is set when
  // the mini-batch was with it until now.
  bool PassedOver(uint32_t number, uint64_t sequence, std::optional<Key>& key);
  void Refused(uint32_t number, Key key, Instant now);

  // The lease of a mini-batch may be over at that time.
  using Over = std::function<bool(Key, Instant)>;
  // Looks at all pages: kills what is over its time, takes back what waits behind something that
  // takes longer than `much`.
  Checked Check(Instant now, Duration much, const Over& over);
  // All that are given, and whether the pages show that they have begun.
  std::vector<std::pair<Key, bool>> Begun() const;

  void Kill(uint32_t number) { Kill(number, processes_.at(number)); }
  void KillAll();
  // The node ends or closes: who is idle is asked for shutdown() and killed at `stop_by`, who is
  // starting is killed, and who works too if it is `late`. Who was asked before gets no more time
  // than until `stop_by` either. Who was at one thing since before `hung` leaves its stack.
  void EndAll(bool late, Instant stop_by, Instant hung, Instant now);

  // It has told its header, and waits for that of the job.
  void AwaitHeader(uint32_t number) { processes_.at(number).awaits_header = true; }
  // Tells it to all that wait.
  void TellHeader(std::string_view header);

  // Finds out where those are in Python that are at something: one that waits for work is nowhere.
  void AskWhere();

  // In order, since the last call.
  void TakeActions(std::vector<WorkerAction>& actions);

  size_t size() const { return processes_.size(); }
  size_t given() const { return given_; }
  uint32_t ready() const;
  uint32_t late() const;  // at one mini-batch for so long that nothing should wait behind it
  bool AnyIdle() const;
  // There are some, and all have been at one mini-batch for that long.
  bool AllBusyFor(Duration time, Instant now) const;
  // One that was killed is not gone, and works on.
  bool KilledAtWork() const;
  // When the first is killed that was asked to stop.
  Instant NextDeadline() const;

 private:
  struct Process {
    ProcessState state = ProcessState::kStarting;
    std::deque<Given> given;
    StatusReading page;
    Instant busy_since{};
    Instant stop_by = kNever;
    std::optional<Instant> asked;     // for shutdown()
    std::optional<Duration> cut_off;  // so long after that
    bool owes = false;
    bool answered = false;
    bool late = false;
    bool awaits_header = false;
    uint64_t taken_back = 0;  // what has not begun up to this sequence
    uint64_t told = 0;        // metrics and headers
    Overdue killed_for;
  };
  using GivenAt = std::deque<Given>::const_iterator;

  GivenAt AtWork(const Process& process) const;
  GivenAt FindAnswerable(const Process& process, uint64_t sequence) const;
  bool MayTake(const Process& process, uint32_t depth, uint32_t bounces) const;
  void CheckTimes(uint32_t number, Process& process, Instant now, const Over& over,
                  Checked& checked);
  void CheckLate(uint32_t number, Process& process, Instant now, Duration much, Checked& checked);
  void KillFor(uint32_t number, Process& process, std::optional<Overdue> overdue, bool stack);
  void Kill(uint32_t number, Process& process, bool stack = false);

  const Registration& terms_;
  std::map<uint32_t, Process> processes_;  // by number
  uint64_t sequence_ = 0;
  size_t given_ = 0;    // refused ones too
  std::string header_;  // of the job; actions point into it
  std::vector<WorkerAction> actions_;
};

}  // namespace parallelrun::agent
