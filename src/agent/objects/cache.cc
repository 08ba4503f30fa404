#include "agent/objects/cache.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun::agent {

void Cache::Want(Key key, const std::vector<job::ObjectName>& objects) {
  MiniBatch& mini_batch = mini_batches_[key];
  for (const job::ObjectName& name : objects) {
    const auto [known, is_new] = numbers_.emplace(name, next_);
    const Number number = known->second;
    if (is_new) {
      ++next_;
      objects_[number].name = name;
      waiting_.insert(number);
    }
    Object& object = objects_.at(number);
    object.wanted_by.insert(key);
    unused_.erase(std::exchange(object.unused, 0));
    if (!mini_batch.objects.insert(number).second) continue;
    if (object.state != State::kHere) ++mini_batch.missing;
  }
  if (mini_batch.missing == 0) ready_.push_back(key);
}

void Cache::Drop(Key key) {
  const auto dropped = mini_batches_.find(key);
  if (dropped == mini_batches_.end()) return;
  const MiniBatch mini_batch = std::move(dropped->second);
  mini_batches_.erase(dropped);
  for (const Number number : mini_batch.objects) {
    Object& object = objects_.at(number);
    object.wanted_by.erase(key);
    if (!object.wanted_by.empty()) continue;
    if (object.state == State::kHere) Unuse(number, object);
    // One that a thread is at goes when it comes back.
    if (object.state == State::kNew || object.state == State::kLooked) Forget(number);
  }
}

std::optional<Cache::Step> Cache::Next() {
  // Room goes to the first that has none, once its size is known, or to nobody.
  while (!waiting_.empty()) {
    const Number number = *waiting_.begin();
    Object& object = objects_.at(number);
    if (object.state != State::kLooked) break;
    MakeRoom(object.bytes);
    if (object.bytes <= size_ - promised_) {
      waiting_.erase(number);
      promised_ += object.bytes;
      object.state = State::kFetching;
      return Step{Step::Kind::kFetch, number, object.name};
    }
    if (object.bytes <= size_ - promised_ + leaving_) break;  // until the files are removed
    // Else it waits until others let go of theirs.
    if (!FailTooLarge(std::set(object.wanted_by)) && !GiveWay()) break;
  }
  for (auto& [number, removal] : removals_) {
    if (!std::exchange(removal.begun, true)) return Step{Step::Kind::kRemove, number};
  }
  for (const Number number : waiting_) {
    Object& object = objects_.at(number);
    if (object.state != State::kNew) continue;
    object.state = State::kLooking;
    return Step{Step::Kind::kLook, number, object.name};
  }
  return std::nullopt;
}

void Cache::Looked(Number number, uint64_t bytes) {
  Object& object = objects_.at(number);
  object.state = State::kLooked;
  object.bytes = bytes;
  if (object.wanted_by.empty()) Forget(number);
}

void Cache::Fetched(Number number) {
  Object& object = objects_.at(number);
  object.state = State::kHere;
  for (const Key key : object.wanted_by) {
    if (--mini_batches_.at(key).missing == 0) ready_.push_back(key);
  }
  if (object.wanted_by.empty()) Unuse(number, object);
}

void Cache::Failed(Number number, const Error& error) {
  Object& object = objects_.at(number);
  if (object.state == State::kFetching) promised_ -= object.bytes;
  object.state = State::kNew;
  waiting_.insert(number);
  const std::set<Key> wanted_by = object.wanted_by;
  for (const Key key : wanted_by) Fail(key, error);
  if (wanted_by.empty()) Forget(number);
}

void Cache::Again(Number number) {
  Object& object = objects_.at(number);
  if (object.state == State::kFetching) promised_ -= object.bytes;
  object.state = State::kNew;
  waiting_.insert(number);
  if (object.wanted_by.empty()) Forget(number);
}

void Cache::Removed(Number number) {
  const auto removed = removals_.find(number);
  promised_ -= removed->second.bytes;
  leaving_ -= removed->second.bytes;
  removals_.erase(removed);
}

bool Cache::Wanted(Number number) const {
  const auto found = objects_.find(number);
  return found != objects_.end() && !found->second.wanted_by.empty();
}

std::set<Key> Cache::WantedBy(Number number) const {
  const auto found = objects_.find(number);
  return found == objects_.end() ? std::set<Key>() : found->second.wanted_by;
}

// What was let go of first goes first.
void Cache::MakeRoom(uint64_t bytes) {
  while (bytes > size_ - promised_ + leaving_ && !unused_.empty()) {
    const Number number = unused_.begin()->second;
    unused_.erase(unused_.begin());
    const uint64_t leaves = objects_.at(number).bytes;
    removals_[number].bytes = leaves;
    leaving_ += leaves;
    Forget(number);
  }
}

bool Cache::FailTooLarge(const std::set<Key>& wanted_by) {
  bool any = false;
  for (const Key key : wanted_by) {
    if (!NeverFits(key)) continue;
    Fail(key,
         {Code::kInvalid,
          fmt::format("the objects of a mini-batch take more than the {} bytes that a node "
                      "keeps of them: raise spec.cache.size, lower miniBatchSize, or, where the "
                      "script can read URLs, write access: Uri in the input",
                      size_)});
    any = true;
  }
  return any;
}

// When nothing is under way, and no mini-batch has all of its objects, nobody would ever let go.
bool Cache::GiveWay() {
  const bool busy = std::any_of(objects_.begin(), objects_.end(), [](const auto& object) {
    const State state = object.second.state;
    return state == State::kLooking || state == State::kFetching;
  });
  const bool any_ready = std::any_of(mini_batches_.begin(), mini_batches_.end(),
                                     [](const auto& one) { return one.second.missing == 0; });
  if (busy || any_ready || leaving_ > 0 || mini_batches_.size() < 2) return false;
  Fail(mini_batches_.rbegin()->first, {Code::kUnavailable, "others have the room of its objects"});
  return true;
}

void Cache::Unuse(Number number, Object& object) {
  object.unused = next_unused_++;
  unused_.emplace(object.unused, number);
}

// Whether the objects of a mini-batch whose sizes are known are too large together.
bool Cache::NeverFits(Key key) const {
  uint64_t bytes = 0;
  for (const Number number : mini_batches_.at(key).objects) {
    const uint64_t more = objects_.at(number).bytes;
    if (more > size_ - bytes) return true;
    bytes += more;
  }
  return false;
}

void Cache::Fail(Key key, const Error& error) {
  Drop(key);
  failed_.emplace_back(key, error);
}

void Cache::Forget(Number number) {
  numbers_.erase(objects_.at(number).name);
  objects_.erase(number);
  waiting_.erase(number);
}

}  // namespace parallelrun::agent
