// ChunkReader reads plan chunks out of the ledger, one after the other, in a thread of its own: the
// volume of the state may hang, and the decisions must not. What was read waits here, a few chunks
// at most, until it is taken. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "plan/plan_store.h"

namespace parallelrun::plan {

class ChunkReader final : public ChunkSource {
 public:
  // `read` reads, and `came` is called after each chunk; both in the thread.
  ChunkReader(std::function<Result<std::string>(const job::Place&)> read,
              std::function<void()> came);
  // Waits for a read that goes on: ask Finish first.
  ~ChunkReader() override;
  ChunkReader(const ChunkReader&) = delete;
  ChunkReader& operator=(const ChunkReader&) = delete;

  bool Ask(const job::Place& place) override;
  Result<std::string> Take(const job::Place& place) override;

  // No more begins. False: one goes on for longer than `limit`.
  bool Finish(Duration limit);

 private:
  // Who asked may have lost its interest meanwhile: what is taken by nobody makes room for the
  // rest.
  static constexpr size_t kMostWaiting = 4;

  void Run();

  const std::function<Result<std::string>(const job::Place&)> read_;
  const std::function<void()> came_;
  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable wake_;
  std::deque<job::Place> asked_;  // the first one is being read
  std::deque<std::pair<job::Place, Result<std::string>>> read_chunks_;
  bool ends_ = false;
  Thread thread_;
};

}  // namespace parallelrun::plan
