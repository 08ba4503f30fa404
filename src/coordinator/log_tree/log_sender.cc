#include "coordinator/log_tree/log_sender.h"

#include <spdlog/spdlog.h>

#include <vector>

#include "base/in_order.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kSegmentThreads = 4;

}  // namespace

LogSender::~LogSender() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void LogSender::Stop() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  store_->Stop();
}

void LogSender::Start(std::function<void(const std::string& wrong)> tell) {
  tell_ = std::move(tell);
  thread_ = Thread("send logs", [this] { Run(); });
}

void LogSender::Run() {
  bool failed = false;
  bool told = false;
  for (;;) {
    const Status sent = Round();
    if (!sent.ok() && !failed) {
      if (told) spdlog::warn("logs cannot be written to their store: {}", sent.error().message);
      if (!told) tell_(sent.error().message);
      told = true;
    }
    if (sent.ok() && failed) spdlog::info("logs go to {} again", Location());
    failed = !sent.ok();
    std::unique_lock lock(mutex_);
    wake_.wait_for(lock, failed ? kAgain : kLook, [this] { return ends_; });
    if (ends_) return;
  }
}

Status LogSender::Round() {
  const std::lock_guard sending(sending_);
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return {};
  }
  if (!begun_) {
    if (Status begun = store_->Begin(); !begun.ok()) return begun;
    begun_ = true;
  }
  return SendSegments(false);
}

// With `all`: those that the store is to keep for good, and no others.
Status LogSender::SendSegments(bool all) {
  std::vector<LogSpool::Segment> ready = spool_->Ready(clock_.Now(), all);
  if (all) {
    std::erase_if(
        ready, [this](const LogSpool::Segment& segment) { return !spool_->IsApart(segment.node); });
  }
  Status first;
  MakeInOrder(
      Makers{"send segments", kSegmentThreads}, ready.size(),
      [&](size_t i) -> Status {
        const Result<std::string> text = spool_->Read(ready[i]);
        if (!text.ok() && text.error().code != Code::kNotFound) return text.error();
        if (!text.ok() || text->empty()) return {};
        return store_->SendSegment(ready[i].node + "/" + ready[i].name, *text);
      },
      [&](size_t i, const Status& sent) {
        if (sent.ok()) {
          spool_->Done(ready[i]);
        } else {
          first = sent;
        }
        return sent.ok();
      });
  return first;
}

Status LogSender::SendAll(const LogFolder& folder) {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  const std::lock_guard sending(sending_);
  if (Status sent = store_->Send(folder, [this] { return SendSegments(true); }); !sent.ok()) {
    return sent;
  }
  // What they held is in the files. Where they stay, whoever reads them finds the same.
  const auto whole = [this](const std::string& node) { return !spool_->IsApart(node); };
  if (Status removed = store_->RemoveSegments(whole); !removed.ok()) {
    spdlog::warn("segments of logs that nobody needs any more stay in {}: {}", Location(),
                 removed.error().message);
  }
  for (const LogSpool::Segment& segment : spool_->Ready(clock_.Now(), true)) spool_->Done(segment);
  return {};
}

}  // namespace parallelrun::coordinator
