#include "base/http/server.h"

#include <netinet/tcp.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/v6_only.hpp>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/event_loop_asio.h"
#include "base/http/server/connection.h"
#include "base/http/server/tls.h"

namespace parallelrun {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Tcp = asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<Tcp, asio::io_context::executor_type>;

HttpExchange::HttpExchange(HttpRequest request, std::weak_ptr<HttpConnection> connection)
    : request_(std::move(request)), connection_(std::move(connection)) {}

HttpExchange::~HttpExchange() {
  End();
  if (!responded_) Respond(TextResponse(500, "the request was not answered\n"));
}

void HttpExchange::Respond(HttpResponse response) {
  if (std::exchange(responded_, true)) return;
  on_gone_ = nullptr;
  if (const auto connection = connection_.lock()) connection->Respond(std::move(response));
}

void HttpExchange::Begin(HttpResponse head) {
  if (std::exchange(responded_, true)) return;
  begun_ = true;
  if (const auto connection = connection_.lock()) connection->Begin(std::move(head));
}

void HttpExchange::Send(std::string part) {
  if (!begun_) return;
  if (const auto connection = connection_.lock()) connection->Add(std::move(part));
}

void HttpExchange::End() {
  if (!std::exchange(begun_, false)) return;
  on_gone_ = nullptr;
  if (const auto connection = connection_.lock()) connection->End();
}

size_t HttpExchange::waiting() const {
  const auto connection = connection_.lock();
  return connection && begun_ ? connection->waiting() : 0;
}

void HttpExchange::MarkGone() {
  gone_ = true;
  if (const auto callback = std::exchange(on_gone_, nullptr)) callback();
}

namespace {

// Beyond max_connections this many more are let in, to be told 503 properly or to be answered
// always.
constexpr size_t kBeyondLimit = 32;
constexpr Duration kAcceptPause = milliseconds(100);

std::string PeerName(const HttpSocket& socket) {
  ErrorCode ec;
  const Tcp::endpoint peer = socket.remote_endpoint(ec);
  if (ec) return "unknown";
  const asio::ip::address address = peer.address();
  if (address.is_v4()) return fmt::format("{}:{}", address.to_string(), peer.port());
  // A socket of every address knows an IPv4 peer as ::ffff:10.0.0.1.
  const asio::ip::address_v6 v6 = address.to_v6();
  if (!v6.is_v4_mapped()) return fmt::format("[{}]:{}", v6.to_string(), peer.port());
  return fmt::format("{}:{}", make_address_v4(asio::ip::v4_mapped, v6).to_string(), peer.port());
}

// A peer whose machine vanished never says so; these find it in half a minute.
void SetUpSocket(HttpSocket& socket) {
  const auto set = [&socket](int level, int name, int value) {
    setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Error ListenError(const HttpServerOptions& options, const ErrorCode& ec) {
  const std::string place = fmt::format("listen on {}:{}", options.host, options.port);
  Error error = ErrnoError(ec.value(), place);
  if (ec.category() != boost::system::system_category()) {
    error = {Code::kInvalid, place + ": " + ec.message() + "; give an address of this machine"};
  } else if (ec == asio::error::address_in_use) {
    error.message += "; stop the program that holds it, or choose another port (0: any)";
  } else if (ec == asio::error::access_denied) {
    error.message += "; choose a port from 1024 up";
  } else {
    error.message += fmt::format("; give an address of this machine, or :{} for all", options.port);
  }
  return error;
}

ErrorCode ListenAt(Acceptor& acceptor, const Tcp::endpoint& endpoint) {
  ErrorCode ec;
  acceptor.open(endpoint.protocol(), ec);
  if (!ec) acceptor.set_option(Acceptor::reuse_address(true), ec);
  if (!ec && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), ec);
  if (!ec) acceptor.bind(endpoint, ec);
  if (!ec) acceptor.listen(Acceptor::max_listen_connections, ec);
  return ec;
}

ErrorCode ListenEverywhere(Acceptor& acceptor, uint16_t port) {
  const ErrorCode ec = ListenAt(acceptor, {Tcp::v6(), port});
  const bool no_ipv6 = ec == asio::error::address_family_not_supported ||
                       ec == boost::system::errc::address_not_available;
  if (!no_ipv6) return ec;
  ErrorCode ignored;
  acceptor.close(ignored);
  return ListenAt(acceptor, {Tcp::v4(), port});
}

ErrorCode Listen(Acceptor& acceptor, asio::io_context& io, const HttpServerOptions& options) {
  ErrorCode ec;
  if (options.listen_fd >= 0) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    if (getsockname(options.listen_fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return {errno, boost::system::system_category()};
    }
    acceptor.assign(address.ss_family == AF_INET6 ? Tcp::v6() : Tcp::v4(), options.listen_fd, ec);
    return ec;
  }
  if (options.host.empty()) return ListenEverywhere(acceptor, options.port);
  Tcp::resolver resolver(io);
  const auto found =
      resolver.resolve(options.host, std::to_string(options.port), Tcp::resolver::passive, ec);
  if (ec) return ec;
  return ListenAt(acceptor, *found.begin());
}

}  // namespace

// Shared by the server and its connections.
struct HttpServerState final : HttpConnectionHost, std::enable_shared_from_this<HttpServerState> {
  explicit HttpServerState(EventLoop& l) : loop(l), acceptor(IoContextOf(l)) {}

  EventLoop& loop;
  Acceptor acceptor;
  uint16_t port = 0;
  std::optional<TlsIdentity> tls;
  std::unordered_set<std::shared_ptr<HttpConnection>> connections;
  Duration sweep_every{};
  EventLoop::TimerId sweep = EventLoop::TimerId::kNone;
  EventLoop::TimerId accept_again = EventLoop::TimerId::kNone;
  EventLoop::TimerId drain_limit = EventLoop::TimerId::kNone;
  std::function<void()> drained;

  void Accept() {
    acceptor.async_accept([self = shared_from_this()](ErrorCode ec, HttpSocket socket) {
      if (!self->acceptor.is_open()) return;
      if (!ec) {
        self->Admit(std::move(socket));
        return self->Accept();
      }
      if (ec == asio::error::connection_aborted) return self->Accept();
      // Most likely out of file descriptors: trying again at once would only spin.
      spdlog::warn("HTTP: accept on port {}: {}; raise the limit of open files (ulimit -n)",
                   self->port, ec.message());
      self->accept_again = self->loop.After(kAcceptPause, [self] { self->Accept(); });
    });
  }

  void Admit(HttpSocket socket) {
    if (connections.size() >= options.max_connections + kBeyondLimit && !MakeRoom()) return;
    const bool refuse = connections.size() >= options.max_connections;
    SetUpSocket(socket);
    std::string peer = PeerName(socket);
    asio::ssl::context* context = tls ? &tls->Current(std::chrono::steady_clock::now()) : nullptr;
    const auto connection =
        MakeHttpConnection(shared_from_this(), std::move(socket), std::move(peer), refuse, context);
    connections.insert(connection);
    if (sweep == EventLoop::TimerId::kNone) ScheduleSweep();
    connection->Start();
  }

  // Whoever has waited longest without a request goes: those who come with one are always let in.
  bool MakeRoom() {
    std::shared_ptr<HttpConnection> longest;
    SteadyTime since = SteadyTime::max();
    for (const auto& connection : connections) {
      const std::optional<SteadyTime> waits = connection->WaitsSince();
      if (!waits || *waits >= since) continue;
      since = *waits;
      longest = connection;
    }
    if (longest) longest->Close(false);
    return longest != nullptr;
  }

  // One timer for all time limits: a limit is kept to within `sweep_every`, and a request costs
  // no timer of its own.
  void ScheduleSweep() {
    sweep = loop.After(sweep_every, [this] {
      sweep = EventLoop::TimerId::kNone;
      const auto now = std::chrono::steady_clock::now();
      const auto keep = shared_from_this();  // a callback may destroy the server
      for (const auto& connection : Snapshot()) connection->CheckDeadline(now);
      if (!connections.empty() && sweep == EventLoop::TimerId::kNone) ScheduleSweep();
    });
  }

  void Forget(const std::shared_ptr<HttpConnection>& connection) override {
    connections.erase(connection);
    if (draining && connections.empty()) Drained();
  }

  void Drained() {
    if (!drained) return;
    loop.Cancel(drain_limit);
    loop.Post(std::exchange(drained, nullptr));
  }

  // Connections remove themselves while they are told something.
  std::vector<std::shared_ptr<HttpConnection>> Snapshot() const {
    return {connections.begin(), connections.end()};
  }

  void StopAccepting() {
    ErrorCode ignored;
    acceptor.close(ignored);
    loop.Cancel(accept_again);
  }
};

void LimitPublicPort(HttpServerOptions& options) {
  options.max_connections = 64;
  options.always_answered = {"/healthz", "/readyz"};
  options.header_timeout = seconds(1);
  options.body_idle_timeout = seconds(1);
  options.keep_alive_timeout = Duration::zero();
}

HttpServer::HttpServer(std::shared_ptr<HttpServerState> state) : state_(std::move(state)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::Start(EventLoop& loop, HttpServerOptions options,
                                                      Gate gate, Handler handler) {
  auto state = std::make_shared<HttpServerState>(loop);
  if (!options.tls_chain_file.empty()) {
    auto identity = TlsIdentity::Load(options.tls_chain_file, options.tls_key_file);
    if (!identity.ok()) return identity.error();
    state->tls = std::move(*identity);
  }
  if (const ErrorCode ec = Listen(state->acceptor, IoContextOf(loop), options)) {
    return ListenError(options, ec);
  }
  ErrorCode ec;
  state->port = state->acceptor.local_endpoint(ec).port();
  if (ec) return ListenError(options, ec);
  Duration shortest =
      std::min({options.header_timeout, options.body_idle_timeout, options.write_idle_timeout});
  if (options.keep_alive_timeout > Duration::zero()) {
    shortest = std::min(shortest, options.keep_alive_timeout);
  }
  state->sweep_every = std::clamp<Duration>(shortest / 4, milliseconds(5), milliseconds(500));
  state->options = std::move(options);
  state->gate = std::move(gate);
  state->handler = std::move(handler);
  state->Accept();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

HttpServer::~HttpServer() {
  state_->drained = nullptr;
  state_->StopAccepting();
  state_->loop.Cancel(state_->sweep);
  state_->loop.Cancel(state_->drain_limit);
  for (const auto& connection : state_->Snapshot()) connection->Close(false);
  // The handler may be what runs now: its last owner lets go of it at the loop's next turn.
  state_->loop.Post([state = state_] {
    state->gate = nullptr;
    state->handler = nullptr;
  });
}

uint16_t HttpServer::port() const { return state_->port; }
size_t HttpServer::connections() const { return state_->connections.size(); }

void HttpServer::Drain(Duration grace, std::function<void()> done) {
  state_->draining = true;
  state_->drained = std::move(done);
  state_->StopAccepting();
  state_->drain_limit = state_->loop.After(grace, [state = state_.get()] {
    for (const auto& connection : state->Snapshot()) connection->Close(true);
  });
  for (const auto& connection : state_->Snapshot()) connection->CloseIfIdle();
  if (state_->connections.empty()) state_->Drained();
}

}  // namespace parallelrun
