#include "agent/logs/resource_monitor.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <utility>

#include "agent/folder_tree.h"
#include "agent/logs/resource_usage.h"
#include "agent/processes/memory_group.h"
#include "base/fd.h"
#include "base/pause.h"
#include "base/small_file.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxProcesses = 2000;
constexpr size_t kMaxRead = size_t{256} << 10;

// "" of what is gone. A command line may be longer: its begin is enough.
std::string ReadText(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd.ok() ? OrEmpty(ReadBegin(fd.get(), kMaxRead, path)) : "";
}

// Whole lines or none: a full disk takes a part first, and what is appended to half a row makes a
// row of numbers that nobody has measured.
Status AppendLines(Files& files, const std::string& path, const std::string& header,
                   const std::string& lines) {
  const Result<std::unique_ptr<File>> file = files.OpenOrCreate(path);
  if (!file.ok()) return file.error();
  const Result<uint64_t> size = (*file)->Size();
  if (!size.ok()) return size.error();
  const std::string& bytes = *size == 0 ? header + lines : lines;
  if (bytes.empty()) return {};
  Status written = (*file)->WriteAt(*size, bytes);
  if (!written.ok()) static_cast<void>((*file)->Cut(*size));
  return written;
}

uint64_t TicksPerSecond() { return static_cast<uint64_t>(sysconf(_SC_CLK_TCK)); }

// Since boot, the clock that processes' start times are in.
uint64_t NowTicks() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto nanoseconds = static_cast<uint64_t>(now.tv_nsec);
  return static_cast<uint64_t>(now.tv_sec) * TicksPerSecond() +
         nanoseconds * TicksPerSecond() / 1'000'000'000;
}

// "%Y%m%d%H/processes_%M"
std::string TableName(WallTime now) {
  const time_t whole = std::chrono::floor<seconds>(now.time_since_epoch()).count();
  tm parts{};
  gmtime_r(&whole, &parts);
  std::array<char, 64> name{};
  strftime(name.data(), name.size(), "%Y%m%d%H/processes_%M", &parts);
  return name.data();
}

// Who may read the logs of a job may not know what others have on their command lines, as passwords
// for one: those are read of the processes below `self` alone. Others are told by their names.
std::vector<ProcessUsage> ReadProcesses(int self) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<ProcessUsage> all;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string folder = "/proc/" + name;
    std::optional<ProcessUsage> usage = ParseProcessStat(ReadText(folder + "/stat"), page);
    if (!usage) continue;  // it has ended
    struct stat info {};
    if (stat(folder.c_str(), &info) == 0) usage->user = info.st_uid;
    all.push_back(std::move(*usage));
    if (all.size() == kMaxProcesses) break;
  }
  std::sort(all.begin(), all.end(),
            [](const ProcessUsage& a, const ProcessUsage& b) { return a.pid < b.pid; });
  const std::set<int> own = ProcessesBelow(all, self);
  for (ProcessUsage& usage : all) {
    if (!own.contains(usage.pid)) continue;
    usage.command = ReadText(fmt::format("/proc/{}/cmdline", usage.pid));
    while (!usage.command.empty() && usage.command.back() == '\0') usage.command.pop_back();
    std::replace(usage.command.begin(), usage.command.end(), '\0', ' ');
  }
  return all;
}

}  // namespace

// One thread takes them; the monitor asks it to end, and may be gone before it does.
class ResourceMonitor::Samples {
 public:
  Samples(std::shared_ptr<Files> files, ResourceMonitorOptions options)
      : files_(std::move(files)), options_(std::move(options)) {}

  void Run();
  // From other threads.
  void SetProcess(const std::string& name, int pid);
  void Forget(const std::string& name);
  void Stop() { stop_.request_stop(); }

 private:
  void Sample();
  Status SampleNode(WallTime now);
  Status SampleProcesses(WallTime now);
  Status SampleDisks(WallTime now);
  Status WriteTable(const std::string& table, WallTime now);
  void Tell(const Status& written);

  const std::shared_ptr<Files> files_;
  const ResourceMonitorOptions options_;
  const SystemClock clock_;
  const MemoryGroup memory_;
  bool failing_ = false;  // told already; only on the thread
  // Of the reading before; only on the thread.
  CpuTimes cpu_;
  std::map<int, uint64_t> process_ticks_;  // by PID
  uint64_t read_at_ticks_ = 0;

  std::mutex mutex_;  // guards processes_
  std::map<std::string, int> processes_;
  std::stop_source stop_;
};

ResourceMonitor::ResourceMonitor(std::shared_ptr<Files> files, ResourceMonitorOptions options)
    : end_limit_(options.end_limit),
      samples_(std::make_shared<Samples>(std::move(files), std::move(options))),
      thread_("resources", [samples = samples_] { samples->Run(); }) {}

ResourceMonitor::~ResourceMonitor() {
  samples_->Stop();
  if (!thread_.JoinOrLeave(end_limit_)) {
    spdlog::warn("the node's last resource usage is not written: does a disk hang?");
  }
}

void ResourceMonitor::SetProcess(const std::string& name, int pid) {
  samples_->SetProcess(name, pid);
}

void ResourceMonitor::Forget(const std::string& name) { samples_->Forget(name); }

void ResourceMonitor::Samples::SetProcess(const std::string& name, int pid) {
  const std::lock_guard lock(mutex_);
  processes_[name] = pid;
}

void ResourceMonitor::Samples::Forget(const std::string& name) {
  const std::lock_guard lock(mutex_);
  processes_.erase(name);
}

void ResourceMonitor::Samples::Run() {
  const std::stop_token stop = stop_.get_token();
  do {
    Sample();
  } while (Pause(options_.interval, stop));
  Sample();
}

void ResourceMonitor::Samples::Sample() {
  const WallTime now = clock_.WallNow();
  // What cannot be written is left out, and keeps nothing else.
  const auto folder = MakeTree(*files_, options_.folder, Links::kFollow);
  Status first = folder.ok() ? Status() : folder.error();
  for (const Status& written : {SampleNode(now), SampleDisks(now), SampleProcesses(now)}) {
    if (first.ok()) first = written;
  }
  Tell(first);
}

// When it begins and when it ends: a disk may stay full for hours.
void ResourceMonitor::Samples::Tell(const Status& written) {
  if (written.ok() != failing_) return;
  failing_ = !written.ok();
  if (failing_) {
    spdlog::warn("the node's resource usage is not written: {}", written.error().message);
  } else {
    spdlog::info("the node's resource usage is written again");
  }
}

Status ResourceMonitor::Samples::SampleNode(WallTime now) {
  NodeUsage usage;
  const CpuTimes cpu = ParseCpuTimes(ReadText("/proc/stat"));
  if (cpu_.total > 0) usage.cpu_percent = CpuPercent(cpu_, cpu);
  cpu_ = cpu;
  ParseMemInfo(ReadText("/proc/meminfo"), usage);
  if (const std::optional<uint64_t> limit = memory_.Limit(); limit && *limit < usage.memory_total) {
    usage.memory_total = *limit;
    const uint64_t left = *limit - std::min(*limit, memory_.WorkingSet());
    usage.memory_available = std::min(usage.memory_available, left);
  }
  ParseDiskStats(ReadText("/proc/diskstats"), usage);
  ParseNetDev(ReadText("/proc/net/dev"), usage);
  ParseSockets(ReadText("/proc/net/sockstat"), usage);
  ParseSockets(ReadText("/proc/net/sockstat6"), usage);
  return AppendLines(*files_, options_.folder + "/node_resource_usage.csv", kNodeUsageHeader,
                     NodeUsageLine(usage, now));
}

Status ResourceMonitor::Samples::SampleDisks(WallTime now) {
  std::string lines;
  for (const std::string& path : options_.disks) {
    struct statvfs info {};
    if (statvfs(path.c_str(), &info) != 0) continue;
    DiskUsage usage;
    usage.path = path;
    usage.total = info.f_blocks * info.f_frsize;
    usage.available = info.f_bavail * info.f_frsize;
    usage.used = (info.f_blocks - info.f_bfree) * info.f_frsize;
    lines += DiskUsageLine(usage, now);
  }
  return AppendLines(*files_, options_.folder + "/node_disk_usage.csv", kDiskUsageHeader, lines);
}

Status ResourceMonitor::Samples::SampleProcesses(WallTime now) {
  std::map<std::string, int> workers;
  {
    const std::lock_guard lock(mutex_);
    workers = processes_;
  }
  const uint64_t now_ticks = NowTicks();
  const std::vector<ProcessUsage> all = ReadProcesses(getpid());
  std::map<int, uint64_t> ticks;
  std::string lines;
  for (const auto& [name, pid] : workers) {
    const auto it = std::find_if(all.begin(), all.end(),
                                 [pid = pid](const ProcessUsage& p) { return p.pid == pid; });
    if (it == all.end()) continue;
    ProcessUsage usage = *it;
    ParseProcessIo(ReadText("/proc/" + std::to_string(pid) + "/io"), usage);
    ticks[pid] = usage.cpu_ticks;
    // Since the reading before, or since it started.
    const auto before = process_ticks_.find(pid);
    const bool known = before != process_ticks_.end();
    const uint64_t since = known ? read_at_ticks_ : usage.start_ticks;
    const uint64_t used = usage.cpu_ticks - (known ? before->second : 0);
    const double percent = now_ticks > since ? 100.0 * static_cast<double>(used) /
                                                   static_cast<double>(now_ticks - since)
                                             : 0;
    lines += ProcessUsageLine(name, usage, percent, now);
  }
  process_ticks_ = std::move(ticks);
  read_at_ticks_ = now_ticks;
  Status written = AppendLines(*files_, options_.folder + "/processes_resource_usage.csv",
                               kProcessUsageHeader, lines);
  const Status table = WriteTable(ProcessTable(all, TicksPerSecond(), now_ticks), now);
  return written.ok() ? table : written;
}

Status ResourceMonitor::Samples::WriteTable(const std::string& table, WallTime now) {
  const std::string path = options_.folder + "/os/" + TableName(now);
  const auto folder = MakeTree(*files_, FolderOf(path), Links::kFollow);
  if (!folder.ok()) return folder.error();
  return AppendLines(*files_, path, "", table);
}

}  // namespace parallelrun::agent
