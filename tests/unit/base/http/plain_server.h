// A server on loopback that does what a test's script says, byte by byte, for the faults that a
// real one does not produce. One thread a connection.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace parallelrun {

// One connection, in the hands of the script.
class PlainConnection {
 public:
  PlainConnection(int fd, int number) : fd_(fd), number_(number) {}

  int fd() const { return fd_; }
  int number() const { return number_; }  // the first one is 0

  // What came up to the end of a head; "" when the client has gone. The body stays unread.
  std::string ReadHead() {
    std::string text;
    char byte = 0;
    while (!text.ends_with("\r\n\r\n")) {
      if (recv(fd_, &byte, 1, 0) <= 0) return "";
      text += byte;
    }
    return text;
  }
  // What came, up to `size` bytes; less when the client has gone.
  std::string Read(size_t size) {
    std::string text(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t n = recv(fd_, text.data() + have, size - have, 0);
      if (n <= 0) break;
      have += static_cast<size_t>(n);
    }
    text.resize(have);
    return text;
  }
  // Head and body; "" when the client has gone.
  std::string ReadRequest() {
    const std::string head = ReadHead();
    const size_t length = head.find("Content-Length: ");
    return length == std::string::npos ? head : head + Read(std::stoul(head.substr(length + 16)));
  }
  bool Write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  void Respond(int status, const std::string& body, const std::string& headers = "") {
    Write("HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
          "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  // Blocks until the client closes the connection, or the server is destroyed.
  void WaitForClient() {
    char bytes[4096];
    while (recv(fd_, bytes, sizeof(bytes), 0) > 0) {
    }
  }
  // The script's return then resets the connection in place of closing it.
  void Reset() {
    const linger hard{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  }

 private:
  const int fd_;
  const int number_;
};

class PlainServer {
 public:
  // Called for each connection, which closes when it returns.
  using Script = std::function<void(PlainConnection&)>;

  explicit PlainServer(Script script)
      : script_(std::move(script)), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~PlainServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  PlainServer(const PlainServer&) = delete;
  PlainServer& operator=(const PlainServer&) = delete;

  uint16_t port() const { return port_; }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }

 private:
  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      threads_.emplace_back([this, fd, number = connections_++] {
        PlainConnection connection(fd, number);
        script_(connection);
        const std::lock_guard done(mutex_);
        open_.remove(fd);
        close(fd);
      });
    }
  }

  const Script script_;
  const int listener_;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  std::list<int> open_;
  std::list<std::thread> threads_;
};

}  // namespace parallelrun
