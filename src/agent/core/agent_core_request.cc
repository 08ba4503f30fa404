#include <algorithm>
#include <string_view>

#include "agent/core/agent_core.h"

// What an exchange says: offers, events, what is held, what is finished.

namespace parallelrun {
namespace {

constexpr Duration kRenewAfter = milliseconds(900);
constexpr size_t kEntryBytes = 96;  // at least what a finished mini-batch takes in a request

}  // namespace

void AgentCore::AddOffersAndEvents(ExchangeRequest& request) {
  if (offers_ > 0) {
    for (const auto& [key, batch] : leases_) {
      if (batch.offered) {
        request.offered.push_back({batch.name.id, batch.name.fence, batch.digest});
      }
    }
  }
  size_t budget = kMaxRowsBytes;
  for (const Event& event : events_) {
    const size_t cost = event.message.size() + event.log.size() + kEntryBytes;
    if (cost > budget && !request.events.empty()) break;
    budget -= std::min(cost, budget);
    request.events.push_back({event.process, event.kind, event.message, event.log});
  }
  flights_[0].events = request.events.size();
}

void AgentCore::AddHeld(Flight& flight, ExchangeRequest& request) {
  request.unheard = flight.unheard = false;
  if (flight.sent - renewed_at_ < kRenewAfter) return;
  renewed_at_ = flight.sent;
  request.unheard = flight.unheard = lost_ > 0;
  for (const auto& [number, process] : processes_) {
    for (const Given& given : process.given) {
      const StatusReading& status = process.status;
      Batch& batch = leases_.at(given.key);
      // In async mode the page tells of the oldest one in flight only.
      batch.started = given.sequence < status.sequence ||
                      (given.sequence == status.sequence && status.phase >= Phase::kRun) ||
                      (registration_.async && status.Working());
    }
  }
  for (const auto& [key, batch] : leases_) {
    if (batch.refused || batch.offered) continue;
    request.held.push_back({batch.name.id, batch.name.fence, batch.started});
    flight.held.push_back(key);
  }
}

void AgentCore::AddFinished(ExchangeRequest& request) {
  size_t budget = kMaxRowsBytes;
  report_due_ = kNever;
  while (!unreported_.empty()) {
    const Key key = unreported_.front();
    const Batch* batch = Find(key);
    if (batch != nullptr && !AddResult(key, *batch, budget, request)) {
      report_due_ = Instant{};  // more is waiting: the next report follows this one
      return;
    }
    unreported_.pop_front();
  }
}

// False when it does not fit any more; a part of its rows may have been added.
bool AgentCore::AddResult(Key key, const Batch& batch, size_t& budget, ExchangeRequest& request) {
  const LeaseName& name = batch.name;
  const std::string_view rows = std::string_view(batch.rows).substr(batch.rows_received);
  const size_t texts = batch.error_kind.size() + batch.message.size() + batch.log.size();
  const size_t cost = rows.size() + texts + kEntryBytes;
  if (cost > budget) {
    if (rows.size() + kEntryBytes > kMaxRowsBytes && budget > kEntryBytes) {
      const std::string_view part = rows.substr(0, budget - kEntryBytes);
      request.parts.push_back({name.id, name.fence, batch.rows_received, part});
      flights_[0].parts.emplace_back(key, batch.rows_received + part.size());
    }
    budget = 0;
    return false;
  }
  budget -= cost;
  Finished finished;
  finished.id = name.id;
  finished.fence = name.fence;
  finished.kind = batch.kind;
  finished.process = batch.process;
  finished.run_ns = batch.run_ns;
  finished.cpu_ns = batch.cpu_ns;
  finished.elapsed_ns = batch.elapsed_ns;
  finished.items_succeeded = batch.items_succeeded;
  finished.items_skipped = batch.items_skipped;
  finished.row_count = batch.row_count;
  finished.rows_offset = batch.rows_received;
  finished.rows = rows;
  finished.cause = batch.cause;
  finished.error_kind = batch.error_kind;
  finished.message = batch.message;
  finished.log = batch.log;
  finished.output = batch.output;
  request.finished.push_back(finished);
  flights_[0].finished.push_back(key);
  return true;
}

}  // namespace parallelrun
