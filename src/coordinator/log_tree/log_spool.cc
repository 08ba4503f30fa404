#include "coordinator/log_tree/log_spool.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "coordinator/log_tree/log_segment.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kApart[] = "apart.";  // a mark of a node, an empty file

uint64_t SizeIn(const LogFolder& folder, const std::string& name) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  if (!file.ok()) return 0;
  const Result<uint64_t> size = (*file)->Size();
  return size.ok() ? *size : 0;
}

}  // namespace

Result<std::shared_ptr<LogSpool>> LogSpool::Open(Files& files, const std::string& folder,
                                                 uint64_t run_id, uint32_t epoch,
                                                 uint64_t most_waiting) {
  const std::string run = fmt::format("{:016x}", run_id);
  const Result<LogFolder> all = LogFolder::Open(files, folder);
  if (!all.ok()) return all.error();
  for (const std::string& name : all->List("")) {
    if (name != run) all->RemoveAll(name);
  }
  Result<LogFolder> opened = LogFolder::Open(files, folder + "/" + run);
  if (!opened.ok()) return opened.error();
  std::shared_ptr<LogSpool> spool(new LogSpool(std::move(*opened), epoch, most_waiting));
  spool->TakeLeft();
  return spool;
}

void LogSpool::TakeLeft() {
  for (const std::string& file : folder_.List("")) {
    if (file.starts_with(kApart)) {
      apart_.insert(file.substr(sizeof(kApart) - 1));
      continue;
    }
    const size_t dot = file.find('.');
    if (dot == std::string::npos) continue;
    const uint64_t size = SizeIn(folder_, file);
    closed_[file] = {{file.substr(0, dot), file.substr(dot + 1)}, size};
    bytes_ += size;
  }
}

bool LogSpool::HasRoom() const {
  const std::lock_guard lock(mutex_);
  return bytes_ < most_waiting_;
}

Status LogSpool::Add(uint32_t node, const std::string& record, Instant now) {
  const std::lock_guard lock(mutex_);
  auto found = open_.find(node);
  if (found == open_.end()) {
    OpenSegment fresh;
    fresh.segment = {std::to_string(node), fmt::format("{:06}-{:08}", epoch_, ++last_)};
    fresh.since = now;
    found = open_.emplace(node, std::move(fresh)).first;
  }
  OpenSegment& open = found->second;
  Status added = folder_.Append(FileOf(open.segment), record);
  // Of one that failed a part may be there: nothing may follow it.
  open.bytes += record.size();
  bytes_ += record.size();
  if (!added.ok() || open.bytes >= kFull) {
    closed_[FileOf(open.segment)] = {open.segment, open.bytes};
    open_.erase(found);
  }
  return added;
}

std::vector<LogSpool::Segment> LogSpool::Ready(Instant now, bool all) {
  const std::lock_guard lock(mutex_);
  std::set<std::string> wait;
  for (const auto& [file, closed] : closed_) wait.insert(closed.first.node);
  for (auto it = open_.begin(); it != open_.end();) {
    const OpenSegment& open = it->second;
    const bool due = now - open.since >= kLongest && !wait.contains(open.segment.node);
    if (!all && !due) {
      ++it;
      continue;
    }
    closed_[FileOf(open.segment)] = {open.segment, open.bytes};
    it = open_.erase(it);
  }
  std::vector<Segment> ready;
  for (const auto& [file, closed] : closed_) ready.push_back(closed.first);
  return ready;
}

Result<std::string> LogSpool::Read(const Segment& segment) const {
  const Result<std::unique_ptr<File>> file = folder_.OpenRead(FileOf(segment));
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.error();
  Result<std::string> text = (*file)->ReadAt(0, *size);
  if (!text.ok()) return text.error();
  const Result<size_t> whole = ReadLogRecords(*text, [](const LogRecord&) { return Status(); });
  if (!whole.ok()) return whole.error();
  text->resize(*whole);
  return text;
}

void LogSpool::Done(const Segment& segment) {
  (void)folder_.Remove(FileOf(segment));
  const std::lock_guard lock(mutex_);
  const auto found = closed_.find(FileOf(segment));
  if (found == closed_.end()) return;
  bytes_ -= found->second.second;
  closed_.erase(found);
}

Status LogSpool::SetApart(uint32_t node) {
  const std::lock_guard lock(mutex_);
  const std::string name = std::to_string(node);
  if (apart_.contains(name)) return {};
  if (Status marked = folder_.Append(kApart + name, ""); !marked.ok()) return marked;
  apart_.insert(name);
  return {};
}

bool LogSpool::IsApart(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  return apart_.contains(node);
}

}  // namespace parallelrun::coordinator
