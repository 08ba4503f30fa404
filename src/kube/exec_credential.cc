// Credentials that a program prints: client.authentication.k8s.io.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "base/fd.h"
#include "base/json.h"
#include "kube/config.h"
#include "kube/resource.h"
#include "kube/text_file.h"

extern char** environ;  // NOLINT(readability-identifier-naming)

namespace parallelrun::kube {
namespace {

using Json = nlohmann::json;
using Steady = std::chrono::steady_clock;

constexpr size_t kMaxOutput = size_t{1} << 20;

std::vector<std::string> EnvironmentOf(const ExecPlugin& plugin) {
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (!plugin.cluster_json.empty()) {
    info["spec"]["cluster"] = ParseJson(plugin.cluster_json).value_or(nullptr);
  }
  std::map<std::string, std::string> values = plugin.env;
  values["KUBERNETES_EXEC_INFO"] = info.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!values.contains(std::string(text.substr(0, text.find('='))))) result.emplace_back(text);
  }
  for (const auto& [name, value] : values) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Starts the plugin in a process group of its own, its stdout being `out`.
Result<pid_t> Spawn(const ExecPlugin& plugin, int out) {
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  std::vector<std::string> environment = EnvironmentOf(plugin);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A program may block signals to take them from a descriptor; its children must not.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, plugin.command.c_str(), &actions, &attributes,
                                 Pointers(arguments).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return pid;
  Error result = ErrnoError(error, "run " + plugin.command);
  if (!plugin.install_hint.empty()) result.message += "; " + Printable(plugin.install_hint, 1000);
  return result;
}

Duration Left(Steady::time_point limit) {
  return std::max(Duration(0), std::chrono::duration_cast<Duration>(limit - Steady::now()));
}

// Everything the process writes until it closes its output.
Result<std::string> ReadAll(int fd, Steady::time_point limit) {
  std::string text;
  char buffer[4096];
  while (text.size() <= kMaxOutput) {
    pollfd wait{fd, POLLIN, 0};
    const auto left = std::chrono::duration_cast<milliseconds>(Left(limit)).count();
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return ErrnoError(errno, "read its output");
    if (ready == 0) {
      return Error{Code::kTimeout, "it did not end within " + HumanDuration(kExecTimeout)};
    }
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read its output");
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
  return Error{Code::kInvalid, "it printed more than 1 MiB"};
}

Result<std::string> RunPlugin(const ExecPlugin& plugin) {
  const auto limit = Steady::now() + kExecTimeout;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoError(errno, "pipe");
  const Fd in(ends[0]);
  Fd out(ends[1]);
  const Result<pid_t> pid = Spawn(plugin, out.get());
  if (!pid.ok()) return pid.error();
  out.Close();
  Result<std::string> text = ReadAll(in.get(), limit);
  if (!text.ok()) kill(-*pid, SIGKILL);
  int status = 0;
  pid_t ended = 0;
  // It may have closed its output and go on.
  while ((ended = waitpid(*pid, &status, WNOHANG)) == 0 && Left(limit) > Duration(0)) {
    constexpr timespec kPause{0, 5'000'000};
    nanosleep(&kPause, nullptr);
  }
  if (ended == 0) {
    kill(-*pid, SIGKILL);
    waitpid(*pid, &status, 0);
    if (text.ok()) text = Error{Code::kTimeout, "it did not end within a minute"};
  }
  if (!text.ok()) return text;
  if (WIFSIGNALED(status)) {
    return Error{Code::kUnavailable, fmt::format("it was killed by signal {}", WTERMSIG(status))};
  }
  if (WEXITSTATUS(status) != 0) {
    return Error{Code::kUnavailable,
                 fmt::format("it ended with {}; see what it wrote to stderr", WEXITSTATUS(status))};
  }
  return text;
}

// "2026-11-21T09:00:00Z", or with an offset.
std::optional<WallTime> ParseTime(const std::string& text) {
  tm parts{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
  tm zone{};
  if (*rest == 'Z') {
    ++rest;
  } else {
    rest = strptime(rest, "%z", &zone);
    if (rest == nullptr) return std::nullopt;
  }
  if (*rest != '\0') return std::nullopt;
  return WallTime(seconds(timegm(&parts) - zone.tm_gmtoff));
}

class Exec final : public CredentialSource {
 public:
  Exec(ExecPlugin plugin, std::shared_ptr<const Clock> clock)
      : plugin_(std::move(plugin)), clock_(std::move(clock)) {}

  Result<Credential> Get() override {
    std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn) {
      // Somebody runs the program, early: what is held is good until it has come to its end.
      if (const auto held = Held(Duration::zero())) return *held;
      turn.lock();
    }
    if (const auto held = Held(kTokenLeeway)) return *held;
    const Result<Made> next = Run();
    const std::lock_guard lock(mutex_);
    if (next.ok()) {
      held_ = *next;
    } else if (!held_ || refused_) {
      return next.error();
    } else {
      spdlog::warn("credentials: {}; the old ones stay in use", next.error().message);
    }
    refused_ = false;
    return held_->credential;
  }

  Credential Latest() override {
    const std::lock_guard lock(mutex_);
    return held_ ? held_->credential : Credential{};
  }

  void Refused(const std::string& token) override {
    const std::lock_guard lock(mutex_);
    if (held_ && held_->credential.token == token) refused_ = true;
  }

 private:
  struct Made {
    Credential credential;
    std::optional<WallTime> expires;  // nothing: never
  };

  // Unless it was refused, or ends within `leeway`. Wall time, since that is what the plugin speaks
  // of: whoever steps the clock runs it again.
  std::optional<Credential> Held(Duration leeway) {
    const std::lock_guard lock(mutex_);
    if (!held_ || refused_) return std::nullopt;
    if (held_->expires && clock_->WallNow() >= *held_->expires - leeway) return std::nullopt;
    return held_->credential;
  }

  Result<Made> Run() const {
    const std::string place = plugin_.place + ": " + Printable(plugin_.command, kShownShort);
    const Result<std::string> text = RunPlugin(plugin_);
    if (!text.ok()) return text.error().With(place);
    const std::optional<Json> answer = ParseJson(*text);
    // The answer is not shown: it may hold a secret.
    if (!answer) return Error{Code::kInvalid, place + ": it did not print JSON"};
    if (TextAt(*answer, "/kind") != "ExecCredential" ||
        TextAt(*answer, "/apiVersion") != plugin_.api_version) {
      return Error{Code::kInvalid,
                   place + ": it did not print an ExecCredential of " + plugin_.api_version};
    }
    Made made{{Trimmed(TextAt(*answer, "/status/token")),
               TextAt(*answer, "/status/clientCertificateData"),
               TextAt(*answer, "/status/clientKeyData")},
              {}};
    if (made.credential.token.empty() && made.credential.certificate_pem.empty()) {
      return Error{Code::kInvalid, place + ": neither status.token nor clientCertificateData"};
    }
    const std::string expires = TextAt(*answer, "/status/expirationTimestamp");
    if (!expires.empty()) {
      made.expires = ParseTime(expires);
      if (!made.expires) {
        return Error{Code::kInvalid, place + ": status.expirationTimestamp is not a time: " +
                                         Printable(expires, kShownShort)};
      }
    }
    return made;
  }

  const ExecPlugin plugin_;
  const std::shared_ptr<const Clock> clock_;
  std::mutex turn_;   // with whoever runs the program
  std::mutex mutex_;  // guards what follows
  std::optional<Made> held_;
  bool refused_ = false;
};

}  // namespace

std::shared_ptr<CredentialSource> ExecCredential(ExecPlugin plugin,
                                                 std::shared_ptr<const Clock> clock) {
  return std::make_shared<Exec>(std::move(plugin), std::move(clock));
}

}  // namespace parallelrun::kube
