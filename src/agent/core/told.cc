#include "agent/core/told.h"

#include <algorithm>
#include <utility>

namespace parallelrun::agent {
namespace {

constexpr size_t kEventBytes = 96;  // at least what one takes in a request

}  // namespace

void Told::Add(Event event) {
  if (events_.size() < kMaxEvents) events_.push_back(std::move(event));
}

void Told::Add(std::vector<Event> events) {
  for (Event& event : events) Add(std::move(event));
}

bool Told::Takes(job::ProcessEvent::Kind kind) {
  if (kind != job::ProcessEvent::Kind::kMetric || events_.size() < kMaxMetrics) return true;
  ++dropped_metrics_;
  return false;
}

bool Told::Report(job::ExchangeRequest& request) {
  size_t budget = job::kMaxRowsBytes;
  for (const Event& event : events_) {
    const size_t cost = event.message.size() + event.log.size() + kEventBytes;
    if (cost > budget && !request.events.empty()) break;
    budget -= std::min(cost, budget);
    request.events.push_back({event.process, event.kind, event.message, event.log});
  }
  under_way_ = request.events.size();
  return under_way_ == events_.size();
}

void Told::Heard() {
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(under_way_));
  under_way_ = 0;
}

void Told::Clear() {
  events_.clear();
  under_way_ = 0;
}

void Told::Note(MiniBatchNote note) {
  if (notes_.size() < kMaxNotes) notes_.push_back(std::move(note));
}

void Told::TakeNotes(std::vector<MiniBatchNote>& notes) {
  notes.clear();
  notes.swap(notes_);
}

}  // namespace parallelrun::agent
