#include "agent/processes/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include "base/fd.h"
#include "base/small_file.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxStat = 512;
constexpr size_t kMaxEnvironment = size_t{8} << 20;  // four times what execve takes by default

Fd OpenOf(pid_t pid, const char* name) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/%s", pid, name);
  return Fd(open(path.data(), O_RDONLY | O_CLOEXEC));
}

struct Stat {
  char state = 0;    // 'T': stopped
  pid_t parent = 0;  // 0: of a process that has ended
};

// /proc/<pid>/stat is "pid (name) state parent …", and the name may hold anything.
Stat StatOf(pid_t pid) {
  const Fd file = OpenOf(pid, "stat");
  if (!file.ok()) return {};
  const std::string text = OrEmpty(ReadBegin(file.get(), kMaxStat, "stat"));
  const char* name_end = std::strrchr(text.c_str(), ')');
  Stat stat;
  // NOLINTNEXTLINE(cert-err34-c): the kernel's own number
  if (name_end == nullptr || std::sscanf(name_end + 1, " %c %d", &stat.state, &stat.parent) != 2) {
    return {};
  }
  return stat;
}

// What it was executed with; nothing of one that has ended, or is another user's.
std::string EnvironmentOf(pid_t pid) {
  const Fd file = OpenOf(pid, "environ");
  if (!file.ok()) return "";
  return OrEmpty(ReadBegin(file.get(), kMaxEnvironment, "environ"));
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> all;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    const auto pid =
        static_cast<pid_t>(std::atoi(entry->d_name));  // NOLINT(cert-err34-c): 0 for names
    if (pid > 0) all.push_back(pid);
  }
  closedir(proc);
  return all;
}

std::set<pid_t> Descendants() {
  struct Entry {
    pid_t pid;
    pid_t parent;
  };
  std::vector<Entry> all;
  for (const pid_t pid : AllProcesses()) all.push_back({pid, StatOf(pid).parent});
  std::set<pid_t> found{getpid()};
  for (size_t before = 0; before != found.size();) {
    before = found.size();
    for (const Entry& entry : all) {
      if (found.contains(entry.parent)) found.insert(entry.pid);
    }
  }
  found.erase(getpid());
  return found;
}

// Tells each of them as soon as it is seen.
void FindProcessesWith(const std::string& entry, const std::function<void(pid_t)>& found) {
  const std::string whole = '\0' + entry + '\0';
  const pid_t self = getpid();
  for (const pid_t pid : AllProcesses()) {
    if (pid != self && ('\0' + EnvironmentOf(pid)).find(whole) != std::string::npos) found(pid);
  }
}

void FindDescendants(const std::function<void(pid_t)>& found) {
  for (const pid_t pid : Descendants()) found(pid);
}

using Find = std::function<void(const std::function<void(pid_t)>& found)>;

// Stopped first, until a look finds no new one: what is stopped cannot fork away. At once, while
// the look goes on: hundreds that do nothing but fork leave the one that looks hardly any time.
// False if the deadline came first.
bool StopAndKill(const Find& find, Instant deadline) {
  const SystemClock clock;
  std::set<pid_t> stopped;
  bool more = true;
  while (more) {
    more = false;
    find([&](pid_t pid) {
      if (!stopped.insert(pid).second) return;
      kill(pid, SIGSTOP);
      more = true;
    });
    if (clock.Now() >= deadline) break;
  }
  for (const pid_t pid : stopped) kill(pid, SIGKILL);
  return !more;
}

}  // namespace

bool ReapChildren(const OnEnd& ended) {
  for (;;) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    ended(pid, status);
  }
}

void KillDescendants(Duration limit, const OnEnd& ended) {
  const SystemClock clock;
  const Instant deadline = clock.Now() + limit;
  while (ReapChildren(ended) && clock.Now() < deadline) {
    StopAndKill(FindDescendants, deadline);
    poll(nullptr, 0, 1);
  }
}

std::vector<pid_t> StopDescendants(Duration limit) {
  const SystemClock clock;
  const Instant deadline = clock.Now() + limit;
  std::set<pid_t> seen;
  std::vector<pid_t> stopped;
  for (bool more = true; more && clock.Now() < deadline;) {
    more = false;
    FindDescendants([&](pid_t pid) {
      if (!seen.insert(pid).second) return;
      more = true;
      if (StatOf(pid).state != 'T' && kill(pid, SIGSTOP) == 0) stopped.push_back(pid);
    });
  }
  return stopped;
}

bool KillProcessesWith(const std::string& entry, Duration limit) {
  return StopAndKill(
      [&entry](const std::function<void(pid_t)>& found) { FindProcessesWith(entry, found); },
      SystemClock().Now() + limit);
}

}  // namespace parallelrun::agent
