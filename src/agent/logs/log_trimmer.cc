#include "agent/logs/log_trimmer.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <map>
#include <mutex>
#include <stop_token>
#include <utility>

#include "agent/logs/log_trim.h"
#include "base/pause.h"

namespace parallelrun::agent {

// One thread runs them; the trimmer asks it to end, and may be gone before it does.
class LogTrimmer::Rounds {
 public:
  explicit Rounds(Duration interval) : interval_(interval) {}

  void Run();
  // From other threads.
  void SetLimit(uint64_t bytes) { limit_ = bytes; }
  void Add(uint32_t process, std::vector<Fd> logs);
  void Forget(uint32_t process);
  void End() { end_.request_stop(); }

 private:
  using Logs = std::shared_ptr<const std::vector<Fd>>;
  void Trim();

  const Duration interval_;
  std::atomic<uint64_t> limit_{uint64_t{1} << 30};
  std::mutex mutex_;  // guards logs_
  std::map<uint32_t, Logs> logs_;
  std::stop_source end_;
};

void LogTrimmer::Rounds::Run() {
  const std::stop_token end = end_.get_token();
  while (Pause(interval_, end)) Trim();
  Trim();
}

// Without the mutex, which the loop may want.
void LogTrimmer::Rounds::Trim() {
  std::vector<Logs> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [process, logs] : logs_) all.push_back(logs);
  }
  for (const Logs& logs : all) {
    for (const Fd& log : *logs) TrimLog(log.get(), limit_);
  }
}

void LogTrimmer::Rounds::Add(uint32_t process, std::vector<Fd> logs) {
  const std::lock_guard lock(mutex_);
  logs_[process] = std::make_shared<const std::vector<Fd>>(std::move(logs));
}

void LogTrimmer::Rounds::Forget(uint32_t process) {
  const std::lock_guard lock(mutex_);
  logs_.erase(process);
}

LogTrimmer::LogTrimmer(Duration interval)
    : rounds_(std::make_shared<Rounds>(interval)),
      thread_("trim logs", [rounds = rounds_] { rounds->Run(); }) {}

LogTrimmer::~LogTrimmer() {
  rounds_->End();
  if (!thread_.JoinOrLeave(kEndLimit)) {
    spdlog::warn("the logs of processes may be above their limit: does their disk hang?");
  }
}

void LogTrimmer::SetLimit(uint64_t bytes) { rounds_->SetLimit(bytes); }

void LogTrimmer::Add(uint32_t process, std::vector<Fd> logs) {
  rounds_->Add(process, std::move(logs));
}

void LogTrimmer::Forget(uint32_t process) { rounds_->Forget(process); }

}  // namespace parallelrun::agent
