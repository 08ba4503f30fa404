#include "agent/processes/process.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "agent/folder_tree.h"
#include "agent/processes/process_tree.h"
#include "agent/processes/spawn.h"
#include "base/bytes.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/memory_file.h"
#include "base/random.h"
#include "base/small_file.h"
#include "base/suspension.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;
constexpr int kReadsPerTurn = 16;
constexpr size_t kMaxOutBytes = size_t{256} << 20;
constexpr size_t kMaxLeftBytes = size_t{128} << 20;  // read after the end of a process
constexpr size_t kTailBytes = 2048;
constexpr size_t kMaxStackBytes = size_t{256} << 10;
constexpr char kMarkName[] = "PARALLELRUN_PROCESS=";
constexpr Duration kEndAfterClose = seconds(2);
// At a time: the agent has leases to renew meanwhile.
constexpr Duration kKillMarkedLimit = seconds(2);
constexpr Duration kKillAgain = milliseconds(100);
constexpr Duration kKnownAfter = milliseconds(100);  // what was written into the page

// A process that forks faster than it is found goes on meanwhile, and takes what its successor
// needs.
void KillLeft(EventLoop& loop, const std::string& mark) {
  if (KillProcessesWith(mark, kKillMarkedLimit)) return;
  loop.After(kKillAgain, [&loop, mark] { KillLeft(loop, mark); });
}

// kNotFound would be the interpreter's, which stays missing.
Error CannotLog(Error error) {
  if (error.code == Code::kNotFound) error.code = Code::kUnavailable;
  return error;
}

Result<Fd> OpenLog(const Files& files, const std::string& path) {
  const auto folder = MakeTree(files, FolderOf(path), Links::kFollow);
  if (!folder.ok()) return CannotLog(folder.error());
  Fd log(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
              0644));
  if (!log.ok()) return CannotLog(ErrnoError(errno, "open " + Printable(path, kShownLong)));
  // A pipe in its place would hold up the agent's loop as soon as it is full.
  struct stat info {};
  if (fstat(log.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error{Code::kUnavailable, "open " + Printable(path, kShownLong) +
                                         ": it is no file; the script must leave it alone"};
  }
  fcntl(log.get(), F_SETFL, O_APPEND);  // the process gets it as from a shell
  return log;
}

// The worker cannot shrink it: that would kill the reader with SIGBUS.
int MakeStatusPage() {
  const int fd = memfd_create("parallelrun-status", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, kStatusPageBytes) != 0) {
    close(fd);
    return -1;
  }
  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

uint64_t SizeOfOpen(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

std::string Tail(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text = file.ok() ? OrEmpty(ReadEnd(file.get(), kTailBytes, path)) : "";
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

WorkerProcess::WorkerProcess(EventLoop& loop, const MemoryGroup& memory, OnFrame on_frame)
    : loop_(loop), memory_(memory), on_frame_(std::move(on_frame)) {}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::Start(EventLoop& loop, const Files& files,
                                                            const ProcessSpec& spec,
                                                            const MemoryGroup& memory,
                                                            OnFrame on_frame) {
  std::unique_ptr<WorkerProcess> p(new WorkerProcess(loop, memory, std::move(on_frame)));
  std::array<int, 2> sockets{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    return ErrnoError(errno, "socketpair");
  }
  p->socket_ = sockets[0];
  const Fd theirs(sockets[1]);
  fcntl(p->socket_, F_SETFL, O_NONBLOCK);
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.ok()) return ErrnoError(errno, "open /dev/null");
  Result<Fd> out = OpenLog(files, spec.stdout_path);
  if (!out.ok()) return out.error();
  p->stdout_ = out->Release();
  Result<Fd> error = OpenLog(files, spec.stderr_path);
  if (!error.ok()) return error.error();
  p->stderr_ = error->Release();
  const Fd page(MakeStatusPage());
  if (!page.ok()) return ErrnoError(errno, "memfd_create");
  void* mapped = mmap(nullptr, kStatusPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0);
  if (mapped == MAP_FAILED) return ErrnoError(errno, "mmap");
  p->page_ = static_cast<uint64_t*>(mapped);
  p->stderr_path_ = spec.stderr_path;
  Result<Fd> stacks = MemoryFile("parallelrun-stacks", "");
  if (!stacks.ok()) return stacks.error();
  p->stacks_ = std::move(*stacks);
  p->oom_kills_ = memory.OomKills();

  p->mark_ = kMarkName + RandomHex(16);
  std::vector<std::string> environment = spec.environment;
  // The outer job's, where the script of a job runs a job.
  std::erase_if(environment, [](const std::string& entry) { return entry.starts_with(kMarkName); });
  environment.push_back(p->mark_);
  const Result<pid_t> pid =
      Spawn({spec.command,
             std::move(environment),
             spec.work_folder,
             {null.get(), p->stdout_, p->stderr_, theirs.get(), page.get(), p->stacks_.get()}});
  if (!pid) return pid.error();
  p->pid_ = *pid;
  p->reaped_ = false;
  p->in_.resize(kReadBytes);
  p->reading_ = loop.WatchReadable(p->socket_, [raw = p.get()] { raw->OnReadable(); });
  return p;
}

WorkerProcess::~WorkerProcess() {
  if (!reaped_) {
    Kill();
    siginfo_t info{};
    while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0 && errno == EINTR) {
    }
  }
  CloseSocket();
  loop_.Cancel(ending_);
  for (const int fd : {stdout_, stderr_}) {
    if (fd >= 0) close(fd);
  }
  if (page_ != nullptr) munmap(page_, kStatusPageBytes);
}

void WorkerProcess::CloseSocket() {
  loop_.Unwatch(reading_);
  loop_.Unwatch(writing_);
  reading_ = writing_ = EventLoop::WatchId::kNone;
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void WorkerProcess::TakeBack(uint64_t sequence) {
  known_taken_back_ = KnownTakenBack();
  taken_back_ = sequence;
  __atomic_store_n(page_ + 3, sequence, __ATOMIC_SEQ_CST);
  taken_back_at_ = SystemClock().Now();
}

uint64_t WorkerProcess::KnownTakenBack() const {
  if (taken_back_ == known_taken_back_) return taken_back_;
  const bool known = SystemClock().Now() - taken_back_at_ >= kKnownAfter;
  return known ? taken_back_ : known_taken_back_;
}

StatusReading WorkerProcess::Status() const {
  StatusReading reading;
  reading.taken_back = KnownTakenBack();  // before word 0 is read
  // The worker writes the time first. A time that is newer than the word only makes it look young.
  const uint64_t word = __atomic_load_n(page_, __ATOMIC_ACQUIRE);
  const uint64_t since_ns = __atomic_load_n(page_ + 1, __ATOMIC_RELAXED);
  const auto phase = static_cast<uint8_t>(word & 0xFF);
  reading.sequence = word >> 8;
  reading.phase =
      phase > static_cast<uint8_t>(Phase::kShutdown) ? Phase::kStarting : static_cast<Phase>(phase);
  reading.since = suspension::OwnTime(Instant(microseconds(static_cast<int64_t>(since_ns / 1000))));
  return reading;
}

job::OutputRanges WorkerProcess::Output() const {
  job::OutputRanges output;
  output.stdout_end = SizeOfOpen(stdout_);
  output.stderr_end = SizeOfOpen(stderr_);
  output.stdout_begin = std::min(__atomic_load_n(page_ + 4, __ATOMIC_RELAXED), output.stdout_end);
  output.stderr_begin = std::min(__atomic_load_n(page_ + 5, __ATOMIC_RELAXED), output.stderr_end);
  return output;
}

void WorkerProcess::Flush() {
  if (socket_ < 0 || writing_ != EventLoop::WatchId::kNone) return;
  while (sent_ < out_.size()) {
    const ssize_t n =
        send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      sent_ += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      if (out_.size() - sent_ > kMaxOutBytes) return Fail("did not read what it was sent");
      out_.erase(0, sent_);
      sent_ = 0;
      writing_ = loop_.WatchWritable(socket_, [this] {
        loop_.Unwatch(writing_);
        writing_ = EventLoop::WatchId::kNone;
        Flush();
      });
      return;
    } else if (errno != EINTR) {
      break;  // it has closed its end: the reading side sees that too
    }
  }
  out_.clear();
  sent_ = 0;
}

void WorkerProcess::OnReadable() {
  for (int i = 0; i < kReadsPerTurn && ReadSome(); ++i) {
  }
}

bool WorkerProcess::ReadSome() {
  if (socket_ < 0) return false;
  if (in_.size() - in_end_ < kReadBytes) {
    // Frames longer than the room: the tail moves to the front, and the room grows as bytes
    // arrive, never by what a length announces.
    std::memmove(in_.data(), in_.data() + in_start_, in_end_ - in_start_);
    in_end_ -= in_start_;
    in_start_ = 0;
    if (in_.size() - in_end_ < kReadBytes) in_.resize(std::max(in_.size() * 2, 2 * kReadBytes));
  }
  const size_t room = in_.size() - in_end_;
  const ssize_t n = recv(socket_, in_.data() + in_end_, room, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (n <= 0) {
    CloseSocket();
    // It is ending, or the script closed our descriptor: then nothing can be given to it any more.
    if (!reaped_)
      ending_ = loop_.After(
          kEndAfterClose, [this] { Fail("closed its connection to the agent, and did not end"); });
    return false;
  }
  in_end_ += static_cast<size_t>(n);
  return HandleFrames() && static_cast<size_t>(n) == room;
}

bool WorkerProcess::HandleFrames() {
  while (in_end_ - in_start_ >= kFrameHead) {
    Decoder head(std::string_view(in_.data() + in_start_, kFrameHead));
    const uint32_t length = head.U32();
    const uint8_t type = head.U8();
    if (length > kMaxFrameBody || type < static_cast<uint8_t>(FrameType::kReady) ||
        type > static_cast<uint8_t>(FrameType::kSideFiles)) {
      Fail(
          "sent something that is not of the worker protocol, and was killed; only ParallelRun "
          "may write to descriptor 3");
      return false;
    }
    if (in_end_ - in_start_ < kFrameHead + length) break;
    const std::string_view body(in_.data() + in_start_ + kFrameHead, length);
    in_start_ += kFrameHead + length;
    if (!on_frame_(static_cast<FrameType>(type), body)) {
      Fail(
          fmt::format("sent a frame of type {} that it may not send now, and was killed; only "
                      "ParallelRun may write to descriptor 3",
                      type));
      return false;
    }
  }
  if (in_start_ == in_end_) in_start_ = in_end_ = 0;
  return true;
}

void WorkerProcess::Fail(std::string words) {
  if (fault_.empty()) fault_ = std::move(words);
  CloseSocket();
  Kill();
}

std::vector<Fd> WorkerProcess::Logs() const {
  std::vector<Fd> logs;
  for (const int log : {stdout_, stderr_}) logs.emplace_back(fcntl(log, F_DUPFD_CLOEXEC, 0));
  return logs;
}

void WorkerProcess::AskForStack() {
  if (reaped_) return;
  asked_at_ = SizeOfOpen(stacks_.get());
  kill(pid_, kStackSignal);
}

std::string WorkerProcess::SinceAsked() const {
  return OrEmpty(ReadRange(stacks_.get(), asked_at_, kMaxStackBytes, "the stacks"));
}

void WorkerProcess::Append(const std::string& text) const {
  // Where that cannot be written nothing is lost but a help: the message has the same words.
  [[maybe_unused]] const ssize_t written = write(stderr_, text.data(), text.size());
}

void WorkerProcess::Kill(const std::string& words) {
  if (reaped_) return;
  if (fault_.empty()) fault_ = words;
  killed_ = true;
  // Not reaped: the number is still its own.
  kill(-pid_, SIGKILL);
  kill(pid_, SIGKILL);
}

std::optional<std::string> WorkerProcess::Reap() {
  if (reaped_) return std::nullopt;
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  if (waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  kill(-pid_, SIGKILL);  // what it left in its group, while the number is still taken
  rusage usage{};
  wait4(pid_, nullptr, 0, &usage);
  reaped_ = true;
  // What it has left in sessions of its own would run beside its successor. A process that ends
  // well may have started what the others here still use: that ends with the node.
  if (info.si_code != CLD_EXITED || info.si_status != 0) KillLeft(loop_, mark_);
  loop_.Cancel(ending_);
  size_t left = 0;
  for (; left < kMaxLeftBytes && ReadSome(); left += kReadBytes) {
  }
  CloseSocket();
  const std::string words =
      fault_.empty() ? Words(info, static_cast<uint64_t>(usage.ru_maxrss) << 10) : fault_;
  const bool well = info.si_code == CLD_EXITED && info.si_status == 0;
  if (!well && (!killed_ || !fault_.empty())) last_note_ = "the process " + words;
  return words;
}

std::string WorkerProcess::Words(const siginfo_t& info, uint64_t peak) const {
  std::string words;
  if (info.si_code == CLD_EXITED) {
    words = fmt::format("exited with status {}", info.si_status);
  } else {
    const char* name = sigabbrev_np(info.si_status);
    words = fmt::format("was killed by signal {} ({}{})", info.si_status,
                        name != nullptr ? "SIG" : "", name != nullptr ? name : "unknown");
  }
  if (killed_) return words;
  if (info.si_code != CLD_EXITED && info.si_status == SIGKILL) {
    words += memory_.WhyKilled(oom_kills_, peak);
  }
  const std::string tail = Tail(stderr_path_);
  return tail.empty() ? words : words + "; its stderr ended with: " + Printable(tail, kTailBytes);
}

}  // namespace parallelrun::agent
