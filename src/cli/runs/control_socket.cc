#include "cli/runs/control_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kEnd[] = ".sock";
constexpr size_t kLongestQuestion = 4096;
constexpr size_t kLongestLine = size_t{16} << 20;  // the progress of many nodes
constexpr size_t kMostPeers = 64;
constexpr int kSendBuffer = 1 << 20;

// Through the folder's descriptor: a socket's path has 107 bytes at most.
sockaddr_un AddressIn(int folder, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", folder, name);
  std::memcpy(address.sun_path, path.c_str(),
              std::min(path.size() + 1, sizeof address.sun_path - 1));
  return address;
}

Fd MakeSocket(int flags) { return Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0)); }

Result<Fd> OpenFolder() {
  const Result<std::string> path = ControlFolder();
  if (!path.ok()) return path.error();
  Fd folder(open(path->c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return ErrnoError(errno, "open " + *path);
  return folder;
}

}  // namespace

Result<std::string> ControlFolder() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  std::error_code ignored;
  const bool given =
      runtime != nullptr && *runtime == '/' && fs::is_directory(fs::path(runtime), ignored);
  // Not below TMPDIR: whoever asks may have another one than the run.
  const std::string path =
      given ? std::string(runtime) + "/parallelrun" : fmt::format("/tmp/parallelrun-{}", geteuid());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoError(errno, "make " + path);
  struct stat facts {};
  if (lstat(path.c_str(), &facts) != 0) return ErrnoError(errno, "look at " + path);
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != geteuid() || (facts.st_mode & 077) != 0) {
    return Error{Code::kPermission,
                 fmt::format("{} is not a folder of this user alone: remove it, or set "
                             "XDG_RUNTIME_DIR to a folder that is",
                             path)};
  }
  return path;
}

std::string ControlName(const std::string& state_folder) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(state_folder, error);
  const std::string& path = error ? state_folder : real;
  return fmt::format("{:016x}{}", XXH3_64bits(path.data(), path.size()), kEnd);
}

ControlSocket::ControlSocket(EventLoop& loop, Answers answers)
    : loop_(loop), answers_(std::move(answers)) {}

ControlSocket::~ControlSocket() {
  while (!peers_.empty()) Close(peers_.begin()->first);
  if (name_.empty()) return;
  loop_.Unwatch(watch_);
  unlinkat(folder_.get(), name_.c_str(), 0);
}

Status ControlSocket::Open(const std::string& state_folder) {
  Result<Fd> folder = OpenFolder();
  if (!folder.ok()) return folder.error();
  folder_ = std::move(*folder);
  const std::string name = ControlName(state_folder);
  // It has its name only once it is served: one that is not is taken for left.
  const std::string unnamed = name + ".new";
  unlinkat(folder_.get(), unnamed.c_str(), 0);
  listening_ = MakeSocket(SOCK_NONBLOCK);
  const sockaddr_un address = AddressIn(folder_.get(), unnamed);
  if (!listening_.ok() ||
      bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listening_.get(), 16) != 0 ||
      renameat(folder_.get(), unnamed.c_str(), folder_.get(), name.c_str()) != 0) {
    return ErrnoError(errno, "listen on the socket of the run");
  }
  name_ = name;
  watch_ = loop_.WatchReadable(listening_.get(), [this] { Accept(); });
  return {};
}

bool ControlSocket::followed() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer.second.follows; });
}

void ControlSocket::Tell(const json& event) {
  std::vector<int> gone;
  for (const auto& [fd, peer] : peers_) {
    if (peer.follows && !Send(peer, event)) gone.push_back(fd);
  }
  for (const int fd : gone) Close(fd);
}

void ControlSocket::Accept() {
  Fd socket(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.ok()) return;
  ucred who{};
  socklen_t size = sizeof who;
  const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
  if (!known || (who.uid != geteuid() && who.uid != 0) || peers_.size() >= kMostPeers) return;
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  const int fd = socket.get();
  Peer& peer = peers_[fd];
  peer.socket = std::move(socket);
  peer.watch = loop_.WatchReadable(fd, [this, fd] { Read(fd); });
}

void ControlSocket::Read(int fd) {
  Peer& peer = peers_.at(fd);
  std::array<char, 1024> bytes{};
  const ssize_t n = recv(fd, bytes.data(), bytes.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Close(fd);
  peer.asked.append(bytes.data(), static_cast<size_t>(n));
  const size_t end = peer.asked.find('\n');
  if (end == std::string::npos && peer.asked.size() < kLongestQuestion) return;
  const std::string line = peer.asked.substr(0, end);
  peer.asked.clear();
  if (end == std::string::npos) return Close(fd);
  Answer(fd, line);
}

void ControlSocket::Answer(int fd, const std::string& line) {
  const std::optional<json> question = ParseJson(line);
  const std::string ask = question ? lenient::Text(*question, "ask") : "";
  if (ask == "status") {
    Send(peers_.at(fd), answers_.status());
    return Close(fd);
  }
  if (ask != "follow" && ask != "stop") return Close(fd);
  peers_.at(fd).follows = true;
  if (!Send(peers_.at(fd), answers_.status())) return Close(fd);
  if (ask == "stop") answers_.stop(lenient::Boolean(*question, "now"));
}

bool ControlSocket::Send(const Peer& peer, const json& event) const {
  const std::string line = event.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  // All or nothing: what has no room in the socket's buffer would stop the run.
  return send(peer.socket.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(line.size());
}

void ControlSocket::Close(int fd) {
  const auto peer = peers_.find(fd);
  if (peer == peers_.end()) return;
  loop_.Unwatch(peer->second.watch);
  peers_.erase(peer);
}

Result<ControlClient> ControlClient::ConnectTo(int folder, const std::string& name) {
  Fd socket = MakeSocket(0);
  const sockaddr_un address = AddressIn(folder, name);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (socket.ok() && connect(socket.get(), generic, sizeof address) == 0) {
    return ControlClient(std::move(socket));
  }
  if (errno == ECONNREFUSED) unlinkat(folder, name.c_str(), 0);  // its command was killed
  if (errno == ECONNREFUSED || errno == ENOENT) return Error{Code::kNotFound, "no run serves it"};
  return ErrnoError(errno, "connect to the run");
}

Result<ControlClient> ControlClient::Connect(const std::string& state_folder) {
  const Result<Fd> folder = OpenFolder();
  if (!folder.ok()) return folder.error();
  return ConnectTo(folder->get(), ControlName(state_folder));
}

std::vector<ControlClient> ControlClient::ConnectToAll() {
  std::vector<ControlClient> found;
  const Result<std::string> path = ControlFolder();
  const Result<Fd> folder = OpenFolder();
  if (!path.ok() || !folder.ok()) return found;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(*path, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == kEnd) names.push_back(it->path().filename());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    Result<ControlClient> client = ConnectTo(folder->get(), name);
    if (client.ok()) found.push_back(std::move(*client));
  }
  return found;
}

Status ControlClient::Ask(const json& question) {
  const std::string line = question.dump() + "\n";
  if (send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return ErrnoError(errno, "ask the run");
  }
  return {};
}

Result<json> ControlClient::Next(Duration limit) {
  const SystemClock clock;
  const Instant until = clock.Now() + limit;
  std::array<char, 65536> bytes{};
  while (true) {
    const size_t end = read_.find('\n');
    if (end != std::string::npos) {
      std::optional<json> line = ParseJson(std::string_view(read_).substr(0, end));
      read_.erase(0, end + 1);
      if (!line) return Error{Code::kInvalid, "the run says what this release cannot read"};
      return std::move(*line);
    }
    if (read_.size() > kLongestLine) return Error{Code::kInvalid, "the run says too much"};
    const Duration left = until - clock.Now();
    pollfd wait{socket_.get(), POLLIN, 0};
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(left, Duration(0)));
    const int ready = poll(&wait, 1, static_cast<int>(ms.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Error{Code::kUnavailable, "the run does not answer"};
    const ssize_t n = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (n <= 0) return json();
    read_.append(bytes.data(), static_cast<size_t>(n));
  }
}

}  // namespace parallelrun::cli
