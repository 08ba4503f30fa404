#include "cli/local_run.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/spawn.h"
#include "api/defaults.h"
#include "api/to_json.h"
#include "base/escape.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/http_client.h"
#include "base/random.h"
#include "cli/code_snapshot.h"
#include "cli/display.h"
#include "cli/run_folder.h"
#include "coordinator/access.h"
#include "coordinator/server.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr Duration kPoll = milliseconds(300);
constexpr Duration kStopLimit = seconds(30);
constexpr Duration kVerdictLimit = seconds(20);
constexpr Duration kRespawnDelay = milliseconds(200);

// A descriptor that closes itself.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// The programs and the Python package lie beside this program.
struct Programs {
  std::string coordinator;
  std::string agent;
  std::string python_package;
};

Result<Programs> FindPrograms() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  Programs programs{folder / "parallelrun-coordinator", folder / "parallelrun-agent",
                    (folder.parent_path() / "lib/parallelrun/python").lexically_normal()};
  for (const std::string& path : {programs.coordinator, programs.agent, programs.python_package}) {
    if (!fs::exists(path)) {
      return Error{Code::kNotFound, path + " is missing: ParallelRun is not installed completely"};
    }
  }
  return programs;
}

// A file in memory that a child reads from the start as /dev/fd/N: secrets stay off disk and
// command lines.
Result<Fd> MemoryFile(const std::string& text) {
  Fd fd(memfd_create("parallelrun-config", MFD_CLOEXEC));
  if (fd.get() < 0) return ErrnoError(errno, "make a file in memory");
  if (pwrite(fd.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return ErrnoError(errno, "write a file in memory");
  }
  return fd;
}

Result<Fd> ListenOnLoopback(uint16_t& port) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (fd.get() < 0 || bind(fd.get(), generic, size) != 0 || listen(fd.get(), 1024) != 0 ||
      getsockname(fd.get(), generic, &size) != 0) {
    return ErrnoError(errno, "listen on 127.0.0.1");
  }
  port = ntohs(address.sin_port);
  return fd;
}

Result<Fd> AppendTo(const std::string& path) {
  std::error_code ignored;
  fs::create_directories(fs::path(path).parent_path(), ignored);
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (fd.get() < 0) return ErrnoError(errno, "open " + path);
  return fd;
}

std::string LastLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::string last;
  while (std::getline(in, line)) {
    if (!line.empty()) last = line;
  }
  return Printable(last, 1000);
}

class LocalRun {
 public:
  LocalRun(const LocalJob& job, const RunRequest& request, const std::string& again)
      : job_(job),
        request_(request),
        again_(again),
        display_(stdout, isatty(STDOUT_FILENO) != 0),
        key_(RandomHex(32)),
        uid_(RandomHex(16)) {}

  ~LocalRun() {
    {
      const std::lock_guard lock(mutex_);
      stop_polling_ = true;
    }
    wake_.notify_all();
    if (client_) client_->Cancel();
    if (poller_.joinable()) poller_.join();
  }

  int Run() {
    started_ = clock_.Now();
    if (const Status prepared = Prepare(); !prepared.ok()) return CannotStart(prepared.error());
    loop_.OnSignal(SIGCHLD, [this] { Reap(); });
    for (const int signo : {SIGINT, SIGTERM, SIGHUP}) {
      loop_.OnSignal(signo, [this] { Interrupt(); });
    }
    loop_.Post([this] {
      if (const Status started = StartAll(); !started.ok()) Finish(CannotStart(started.error()));
    });
    loop_.Run();
    return exit_;
  }

 private:
  struct Node {
    pid_t pid = 0;  // of the guardian; 0: not running
    Fd watch;       // closes when this command ends, whatever ends it
    int restarts = 0;
    bool over = false;  // finished, or given up
  };

  int CannotStart(const Error& error) {
    display_.Say(error.message);
    return kExitUsage;
  }

  Status Prepare() {
    // Orphans of a guardian that was killed come to us, to be ended with the rest.
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    InitHttpClientThread();
    Result<Programs> programs = FindPrograms();
    if (!programs.ok()) return programs.error();
    programs_ = std::move(*programs);

    if (const Status locked = Lock(); !locked.ok()) return locked;
    if (const Status made = folder_.Make(); !made.ok()) return made;
    std::vector<std::string> leave_out = job_.layout.forbidden;
    leave_out.push_back(folder_.path());
    for (const PlanInput& input : job_.layout.inputs) leave_out.push_back(input.root);
    const Result<uint64_t> digest =
        SnapshotCode(job_.code_folder, folder_.path() + "/code", leave_out);
    if (!digest.ok()) return digest.error();
    code_digest_ = *digest;

    Result<Fd> listening = ListenOnLoopback(port_);
    if (!listening.ok()) return listening.error();
    listening_ = std::move(*listening);
    HttpClientOptions options;
    options.base_url = Url();
    options.token = [token = RoleToken(key_, "operator")] { return token; };
    options.user_agent = "parallelrun/" PARALLELRUN_VERSION;
    Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(std::move(options));
    if (!client.ok()) return client.error();
    client_ = std::move(*client);
    nodes_.resize(job_.nodes);
    return {};
  }

  // The folder that is to hold output, logs and state is of no use: what to do.
  Error Unusable(const Error& why) const {
    const std::string flag = request_.quick
                                 ? "--output FOLDER"
                                 : "--volume " + job_.job.spec.state.in.volume + "=FOLDER";
    return {why.code,
            fmt::format("the job's state folder cannot be used: {}; make room or correct the "
                        "permissions there, or choose another folder with {}",
                        why.message, flag)};
  }

  // One command at a time works on a state folder.
  Status Lock() {
    const std::unique_ptr<Files> files = MakeSystemFiles();
    if (const Status made = files->MakeFolders(job_.layout.state_folder); !made.ok()) {
      return Unusable(made.error());
    }
    const std::string path = job_.layout.state_folder + "/lock";
    lock_ = Fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (lock_.get() < 0) return Unusable(ErrnoError(errno, "open " + path));
    if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      char pid[32] = {};
      const ssize_t n = pread(lock_.get(), pid, sizeof pid - 1, 0);
      return Error{
          Code::kExists,
          fmt::format("another parallelrun works on this job (process {}, state folder {}): wait "
                      "for it, or stop it",
                      n > 0 ? Printable(pid, 20) : "unknown", job_.layout.state_folder)};
    }
    const std::string pid = std::to_string(getpid());
    if (ftruncate(lock_.get(), 0) != 0 ||
        pwrite(lock_.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
      return Unusable(ErrnoError(errno, "write " + path));
    }
    return {};
  }

  std::string Url() const { return fmt::format("http://127.0.0.1:{}", port_); }
  std::string NodeLog(size_t index) const {
    return fmt::format("{}/sys/node/{}/_main.txt", job_.layout.log_folder, index);
  }
  std::string CoordinatorLog() const { return job_.layout.log_folder + "/sys/master_role.txt"; }

  // --- children

  Status StartAll() {
    for (const std::string& note : job_.notes) display_.Say(note);
    if (const Status started = StartCoordinator(); !started.ok()) return started;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (const Status started = StartNode(i); !started.ok()) return started;
    }
    poller_ = std::thread([this] { Poll(); });
    return {};
  }

  Status StartCoordinator() {
    const json config = {{"job", ToJson(job_.job)},
                         {"volumes", job_.volumes},
                         {"key", key_},
                         {"listen", {{"fd", 3}}},
                         {"resourceUid", uid_},
                         {"resume", request_.resume},
                         {"overwrite", request_.overwrite},
                         {"retryFailed", request_.retry_failed},
                         {"codeDigest", fmt::format("{:x}", code_digest_)},
                         {"nodes", job_.nodes},
                         {"processes", job_.processes},
                         {"terminationMessage", folder_.path() + "/last.json"}};
    Result<Fd> file = MemoryFile(config.dump(-1, ' ', false, json::error_handler_t::replace));
    if (!file.ok()) return file.error();
    Result<Fd> log = AppendTo(CoordinatorLog());
    if (!log.ok()) return log.error();
    const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Result<pid_t> pid =
        Spawn({{programs_.coordinator, "--config", "/dev/fd/4"},
               OwnEnvironment(),
               "/",
               {null.get(), log->get(), log->get(), listening_.get(), file->get()}});
    if (!pid.ok()) return pid.error();
    coordinator_ = *pid;
    return {};
  }

  Status StartNode(size_t index) {
    const std::string work =
        fmt::format("{}/node-{}-{}", folder_.path(), index, nodes_[index].restarts);
    const json config = {
        {"url", Url()},       {"token", RoleToken(key_, fmt::format("node:{}", index))},
        {"node", index},      {"codeFolder", folder_.path() + "/code"},
        {"workFolder", work}, {"pythonPath", programs_.python_package}};
    Result<Fd> file = MemoryFile(config.dump());
    if (!file.ok()) return file.error();
    Result<Fd> log = AppendTo(NodeLog(index));
    if (!log.ok()) return log.error();
    int watch[2];
    if (pipe2(watch, O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
    const Fd read_end(watch[0]);
    nodes_[index].watch = Fd(watch[1]);
    const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const Result<pid_t> pid = Spawn(
        {{programs_.agent, "guard", "--watch", "3", "--", programs_.agent, "--config", "/dev/fd/4"},
         OwnEnvironment(),
         "/",
         {null.get(), log->get(), log->get(), read_end.get(), file->get()}});
    if (!pid.ok()) return pid.error();
    nodes_[index].pid = *pid;
    return {};
  }

  void Reap() {
    int status = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == coordinator_) {
        coordinator_ = 0;
        OnCoordinatorExit(status);
        continue;
      }
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (nodes_[i].pid == pid) {
          nodes_[i].pid = 0;
          nodes_[i].watch = Fd();
          OnNodeExit(i, status);
        }
      }
    }
    if (stopping_) CheckStopped();
  }

  void OnCoordinatorExit(int status) {
    if (stopping_) return;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    switch (static_cast<CoordinatorExit>(code)) {
      case CoordinatorExit::kSucceeded: return Finish(kExitOk);
      case CoordinatorExit::kFailed: return Finish(kExitFailed);
      case CoordinatorExit::kDrained: return Finish(kExitInterrupted);
      case CoordinatorExit::kCannotStart: {
        const std::optional<json> last = LastWords();
        display_.Say(last && last->contains("error") ? (*last)["error"].get<std::string>()
                                                     : LastLine(CoordinatorLog()));
        return Finish(kExitUsage);
      }
      default: break;
    }
    if (draining_) return Finish(kExitInterrupted);
    // Crashed, or the disk failed it: the next epoch goes on, as long as that brings the job
    // forward.
    crashes_ = settled_ > settled_at_crash_ ? 1 : crashes_ + 1;
    settled_at_crash_ = settled_;
    if (crashes_ > job_.job.spec.coordinator.restart_limit) {
      display_.Say(
          fmt::format("the coordinator ended {} times without a new result; its log: {}; last: {}",
                      crashes_, CoordinatorLog(), LastLine(CoordinatorLog())));
      return Finish(kExitFailed);
    }
    display_.Say("the coordinator ended unexpectedly, starting the next one");
    loop_.After(kRespawnDelay, [this] {
      if (stopping_ || coordinator_ != 0) return;
      if (const Status started = StartCoordinator(); !started.ok())
        Finish(CannotStart(started.error()));
    });
  }

  void OnNodeExit(size_t index, int status) {
    Node& node = nodes_[index];
    if (stopping_ || draining_) return;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == 0 || code == 1 || code == 3) {  // finished, given up, drained
      node.over = true;
      return EndWithoutNodes(index);
    }
    if (code == 2 || code == 127) {
      display_.Say(fmt::format("node {} cannot start: {}", index, LastLine(NodeLog(index))));
      return Finish(kExitFailed);
    }
    if (++restarts_ > NodeRestartLimit(job_.job.spec, static_cast<int32_t>(nodes_.size()))) {
      display_.Say(fmt::format("nodes ended {} times, the last was node {}; its log: {}", restarts_,
                               index, NodeLog(index)));
      return Finish(kExitFailed);
    }
    ++node.restarts;
    display_.Say(fmt::format("node {} ended unexpectedly, replacing it", index));
    loop_.After(kRespawnDelay, [this, index] {
      if (stopping_ || draining_ || nodes_[index].pid != 0) return;
      if (const Status started = StartNode(index); !started.ok())
        Finish(CannotStart(started.error()));
    });
  }

  // Once the last node has ended by itself, the coordinator has all it needs for a verdict.
  void EndWithoutNodes(size_t last) {
    for (const Node& node : nodes_) {
      if (!node.over) return;
    }
    loop_.After(kVerdictLimit, [this, last] {
      if (stopping_) return;
      display_.Say(
          fmt::format("no node is left, the last was node {}: {}", last, LastLine(NodeLog(last))));
      Finish(kExitFailed);
    });
  }

  // --- progress, on a thread of its own

  void Poll() {
    std::unique_lock lock(mutex_);
    while (!stop_polling_) {
      const bool drain = drain_wanted_;
      lock.unlock();
      HttpRequest request;
      request.path = "/v1/progress";
      if (drain) {
        request.method = "PUT";
        request.path = "/v1/control";
        request.body = R"({"drain": true})";
      }
      const Result<HttpResponse> response = client_->Send(std::move(request), seconds(5));
      if (response.ok() && response->status == 200) {
        json progress = json::parse(response->body, nullptr, false);
        if (progress.is_object()) {
          loop_.Post([this, progress = std::move(progress)] { Show(progress); });
        }
      }
      lock.lock();
      if (drain && response.ok() && response->status == 200) drain_wanted_ = false;
      wake_.wait_for(lock, kPoll, [this] { return stop_polling_ || drain_wanted_; });
    }
  }

  void Show(const json& progress) {
    if (stopping_) return;
    settled_ = progress["miniBatches"]["succeeded"].get<uint64_t>();
    last_progress_ = progress;
    // Whole, once: the progress line is cut at the width of the terminal.
    const std::string paused = progress["paused"];
    if (paused != paused_ && !paused.empty()) {
      display_.Say(fmt::format("paused: {}; the job goes on as soon as there is room",
                               Printable(paused, 2000)));
    }
    paused_ = paused;
    display_.Progress(ProgressLine(progress), clock_.Now());
  }

  // --- the end

  void Interrupt() {
    if (draining_ || stopping_) {
      display_.Say("stopping at once");
      if (!stopping_) Finish(kExitInterrupted);
      EndNodes(SIGKILL);
      return;
    }
    draining_ = true;
    display_.Say("finishing the mini-batches that run; Ctrl-C again stops at once");
    {
      const std::lock_guard lock(mutex_);
      drain_wanted_ = true;
    }
    wake_.notify_all();
  }

  void EndNodes(int signo) {
    for (Node& node : nodes_) {
      // A guardian whose pipe closes kills all that is below it, and ends.
      if (signo == SIGKILL) node.watch = Fd();
      if (node.pid != 0 && signo != SIGKILL) kill(node.pid, signo);
    }
  }

  // Ends the children; the loop stops once they are gone.
  void Finish(int exit) {
    if (stopping_) return;
    stopping_ = true;
    exit_ = exit;
    if (coordinator_ != 0) kill(coordinator_, SIGKILL);
    // Nothing is left to finish: what the coordinator did not wait for is void.
    EndNodes(SIGKILL);
    loop_.After(kStopLimit, [this] {
      display_.Say("some processes did not end within 30 s");
      loop_.Stop();
    });
    CheckStopped();
  }

  void CheckStopped() {
    bool running = coordinator_ != 0;
    for (const Node& node : nodes_) running = running || node.pid != 0;
    if (running || stopped_) return;
    stopped_ = true;
    KillOrphans();
    RemoveTokens();
    if (exit_ != kExitUsage) Summarize();
    loop_.Stop();
  }

  // A coordinator that was killed could not remove its token (docs/ledger.md). No other one is at
  // work here: this command holds the state folder's lock.
  void RemoveTokens() const {
    if (job_.layout.output_path.empty()) return;
    const std::string prefix = "." + job_.job.spec.output.file_name + ".";
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(job_.layout.output_folder, ignored)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(prefix) && name.ends_with(".tmp")) fs::remove(entry.path(), ignored);
    }
  }

  // Descendants of a guardian that was itself killed.
  static void KillOrphans() {
    for (int round = 0; round < 100; ++round) {
      std::ifstream children(fmt::format("/proc/self/task/{}/children", getpid()));
      pid_t pid = 0;
      bool any = false;
      while (children >> pid) {
        any = true;
        kill(pid, SIGKILL);
      }
      if (!any) return;
      while (waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      usleep(10'000);
    }
  }

  std::optional<json> LastWords() const {
    std::ifstream in(folder_.path() + "/last.json");
    json last = json::parse(in, nullptr, false);
    if (!last.is_object()) return std::nullopt;
    return last;
  }

  void Summarize() {
    const std::optional<json> words = LastWords();
    std::optional<json> last = last_progress_;
    if (words && words->contains("progress")) last = (*words)["progress"];
    if (!last || !last->contains("miniBatches")) {
      display_.Say("Stopped before anything was planned");
      return;
    }
    std::string text = Summary(*last, job_.layout.log_folder, again_, clock_.Now() - started_);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    display_.Say(text);
  }

  const LocalJob& job_;
  const RunRequest& request_;
  const std::string again_;
  Display display_;
  const std::string key_;
  const std::string uid_;
  SystemClock clock_;
  Instant started_;
  EventLoop loop_;
  Programs programs_;
  RunFolder folder_;
  uint64_t code_digest_ = 0;
  uint16_t port_ = 0;
  Fd listening_;
  Fd lock_;
  pid_t coordinator_ = 0;
  std::vector<Node> nodes_;
  uint64_t settled_ = 0;
  uint64_t settled_at_crash_ = 0;
  int crashes_ = 0;
  int restarts_ = 0;
  bool draining_ = false;
  bool stopping_ = false;
  bool stopped_ = false;
  int exit_ = kExitFailed;
  std::optional<json> last_progress_;
  std::string paused_;  // as the last progress said it

  std::unique_ptr<HttpClient> client_;
  std::thread poller_;
  std::mutex mutex_;  // guards the two below
  std::condition_variable wake_;
  bool stop_polling_ = false;
  bool drain_wanted_ = false;
};

}  // namespace

int RunLocally(const LocalJob& job, const RunRequest& request, const std::string& again) {
  LocalRun run(job, request, again);
  return run.Run();
}

}  // namespace parallelrun
