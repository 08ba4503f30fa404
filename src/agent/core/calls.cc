#include "agent/core/calls.h"

#include <algorithm>

namespace parallelrun::agent {
namespace {

constexpr Duration kHeartbeat = seconds(1);  // park while leases are held
constexpr Duration kIdlePark = seconds(20);  // park without
constexpr Duration kRenewAfter = milliseconds(900);
constexpr Duration kRenewOverdue = seconds(2);
constexpr Duration kQuiet = milliseconds(20);  // after a report, before a park
constexpr Duration kFirstBackOff = milliseconds(50);
constexpr Duration kLastBackOff = seconds(1);
constexpr int kAwayShare = 8;  // of the time without an answer, a wait is this part at most

}  // namespace

CallKind Calls::Next(Instant now, const ToSay& say) {
  wake_ = kNever;
  if (now < retry_at_) {
    wake_ = retry_at_;
    return CallKind::kNone;
  }
  Flight& report = flights_[0];
  const Flight& park = flights_[1];
  if (report.busy) {
    // Its answer may wait for a slow disk; leases are renewed beside it. Else a disk that takes as
    // long as a lease would end every lease of every node.
    const bool beside = !park.busy && say.holds && !say.registration && !say.offers;
    if (!beside) return CallKind::kNone;
    if (now - renewed_at_ < kRenewOverdue) {
      wake_ = renewed_at_ + kRenewOverdue;
      return CallKind::kNone;
    }
  } else if (say.registration) {
    report.busy = true;
    return CallKind::kRegister;
  }
  if (say.silent) return CallKind::kNone;

  const bool report_due = !report.busy && ReportDue(now, say);
  if (!report_due && !report.busy && (park.busy || now < park_at_)) {
    wake_ = report_due_;
    if (!park.busy) wake_ = std::min(wake_, park_at_);
    if (say.holds) wake_ = std::min(wake_, renewed_at_ + kRenewOverdue);
    return CallKind::kNone;
  }
  return report_due ? CallKind::kReport : CallKind::kPark;
}

bool Calls::ReportDue(Instant now, const ToSay& say) const {
  return say.offers || say.events || report_due_ <= now ||
         (say.holds && now - renewed_at_ >= kRenewOverdue);
}

Flight& Calls::Begin(CallKind call, const Registration& terms, bool holds, Instant now,
                     job::ExchangeRequest& request) {
  const bool parks = call == CallKind::kPark;
  Flight& flight = flights_[parks ? 1 : 0];
  const Flight& other = flights_[parks ? 0 : 1];
  flight.busy = true;
  flight.incarnation = terms.incarnation;
  flight.number = ++requests_;
  flight.sent = now;
  // Never stamped later than it is sent: the time of a lease counts from here.
  flight.lists = now - renewed_at_ >= kRenewAfter;
  flight.unheard = flight.lists && lost_ > 0;
  if (flight.lists) renewed_at_ = now;

  request.incarnation = terms.incarnation;
  request.settings_digest = terms.settings_digest;
  request.number = flight.number;
  request.open = other.busy && other.incarnation == terms.incarnation ? other.number : 0;
  request.unheard = flight.unheard;
  request.park_ms = 0;
  request.held.clear();
  request.offered.clear();
  request.parts.clear();
  request.finished.clear();
  request.events.clear();
  if (parks) {
    // What is granted late in that time must still be the node's for a while.
    const Duration idle = terms.speculation ? kIdlePark : std::min(kIdlePark, terms.lease / 2);
    request.park_ms = static_cast<uint32_t>((holds ? kHeartbeat : idle) / milliseconds(1));
  }
  return flight;
}

Flight Calls::Take(CallKind call) {
  return std::exchange(flights_[call == CallKind::kPark ? 1 : 0], Flight{});
}

Flight Calls::Answered(CallKind call, bool in_force, Instant now) {
  Flight flight = Take(call);
  heard_at_ = now;
  backoff_ = Duration(0);
  // It told what was held when all that got lost was over; what was lost later is still untold.
  if (in_force && flight.unheard && flight.number > lost_) lost_ = 0;
  return flight;
}

void Calls::AfterReply(bool open, bool hungry, Instant now) {
  if (open) retry_at_ = now + kRepeat;
  park_at_ = hungry ? now : now + kQuiet;
}

Flight Calls::Failed(CallKind call, CallFailure failure, bool latest, bool anew, Instant now) {
  if (failure == CallFailure::kStale || failure == CallFailure::kBusy) heard_at_ = now;
  if (anew) backoff_ = Duration(0);  // it was away, maybe, and is there again
  renewed_at_ = Instant{};           // whatever it listed may not have been renewed
  if (call != CallKind::kRegister && latest) lost_ = requests_;
  BackOff(now);
  return Take(call);
}

// Who is away for a moment is asked again in a moment: the work of all nodes may wait for this one.
void Calls::BackOff(Instant now) {
  const Duration away = now - heard_at_;
  const Duration most =
      away > Duration(0) ? std::min(away / kAwayShare, kLastBackOff) : kLastBackOff;
  backoff_ = std::max(std::min(backoff_ * 2, most), kFirstBackOff);
  retry_at_ = now + backoff_;
}

void Calls::Registered(Instant now) {
  Take(CallKind::kRegister);
  heard_at_ = now;
  renewed_at_ = Instant{};
  requests_ = 0;
  lost_ = 0;
  report_due_ = kNever;
}

void Calls::ReportBy(Instant when) { report_due_ = std::min(report_due_, when); }

void Calls::ForgetParts(Key key) {
  for (Flight& flight : flights_) {
    std::erase_if(flight.parts, [key](const auto& part) { return part.first == key; });
  }
}

}  // namespace parallelrun::agent
