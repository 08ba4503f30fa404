#include "agent/logs/mini_batch_log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <array>
#include <utility>

#include "agent/folder_tree.h"
#include "agent/logs/log_trim.h"
#include "base/fd.h"

namespace parallelrun::agent {
namespace {

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// "2026-11-21 10:15:03,120"
std::string Stamp(WallTime time) {
  const auto since = time.time_since_epoch();
  const time_t whole = std::chrono::floor<seconds>(since).count();
  const auto ms = std::chrono::floor<milliseconds>(since).count() % 1000;
  tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02},{:03}", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ms);
}

}  // namespace

std::string MiniBatchLine(const MiniBatchNote& note, const std::string& address, int pid,
                          WallTime now) {
  const bool failed = !note.error_kind.empty();
  const uint32_t succeeded = failed ? 0 : note.items_succeeded;
  const WallTime start = now - microseconds(note.elapsed_ns / 1000);
  return fmt::format(
      "{}|{}|{}|{}|mini-batch {} on {}, PID {}: {}{}, total {}, succeeded {}, failed {}, start {}, "
      "duration {:.6f} s, process time {:.6f} s, run method time {:.6f} s\n",
      Stamp(now), failed ? "WARNING" : "INFO", pid, pid, note.id, address, pid,
      failed ? "failed: " : "done", note.error_kind, note.items, succeeded,
      failed ? note.items : note.items_skipped, Stamp(start), Seconds(note.elapsed_ns),
      Seconds(note.cpu_ns), Seconds(note.run_ns));
}

std::string OwnAddress() {
  ifaddrs* all = nullptr;
  std::string address = "127.0.0.1";
  if (getifaddrs(&all) != 0) return address;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    if ((one->ifa_flags & IFF_LOOPBACK) != 0 || (one->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    const auto* in = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    if (inet_ntop(AF_INET, &in->sin_addr, text.data(), text.size()) == nullptr) continue;
    address = text.data();
    break;
  }
  freeifaddrs(all);
  return address;
}

MiniBatchLog::MiniBatchLog(const Files& files, std::string folder, std::string address)
    : files_(files), folder_(std::move(folder)), address_(std::move(address)) {}

std::string MiniBatchLog::PathOf(uint32_t process) const {
  return folder_ + "/" + ProcessName(process) + ".txt";
}

void MiniBatchLog::Open(uint32_t process, int pid) {
  const std::lock_guard lock(mutex_);
  Log& log = logs_[process];
  log.pid = pid;
  log.flushes_left = -1;
}

Status MiniBatchLog::OpenFile(uint32_t process, Log& log) const {
  const auto folder = MakeTree(files_, folder_, Links::kRefuse);
  if (!folder.ok()) return folder.error();
  Result<std::unique_ptr<File>> file = (*folder)->OpenOrCreate(ProcessName(process) + ".txt");
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.error();
  log.file = std::move(*file);
  log.size = *size;
  return {};
}

void MiniBatchLog::Close(uint32_t process) {
  const std::lock_guard lock(mutex_);
  const auto it = logs_.find(process);
  if (it != logs_.end()) it->second.flushes_left = 2;
}

void MiniBatchLog::EndSecond(WallTime now) {
  second_ = WallTime(std::chrono::floor<seconds>(now.time_since_epoch()));
  if (lines_ >= kLinesPerSecond) {
    for (auto& [process, log] : logs_) {
      const Sum& sum = log.sum;
      if (sum.mini_batches == 0) continue;
      AddLine(log, fmt::format("{}|INFO|{}|{}|{} more mini-batches on {}, PID {}: failed "
                               "mini-batches {}, total {}, succeeded {}, process time {:.6f} s, "
                               "run method time {:.6f} s\n",
                               Stamp(now), log.pid, log.pid, sum.mini_batches, address_, log.pid,
                               sum.failed, sum.items, sum.items_succeeded, Seconds(sum.cpu_ns),
                               Seconds(sum.run_ns)));
      log.sum = {};
    }
  }
  lines_ = 0;
}

void MiniBatchLog::Add(const std::vector<MiniBatchNote>& notes, WallTime now) {
  if (notes.empty()) return;
  const std::lock_guard lock(mutex_);
  if (now - second_ >= seconds(1) || now < second_) EndSecond(now);
  auto it = logs_.end();
  for (const MiniBatchNote& note : notes) {
    if (it == logs_.end() || it->first != note.process) it = logs_.find(note.process);
    if (it == logs_.end()) continue;
    Log& log = it->second;
    if (lines_ < kLinesPerSecond) {
      ++lines_;
      AddLine(log, MiniBatchLine(note, address_, log.pid, now));
      continue;
    }
    Sum& sum = log.sum;
    ++sum.mini_batches;
    sum.failed += note.error_kind.empty() ? 0 : 1;
    sum.items += note.items;
    sum.items_succeeded += note.error_kind.empty() ? note.items_succeeded : 0;
    sum.cpu_ns += note.cpu_ns;
    sum.run_ns += note.run_ns;
  }
}

void MiniBatchLog::Finish(WallTime now, uint64_t limit) {
  {
    const std::lock_guard lock(mutex_);
    EndSecond(now);
  }
  Flush(now, limit);
}

// The first ones stay: a part of them may be in the file, and be sent, and what follows there must
// be what was begun.
void MiniBatchLog::AddLine(Log& log, const std::string& line) {
  if (log.lost > 0 || waiting_ + line.size() > kMostWaiting) {
    ++log.lost;
    return;
  }
  log.lines += line;
  waiting_ += line.size();
}

void MiniBatchLog::Flush(WallTime now, uint64_t limit) {
  std::unique_lock lock(mutex_);
  const bool second_over = now - second_ >= seconds(1) || now < second_;
  if (second_over) EndSecond(now);
  for (auto it = logs_.begin(); it != logs_.end();) {
    Log& log = it->second;
    if (!log.lines.empty()) WriteLines(lock, it->first, log, now, limit);
    const bool told = log.sum.mini_batches == 0 && log.lines.empty();
    if (log.flushes_left > 0 && told) --log.flushes_left;
    if (log.flushes_left != 0) {
      ++it;
      continue;
    }
    it = logs_.erase(it);
  }
}

// A full disk must not end the job. What was not written whole is written again, at the same place:
// so nothing is glued to half a line.
void MiniBatchLog::WriteLines(std::unique_lock<std::mutex>& lock, uint32_t process, Log& log,
                              WallTime now, uint64_t limit) {
  const std::string lines = std::exchange(log.lines, {});
  lock.unlock();
  const Status written = Write(process, log, lines);
  Tell(process, log, written);
  if (written.ok()) {
    log.size += lines.size();
    Trim(process, log, limit);
  }
  lock.lock();
  if (!written.ok()) {
    log.lines.insert(0, lines);  // in front of what came meanwhile
    return;
  }
  waiting_ -= lines.size();
  if (log.lost == 0) return;
  const std::string missing =
      fmt::format("{}|WARNING|{}|{}|here lines are missing that could not be written: {}\n",
                  Stamp(now), log.pid, log.pid, std::exchange(log.lost, 0));
  log.lines += missing;
  waiting_ += missing.size();
  WriteLines(lock, process, log, now, limit);
}

Status MiniBatchLog::Write(uint32_t process, Log& log, const std::string& lines) const {
  if (!log.file) {
    if (Status opened = OpenFile(process, log); !opened.ok()) return opened;
  }
  return log.file->WriteAt(log.size, lines);
}

void MiniBatchLog::Tell(uint32_t process, Log& log, const Status& written) {
  if (written.ok() != log.failing) return;
  log.failing = !written.ok();
  if (log.failing) {
    spdlog::warn("the log of the mini-batches of {} is not written: {}", ProcessName(process),
                 written.error().message);
  } else {
    spdlog::info("the log of the mini-batches of {} is written again", ProcessName(process));
  }
}

void MiniBatchLog::Trim(uint32_t process, Log& log, uint64_t limit) const {
  if (log.size <= limit) return;
  const Fd fd(open(PathOf(process).c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd.ok()) return;
  TrimLog(fd.get(), limit);
  // Where there are no holes it begins again.
  if (const Result<uint64_t> size = log.file->Size(); size.ok()) log.size = *size;
}

}  // namespace parallelrun::agent
