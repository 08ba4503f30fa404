#include "base/http/tunnel.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <unordered_set>
#include <utility>

#include "base/event_loop_asio.h"
#include "base/http/trust.h"

namespace parallelrun {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Executor = asio::io_context::executor_type;
using Tcp = asio::ip::tcp;
using Socket = asio::basic_stream_socket<Tcp, Executor>;
using Acceptor = asio::basic_socket_acceptor<Tcp, Executor>;
using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                         asio::wait_traits<std::chrono::steady_clock>, Executor>;

constexpr size_t kChunk = size_t{16} << 10;  // in each direction: what is read waits to be written

Tcp::endpoint Loopback(uint16_t port) { return {asio::ip::address_v4::loopback(), port}; }

}  // namespace

struct TlsTunnel::State : std::enable_shared_from_this<State> {
  class Connection;

  State(EventLoop& loop, TlsTunnelOptions o)
      : io(IoContextOf(loop)), options(std::move(o)), acceptor(io) {}

  void Accept();
  void Forget(const std::shared_ptr<Connection>& connection) { connections.erase(connection); }

  asio::io_context& io;
  const TlsTunnelOptions options;
  asio::ssl::context tls{asio::ssl::context::tls_client};
  Acceptor acceptor;
  uint16_t port = 0;
  uint16_t leads_to = 0;
  std::unordered_set<std::shared_ptr<Connection>> connections;
};

class TlsTunnel::State::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, Socket near)
      : state_(std::move(state)),
        near_(std::move(near)),
        far_(state_->io, state_->tls),
        timer_(state_->io) {}

  void Open() {
    const std::string& name = state_->options.server_name;
    far_.set_verify_mode(asio::ssl::verify_peer);
    far_.set_verify_callback(asio::ssl::host_name_verification(name));
    // What the macro SSL_set_tlsext_host_name does, which casts in the style of C.
    SSL_ctrl(far_.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(name.c_str()));
    timer_.expires_after(state_->options.open_timeout);
    timer_.async_wait([self = shared_from_this()](ErrorCode ec) {
      if (!ec) self->Fail("did not answer in time");
    });
    far_.next_layer().async_connect(
        Loopback(state_->leads_to), [self = shared_from_this()](ErrorCode ec) {
          if (ec) return self->Fail("connect: " + ec.message());
          ErrorCode ignored;
          self->far_.next_layer().set_option(Tcp::no_delay(true), ignored);
          self->near_.set_option(Tcp::no_delay(true), ignored);
          self->far_.async_handshake(asio::ssl::stream_base::client, [self](ErrorCode failed) {
            if (failed) return self->Fail("TLS: " + failed.message());
            self->timer_.cancel();
            self->Carry(self->near_, self->far_, self->up_);
            self->Carry(self->far_, self->near_, self->down_);
          });
        });
  }

  void Close() {
    if (std::exchange(closed_, true)) return;
    ErrorCode ignored;
    timer_.cancel();
    near_.close(ignored);
    far_.next_layer().close(ignored);
    state_->Forget(shared_from_this());
  }

 private:
  void Fail(const std::string& why) {
    if (closed_) return;
    state_->options.on_error({Code::kUnavailable, why});
    Close();
  }

  // One end of file ends both directions: HTTP needs no half of a connection.
  template <class From, class To>
  void Carry(From& from, To& to, std::array<char, kChunk>& chunk) {
    from.async_read_some(asio::buffer(chunk),
                         [self = shared_from_this(), &from, &to, &chunk](ErrorCode ec, size_t n) {
                           if (ec || self->closed_) return self->Close();
                           asio::async_write(to, asio::buffer(chunk.data(), n),
                                             [self, &from, &to, &chunk](ErrorCode failed, size_t) {
                                               if (failed || self->closed_) return self->Close();
                                               self->Carry(from, to, chunk);
                                             });
                         });
  }

  const std::shared_ptr<State> state_;
  Socket near_;
  asio::ssl::stream<Socket> far_;
  Timer timer_;
  bool closed_ = false;
  std::array<char, kChunk> up_;
  std::array<char, kChunk> down_;
};

void TlsTunnel::State::Accept() {
  acceptor.async_accept([self = shared_from_this()](ErrorCode ec, Socket socket) {
    if (ec == asio::error::operation_aborted || !self->acceptor.is_open()) return;
    if (!ec && self->leads_to != 0 && self->connections.size() < self->options.max_connections) {
      const auto connection = std::make_shared<Connection>(self, std::move(socket));
      self->connections.insert(connection);
      connection->Open();
    }
    self->Accept();
  });
}

Result<std::unique_ptr<TlsTunnel>> TlsTunnel::Start(EventLoop& loop, TlsTunnelOptions options) {
  if (!IsUsablePem(options.ca_pem)) {
    return Error{Code::kInvalid, "there is no certificate to trust"};
  }
  auto state = std::make_shared<State>(loop, std::move(options));
  SetTrust(state->tls.native_handle(), state->options.ca_pem);
  const Tcp::endpoint at = Loopback(state->options.port);
  ErrorCode ec;
  state->acceptor.open(Tcp::v4(), ec);
  if (!ec) state->acceptor.set_option(Acceptor::reuse_address(true), ec);
  if (!ec) state->acceptor.bind(at, ec);
  if (!ec) state->acceptor.listen(Acceptor::max_listen_connections, ec);
  if (ec) return ErrnoError(ec.value(), fmt::format("listen on 127.0.0.1:{}", at.port()));
  state->port = state->acceptor.local_endpoint().port();
  state->Accept();
  return std::unique_ptr<TlsTunnel>(new TlsTunnel(std::move(state)));
}

TlsTunnel::TlsTunnel(std::shared_ptr<State> state) : state_(std::move(state)) {}

TlsTunnel::~TlsTunnel() {
  ErrorCode ignored;
  state_->acceptor.close(ignored);
  const auto connections = std::exchange(state_->connections, {});
  for (const auto& connection : connections) connection->Close();
}

uint16_t TlsTunnel::port() const { return state_->port; }

void TlsTunnel::LeadTo(uint16_t port) { state_->leads_to = port; }

}  // namespace parallelrun
