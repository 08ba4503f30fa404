// Calls: which request to the coordinator goes when, and what an answer, or none, ends. Two
// exchanges may be under way: a report, which is answered once what it reports is durable, and one
// that parks until there is work. What they carry is known here by its keys only.
// Pure; not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

// An exchange under way, and what its answer is about.
struct Flight {
  bool busy = false;
  job::Incarnation incarnation;
  uint64_t number = 0;  // of the request, within the incarnation
  Instant sent{};
  bool lists = false;    // it lists all that is held, which renews the leases
  bool unheard = false;  // it said that an earlier one got no answer
  uint32_t want = 0;
  std::vector<job::LeaseName>
      held;  // as they were listed: a fence may change while it is under way
  std::vector<Key> finished;
  std::vector<std::pair<Key, uint64_t>> parts;  // bytes of rows that are there once it is answered
};

// What the agent has to say, as far as it decides which call goes.
struct ToSay {
  bool registration = false;
  bool holds = false;  // mini-batches, whose leases must be renewed
  bool offers = false;
  bool events = false;
  bool silent = false;  // for now nothing but a registration may be said
};

class Calls {
 public:
  static constexpr Duration kRepeat = milliseconds(50);  // what an answer left open is said again

  explicit Calls(Instant now) : heard_at_(now) {}

  // The call to make now; a registration is under way then, an exchange once it is begun.
  CallKind Next(Instant now, const ToSay& say);
  // Fills in what every exchange says: whose it is, its number, what is under way beside it, and
  // how long it may be parked. The flight is there until its end.
  Flight& Begin(CallKind call, const Registration& terms, bool holds, Instant now,
                job::ExchangeRequest& request);
  const Flight& Of(CallKind call) const { return flights_[call == CallKind::kPark ? 1 : 0]; }

  // The end of an exchange; what it carried is the caller's to settle. `in_force`: it is of the
  // registration in force.
  Flight Answered(CallKind call, bool in_force, Instant now);
  // After all that an answer said was done. `open` is what it left to be said again soon, `hungry`
  // that work may be had at once.
  void AfterReply(bool open, bool hungry, Instant now);
  // `latest`: of the latest incarnation. `anew`: by this the agent heard that it must register.
  Flight Failed(CallKind call, CallFailure failure, bool latest, bool anew, Instant now);
  void Registered(Instant now);

  // There is something to report at that time.
  void ReportBy(Instant when);
  // A report took what there was, or left some for the next one.
  void Reported(bool more) { report_due_ = more ? Instant{} : kNever; }
  // Rows of it that are under way count no more: they were sent under a fence that is gone, and the
  // answer to them may come after the answer that gave it the new one.
  void ForgetParts(Key key);

  uint32_t wanted() const { return flights_[0].want + flights_[1].want; }
  // How long no coordinator has answered; 0 while the last call did not fail.
  Duration Away(Instant now) const { return backoff_ > Duration(0) ? now - heard_at_ : backoff_; }
  // When Next would give another answer without a new event.
  Instant wake() const { return wake_; }
  void WakeAt(Instant when) { wake_ = when; }

 private:
  bool ReportDue(Instant now, const ToSay& say) const;
  void BackOff(Instant now);
  Flight Take(CallKind call);

  std::array<Flight, 2> flights_;
  uint64_t requests_ = 0;  // of this incarnation
  uint64_t lost_ = 0;      // the last request before one ended without an answer; 0: none did
  Instant retry_at_{};
  Instant heard_at_;  // last answer of a coordinator
  Duration backoff_{0};
  Instant renewed_at_{};  // when the last answered list of held leases was sent
  Instant report_due_ = kNever;
  Instant park_at_{};
  Instant wake_ = kNever;
};

}  // namespace parallelrun::agent
