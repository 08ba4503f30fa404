// Internal to this bench: one kept connection to the coordinator, over TLS, on the thread of its
// io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace parallelrun::bench {

class Channel {
 public:
  struct Answer {
    unsigned status = 0;  // 0: the connection broke
    std::string body;
  };
  using Heard = std::function<void(const Answer&)>;

  Channel(boost::asio::io_context& io, boost::asio::ssl::context& tls,
          boost::asio::ip::tcp::endpoint server, std::string token);

  // One at a time. Connects first where there is no connection.
  void Post(const std::string& target, std::string body, Heard heard);

 private:
  using Stream = boost::beast::ssl_stream<boost::beast::tcp_stream>;
  using Code = boost::beast::error_code;

  void Connect();
  void Write();
  void Read();
  void End(unsigned status);

  boost::asio::io_context& io_;
  boost::asio::ssl::context& tls_;
  const boost::asio::ip::tcp::endpoint server_;
  const std::string token_;
  std::unique_ptr<Stream> stream_;
  boost::beast::flat_buffer buffer_;
  boost::beast::http::request<boost::beast::http::string_body> request_;
  // Its bound is that of the protocol's bodies.
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  Heard heard_;
};

}  // namespace parallelrun::bench
