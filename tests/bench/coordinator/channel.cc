#include "tests/bench/coordinator/channel.h"

#include <utility>

#include "job/node_messages.h"

namespace parallelrun::bench {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

Channel::Channel(asio::io_context& io, asio::ssl::context& tls, asio::ip::tcp::endpoint server,
                 std::string token)
    : io_(io), tls_(tls), server_(std::move(server)), token_("Bearer " + std::move(token)) {}

void Channel::Post(const std::string& target, std::string body, Heard heard) {
  heard_ = std::move(heard);
  request_ = {http::verb::post, target, 11};
  request_.set(http::field::host, "127.0.0.1");
  request_.set(http::field::authorization, token_);
  request_.set(http::field::content_type, "application/octet-stream");
  request_.body() = std::move(body);
  request_.prepare_payload();
  if (stream_) return Write();
  Connect();
}

void Channel::Connect() {
  buffer_.clear();
  stream_ = std::make_unique<Stream>(io_, tls_);
  beast::get_lowest_layer(*stream_).expires_after(std::chrono::seconds(60));
  beast::get_lowest_layer(*stream_).async_connect(server_, [this](Code failed) {
    if (failed) return End(0);
    beast::get_lowest_layer(*stream_).socket().set_option(asio::ip::tcp::no_delay(true));
    stream_->async_handshake(asio::ssl::stream_base::client, [this](Code refused) {
      if (refused) return End(0);
      Write();
    });
  });
}

void Channel::Write() {
  beast::get_lowest_layer(*stream_).expires_after(std::chrono::seconds(60));
  http::async_write(*stream_, request_, [this](Code failed, size_t) {
    if (failed) return End(0);
    Read();
  });
}

void Channel::Read() {
  parser_.emplace();
  parser_->body_limit(job::kMaxExchangeBytes);
  http::async_read(*stream_, buffer_, *parser_,
                   [this](Code failed, size_t) { End(failed ? 0 : parser_->get().result_int()); });
}

void Channel::End(unsigned status) {
  Answer answer;
  answer.status = status;
  if (status != 0) answer.body = std::move(parser_->get().body());
  if (status == 0 || !parser_->get().keep_alive()) stream_.reset();
  const Heard heard = std::move(heard_);
  heard(answer);
}

}  // namespace parallelrun::bench
