#include "coordinator/log_tree/log_writer.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostAtOnce = size_t{64} << 10;

}  // namespace

LogWriter::LogWriter(LogSink sink)
    : sink_(std::move(sink)), thread_("log writer", [this] { Run(); }) {}

LogWriter::~LogWriter() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LogWriter::KeepSegments(std::shared_ptr<LogSpool> spool, uint64_t most_here) {
  const std::lock_guard lock(mutex_);
  sink_.KeepSegments(spool, most_here);
  spool_ = std::move(spool);
}

bool LogWriter::HasRoom(uint32_t node) const {
  const std::lock_guard lock(mutex_);
  return !ends_ && !uploading_.contains(node) && upload_bytes_ < kMostUploadBytes &&
         (!spool_ || spool_->HasRoom());
}

bool LogWriter::Write(Upload upload) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || upload_bytes_ + upload.bytes.size() > kMostUploadBytes) return false;
    if (spool_ && !spool_->HasRoom()) return false;
    if (!uploading_.insert(upload.node).second) return false;
    upload_bytes_ += upload.bytes.size();
    uploads_.push_back(std::move(upload));
  }
  wake_.notify_all();
  return true;
}

void LogWriter::Append(std::string name, std::string lines) {
  if (lines.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (ends_) return;
    line_bytes_ += lines.size();
    // One write for what waits together, but not so much that a drop takes all of it.
    const bool joins = !lines_.empty() && lines_.back().name == name &&
                       lines_.back().text.size() + lines.size() <= kMostAtOnce;
    if (joins) {
      lines_.back().text += lines;
    } else {
      lines_.push_back({std::move(name), std::move(lines)});
    }
    while (line_bytes_ > kMostLineBytes && !lines_.empty()) {
      line_bytes_ -= lines_.front().text.size();
      dropped_bytes_ += lines_.front().text.size();
      lines_.pop_front();
    }
  }
  wake_.notify_all();
}

bool LogWriter::Settle(Duration limit) {
  std::unique_lock lock(mutex_);
  return settled_.wait_for(lock, limit,
                           [this] { return lines_.empty() && uploads_.empty() && !writing_; });
}

bool LogWriter::Finish(Duration limit) {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_all();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void LogWriter::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    writing_ = false;
    if (lines_.empty() && uploads_.empty()) settled_.notify_all();
    wake_.wait(lock, [this] { return ends_ || !lines_.empty() || !uploads_.empty(); });
    if (lines_.empty() && uploads_.empty()) return;
    writing_ = true;
    // In turn, so that neither waits for a flood of the other.
    if (!lines_.empty()) {
      Lines lines = std::move(lines_.front());
      lines_.pop_front();
      line_bytes_ -= lines.text.size();
      const uint64_t dropped = std::exchange(dropped_bytes_, 0);
      lock.unlock();
      if (dropped > 0) {
        spdlog::warn("{} bytes of lines for the log folder were dropped, as its volume was slow",
                     dropped);
      }
      (void)sink_.folder().Append(lines.name, lines.text);  // lost lines do no harm
      lock.lock();
    }
    if (!uploads_.empty()) {
      Upload upload = std::move(uploads_.front());
      uploads_.pop_front();
      lock.unlock();
      const Status written = upload.given_up()
                                 ? Status(Error{Code::kUnavailable, "its caller has gone"})
                                 : sink_.Write(upload.node, upload.path, upload.offset,
                                               upload.bytes, upload.truncate, clock_.Now());
      lock.lock();
      uploading_.erase(upload.node);
      upload_bytes_ -= upload.bytes.size();
      lock.unlock();
      upload.done(written);
      lock.lock();
    }
  }
}

}  // namespace parallelrun::coordinator
