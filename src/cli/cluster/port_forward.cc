#include "cli/cluster/port_forward.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <utility>

#include "agent/processes/spawn.h"
#include "base/escape.h"

namespace parallelrun::cli {
namespace {

constexpr std::string_view kForwarding = "Forwarding from 127.0.0.1:";
constexpr std::string_view kHandling = "Handling connection";
constexpr size_t kMostLine = 4096;

}  // namespace

uint16_t ForwardedPort(const std::string& line) {
  if (!line.starts_with(kForwarding)) return 0;
  uint16_t port = 0;
  const char* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data() + kForwarding.size(), end, port);
  return error == std::errc() && rest != end && *rest == ' ' ? port : 0;
}

PortForward::PortForward(EventLoop& loop, std::function<void(uint16_t port)> up,
                         std::function<void(const std::string& why)> ended)
    : loop_(loop), up_(std::move(up)), ended_(std::move(ended)) {}

PortForward::~PortForward() { End(); }

Status PortForward::Start(std::vector<std::string> words) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  said_ = Fd(pipe_ends[0]);
  const Fd says(pipe_ends[1]);
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Result<pid_t> pid = agent::Spawn(
      {std::move(words), agent::OwnEnvironment(), ".", {null.get(), says.get(), says.get()}});
  if (!pid.ok()) return pid.error();
  pid_ = *pid;
  watch_ = loop_.WatchReadable(said_.get(), [this] { Read(); });
  return {};
}

void PortForward::Read() {
  std::array<char, 4096> chunk{};
  const ssize_t n = read(said_.get(), chunk.data(), chunk.size());
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    End();
    const auto ended = ended_;
    return ended(Printable(last_, kShown));
  }
  for (const char c : std::string_view(chunk.data(), static_cast<size_t>(n))) {
    if (c == '\n') {
      Take(std::exchange(line_, {}));
    } else if (line_.size() < kMostLine) {
      line_ += c;
    }
  }
}

void PortForward::Take(const std::string& line) {
  if (const uint16_t port = ForwardedPort(line)) return up_(port);
  if (!line.empty() && !line.starts_with(kHandling)) last_ = line;
}

void PortForward::End() {
  if (pid_ < 0) return;
  loop_.Unwatch(watch_);
  said_.Close();
  const pid_t pid = std::exchange(pid_, -1);
  kill(-pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace parallelrun::cli
