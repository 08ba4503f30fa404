#include "agent/logs/mini_batch_writer.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <stop_token>
#include <utility>

#include "base/pause.h"

namespace parallelrun::agent {

// One thread runs them; the writer asks it to end, and may be gone before it does.
class MiniBatchWriter::Rounds {
 public:
  Rounds(std::shared_ptr<Files> files, Options options)
      : files_(std::move(files)),
        interval_(options.interval),
        log_(*files_, std::move(options.folder), std::move(options.address)) {}

  void Run();
  // From other threads.
  MiniBatchLog& log() { return log_; }
  void SetLimit(uint64_t bytes) { limit_ = bytes; }
  void End() { end_.request_stop(); }

 private:
  const std::shared_ptr<Files> files_;
  const Duration interval_;
  const SystemClock clock_;
  MiniBatchLog log_;
  std::atomic<uint64_t> limit_{uint64_t{1} << 30};
  std::stop_source end_;
};

void MiniBatchWriter::Rounds::Run() {
  const std::stop_token end = end_.get_token();
  while (Pause(interval_, end)) log_.Flush(clock_.WallNow(), limit_);
  log_.Finish(clock_.WallNow(), limit_);
}

MiniBatchWriter::MiniBatchWriter(std::shared_ptr<Files> files, Options options)
    : end_limit_(options.end_limit),
      rounds_(std::make_shared<Rounds>(std::move(files), std::move(options))),
      thread_("mini-batch log", [rounds = rounds_] { rounds->Run(); }) {}

MiniBatchWriter::~MiniBatchWriter() { Finish(); }

MiniBatchLog& MiniBatchWriter::log() { return rounds_->log(); }

void MiniBatchWriter::SetLimit(uint64_t bytes) { rounds_->SetLimit(bytes); }

void MiniBatchWriter::Finish() {
  if (!thread_.joinable()) return;
  rounds_->End();
  if (!thread_.JoinOrLeave(end_limit_)) {
    spdlog::warn(
        "the last lines of the log of the mini-batches are not written: does its disk "
        "hang?");
  }
}

}  // namespace parallelrun::agent
