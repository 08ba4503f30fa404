#include "plan/chunk_reader.h"

#include <algorithm>

namespace parallelrun::plan {

ChunkReader::ChunkReader(std::function<Result<std::string>(const job::Place&)> read,
                         std::function<void()> came)
    : read_(std::move(read)), came_(std::move(came)), thread_("plan chunks", [this] { Run(); }) {}

ChunkReader::~ChunkReader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool ChunkReader::Finish(Duration limit) {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

bool ChunkReader::Ask(const job::Place& place) {
  const std::lock_guard lock(mutex_);
  for (const auto& [at, bytes] : read_chunks_) {
    if (at == place) return true;
  }
  if (std::find(asked_.begin(), asked_.end(), place) == asked_.end()) {
    asked_.push_back(place);
    wake_.notify_all();
  }
  return false;
}

Result<std::string> ChunkReader::Take(const job::Place& place) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(read_chunks_.begin(), read_chunks_.end(),
                                  [&](const auto& chunk) { return chunk.first == place; });
  if (found == read_chunks_.end()) {
    return Error{Code::kUnavailable, "this part of the plan is not read yet"};
  }
  Result<std::string> bytes = std::move(found->second);
  read_chunks_.erase(found);
  return bytes;
}

void ChunkReader::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return !asked_.empty() || ends_; });
    if (ends_) return;
    const job::Place place = asked_.front();  // stays there: nobody asks for it a second time
    lock.unlock();
    Result<std::string> bytes = read_(place);
    lock.lock();
    asked_.pop_front();
    read_chunks_.emplace_back(place, std::move(bytes));
    if (read_chunks_.size() > kMostWaiting) read_chunks_.pop_front();
    lock.unlock();
    came_();
    lock.lock();
  }
}

}  // namespace parallelrun::plan
