#include "agent/core/held.h"

#include <algorithm>

#include "job/work_objects.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kEntryBytes = 96;  // at least what a finished mini-batch takes in a request

}  // namespace

std::optional<Key> Held::Add(const job::Leased& leased, bool offered, Instant sent) {
  const job::LeaseName name{leased.id, leased.fence};
  if (!names_.emplace(name, next_).second) return std::nullopt;
  const Key key = next_++;
  Batch& batch = batches_[key];
  batch.name = name;
  batch.digest = leased.digest;
  batch.work = leased.work;
  batch.offered = offered;
  batch.confirmed = sent;
  if (offered) ++offers_;
  ++unfinished_;
  batch.of_objects = job::NamesObjects(leased.work);
  if (batch.of_objects) {
    batch.state = Batch::State::kFetches;
    fetching_.push_back(key);
    wanting_.push_back(key);
  } else {
    waiting_.push_back(key);
  }
  return key;
}

bool Held::Fetches(Key key) const {
  const auto it = batches_.find(key);
  return it != batches_.end() && it->second.state == Batch::State::kFetches;
}

void Held::WantUrls(Key key, bool wants) {
  if (Fetches(key)) batches_.at(key).wants_urls = wants;
}

bool Held::Fetched(Key key, std::string work) {
  if (!Fetches(key)) return false;
  Batch& batch = batches_.at(key);
  batch.work = std::move(work);
  batch.state = Batch::State::kWaits;
  batch.wants_urls = false;
  waiting_.push_back(key);
  return true;
}

void Held::LetGo(Key key, Batch& batch) {
  if (std::exchange(batch.of_objects, false)) let_go_.push_back(key);
}

std::optional<Key> Held::Find(const job::LeaseName& name) const {
  const auto it = names_.find(name);
  if (it == names_.end()) return std::nullopt;
  return it->second;
}

std::vector<job::LeaseName> Held::Names() const {
  std::vector<job::LeaseName> names;
  names.reserve(names_.size());
  for (const auto& [name, key] : names_) names.push_back(name);
  return names;
}

std::optional<Key> Held::FirstWaiting() {
  while (!waiting_.empty()) {
    const auto it = batches_.find(waiting_.front());
    if (it != batches_.end() && it->second.state == Batch::State::kWaits) return it->first;
    waiting_.pop_front();
  }
  return std::nullopt;
}

void Held::Give(Key first, uint32_t process) {
  waiting_.pop_front();
  Batch& batch = batches_.at(first);
  batch.state = Batch::State::kGiven;
  batch.process = process;
}

void Held::GiveAgain(Key key, uint32_t bounces) {
  DropRows(key);
  Batch& batch = batches_.at(key);
  batch.begun = false;
  batch.bounces = bounces;
  batch.state = Batch::State::kWaits;
  waiting_.push_front(key);
}

std::vector<Key> Held::Waiting(size_t keep) {
  std::vector<Key> rest;
  size_t left = keep;
  const auto sort_out = [&](std::deque<Key>& keys, Batch::State state) {
    std::deque<Key> kept;
    for (const Key key : keys) {
      const auto it = batches_.find(key);
      if (it == batches_.end() || it->second.state != state) continue;
      if (left > 0) {
        kept.push_back(key);
        --left;
      } else {
        rest.push_back(key);
      }
    }
    keys.swap(kept);
  };
  sort_out(waiting_, Batch::State::kWaits);
  sort_out(fetching_, Batch::State::kFetches);
  return rest;
}

// What was adopted since is not renewed by this answer: the coordinator knew it under a fence that
// the request did not name, and may have leased it elsewhere by the time that would be added.
void Held::Confirm(const std::vector<job::LeaseName>& names, Instant sent) {
  for (const job::LeaseName& name : names) {
    const auto it = names_.find(name);
    if (it == names_.end()) continue;
    Batch& batch = batches_.at(it->second);
    batch.confirmed = std::max(batch.confirmed, sent);
  }
}

void Held::HeardParts(const std::vector<std::pair<Key, uint64_t>>& parts) {
  for (const auto& [key, heard] : parts) {
    const auto it = batches_.find(key);
    if (it != batches_.end()) it->second.rows_heard = std::max(it->second.rows_heard, heard);
  }
}

bool Held::Refuse(Key key) {
  Batch& batch = batches_.at(key);
  if (batch.state != Batch::State::kGiven) {
    Forget(key);
    return false;
  }
  names_.erase(batch.name);
  if (batch.offered) --offers_;
  --unfinished_;
  batch.offered = false;
  batch.refused = true;
  return true;
}

std::optional<Held::Adoption> Held::Adopt(const job::Adopted& adopted, Instant sent) {
  const auto it = names_.find({adopted.id, adopted.old_fence});
  if (it == names_.end()) return std::nullopt;
  const Key key = it->second;
  Batch& batch = batches_.at(key);
  names_.erase(it);
  batch.name.fence = adopted.fence;
  names_.emplace(batch.name, key);
  batch.confirmed = std::max(batch.confirmed, sent);
  // Parts died with the fence under which they were sent. Were they counted, the rest of a result
  // would come without them under the new fence, and be refused each time it is repeated.
  batch.rows_heard = 0;
  // One that was not offered had expired, and was not refused: it goes on.
  if (!std::exchange(batch.offered, false)) return Adoption{key, false};
  --offers_;
  const bool report = batch.state == Batch::State::kFinished;
  if (report) unreported_.push_back(key);
  return Adoption{key, report};
}

std::vector<job::LeaseName> Held::OfferAll(Instant over_before) {
  unreported_.clear();  // an answer that adopts them says so
  offers_ = 0;
  std::vector<job::LeaseName> dropped;
  for (auto& [key, batch] : batches_) {
    if (batch.refused) continue;
    // What was handed back may be here again, under a newer lease. Where one is over, an epoch that
    // this node never heard of may have leased it to a node that is not heard yet.
    batch.offered = batch.state == Batch::State::kFinished
                        ? batch.outcome.kind != job::Finished::Kind::kReturned
                        : batch.confirmed > over_before;
    batch.rows_heard = 0;  // parts died with the incarnation that sent them
    if (batch.offered) {
      ++offers_;
    } else {
      dropped.push_back(batch.name);
    }
  }
  return dropped;
}

bool Held::Over(Key key, Instant over_before) const {
  const Batch& batch = batches_.at(key);
  return !batch.refused && batch.confirmed <= over_before;
}

void Held::AddRows(Key key, std::string_view rows) {
  batches_.at(key).rows.append(rows);
  kept_bytes_ += rows.size();
}

void Held::DropRows(Key key) {
  std::string& rows = batches_.at(key).rows;
  kept_bytes_ -= rows.size();
  rows = {};
}

// Under a fence of an earlier incarnation a result would be refused, and be lost for the job.
bool Held::Finish(Key key, Outcome outcome) {
  Batch& batch = batches_.at(key);
  --unfinished_;
  batch.state = Batch::State::kFinished;
  batch.outcome = std::move(outcome);
  batch.work = {};
  LetGo(key, batch);
  if (batch.offered) {
    // Not this incarnation's yet: reported once it is adopted. What has not begun is just let go.
    if (batch.outcome.kind == job::Finished::Kind::kReturned) Forget(key);
    return false;
  }
  unreported_.push_back(key);
  return true;
}

// What the rest of the agent may still hold of it are keys, in lists that skip unknown ones.
void Held::Forget(Key key) {
  const auto it = batches_.find(key);
  Batch& batch = it->second;
  LetGo(key, batch);
  if (!batch.refused) {
    names_.erase(batch.name);
    if (batch.offered) --offers_;
    if (batch.state != Batch::State::kFinished) --unfinished_;
  }
  kept_bytes_ -= batch.rows.size();
  batches_.erase(it);
}

void Held::List(const std::vector<std::pair<Key, bool>>& begun, Flight& flight,
                job::ExchangeRequest& request) {
  for (const auto& [key, is_begun] : begun) batches_.at(key).begun = is_begun;
  for (const auto& [key, batch] : batches_) {
    if (batch.refused || batch.offered) continue;
    request.held.push_back({batch.name.id, batch.name.fence, batch.begun, batch.wants_urls});
    flight.held.push_back(batch.name);
  }
}

void Held::Offer(job::ExchangeRequest& request) const {
  if (offers_ == 0) return;
  for (const auto& [key, batch] : batches_) {
    if (!batch.offered) continue;
    request.offered.push_back({batch.name.id, batch.name.fence, batch.digest});
  }
}

bool Held::Report(Flight& flight, job::ExchangeRequest& request) {
  size_t budget = job::kMaxRowsBytes;
  while (!unreported_.empty()) {
    const auto it = batches_.find(unreported_.front());
    if (it != batches_.end() && !ReportOne(it->first, it->second, budget, flight, request)) {
      return true;
    }
    unreported_.pop_front();
  }
  return false;
}

// False when it does not fit any more; a part of its rows may have been added.
bool Held::ReportOne(Key key, const Batch& batch, size_t& budget, Flight& flight,
                     job::ExchangeRequest& request) {
  const job::LeaseName& name = batch.name;
  const Outcome& outcome = batch.outcome;
  const std::string_view rows = std::string_view(batch.rows).substr(batch.rows_heard);
  const size_t texts = outcome.error_kind.size() + outcome.message.size() + outcome.log.size();
  const size_t cost = rows.size() + texts + kEntryBytes;
  if (cost > budget) {
    if (rows.size() + kEntryBytes > job::kMaxRowsBytes && budget > kEntryBytes) {
      const std::string_view part = rows.substr(0, budget - kEntryBytes);
      request.parts.push_back({name.id, name.fence, batch.rows_heard, part});
      flight.parts.emplace_back(key, batch.rows_heard + part.size());
    }
    budget = 0;
    return false;
  }
  budget -= cost;
  job::Finished finished;
  finished.id = name.id;
  finished.fence = name.fence;
  finished.kind = outcome.kind;
  finished.process = batch.process;
  finished.result() = outcome.result();
  finished.rows_offset = batch.rows_heard;
  finished.rows = rows;
  finished.cause = outcome.cause;
  finished.error_kind = outcome.error_kind;
  finished.message = outcome.message;
  finished.log = outcome.log;
  finished.output = outcome.output;
  request.finished.push_back(finished);
  flight.finished.push_back(key);
  return true;
}

bool Held::ReportAgain(const std::vector<Key>& keys) {
  bool any = false;
  for (const Key key : keys) {
    if (!batches_.contains(key)) continue;
    unreported_.push_back(key);
    any = true;
  }
  return any;
}

}  // namespace parallelrun::agent
