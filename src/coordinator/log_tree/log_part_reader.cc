#include "coordinator/log_tree/log_part_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace parallelrun::coordinator {

Result<LogPart> ReadLogPart(const LogFolder& folder, const std::string& name,
                            std::optional<uint64_t> from) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok()) return file.error();
  const Result<FileFacts> facts = (*file)->Stat();
  if (!facts.ok()) return facts.error();
  if (facts->kind != EntryKind::kFile) return Error{Code::kInvalid, "it is no file"};
  LogPart part;
  part.size = facts->size;
  const uint64_t end = part.size - std::min<uint64_t>(part.size, kMostLogPart);
  part.from = std::min(from.value_or(end), part.size);
  Result<std::string> bytes =
      (*file)->ReadAt(part.from, std::min<uint64_t>(part.size - part.from, kMostLogPart));
  if (!bytes.ok()) return bytes.error();
  part.bytes = std::move(*bytes);
  return part;
}

LogPartReader::LogPartReader(LogFolder folder)
    : folder_(std::move(folder)), thread_("read logs", [this] { Run(); }) {}

LogPartReader::~LogPartReader() {
  End();
  if (thread_.joinable()) thread_.join();
}

bool LogPartReader::Ask(std::string name, std::optional<uint64_t> from, Answer answer) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || waiting_.size() >= kMostWaiting) return false;
    waiting_.push_back({std::move(name), from, std::move(answer)});
  }
  wake_.notify_one();
  return true;
}

void LogPartReader::End() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
}

bool LogPartReader::Finish(Duration limit) {
  End();
  return !thread_.joinable() || thread_.JoinFor(limit);
}

void LogPartReader::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (ends_) return;
    const Asked asked = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    asked.answer(ReadLogPart(folder_, asked.name, asked.from));
    lock.lock();
  }
}

}  // namespace parallelrun::coordinator
