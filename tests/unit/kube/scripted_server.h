// A TLS server on loopback that does what a test's script says, byte by byte, for the faults that a
// real API server does not produce. One thread a connection.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
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
#include <vector>

#include "tests/unit/base/http/fixture.h"

namespace parallelrun::kube {

// One connection, in the hands of the script.
class ScriptedConnection {
 public:
  explicit ScriptedConnection(SSL* ssl) : ssl_(ssl) {}

  // Head and body of the next request; "" when the client has gone.
  std::string ReadRequest() {
    std::string text;
    size_t size = std::string::npos;
    while (text.size() < size) {
      char buffer[4096];
      const int n = SSL_read(ssl_, buffer, sizeof(buffer));
      if (n <= 0) return "";
      text.append(buffer, static_cast<size_t>(n));
      const size_t head = text.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const size_t length = text.find("Content-Length:");
      size = head + 4 + (length < head ? std::stoul(text.substr(length + 15)) : 0);
    }
    return text;
  }
  bool Write(std::string_view text) {
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) > 0;
  }
  void Respond(int status, const std::string& body, const std::string& headers = "") {
    Write("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
          headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void BeginStream() {
    Write(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
  }
  bool Chunk(std::string_view text) {
    char size[32];
    snprintf(size, sizeof(size), "%zx\r\n", text.size());
    return Write(size + std::string(text) + "\r\n");
  }
  void EndStream() { Write("0\r\n\r\n"); }
  // Blocks until the client closes the connection, or the server is destroyed.
  void WaitForClient() {
    char byte = 0;
    while (SSL_read(ssl_, &byte, 1) > 0) {
    }
  }

 private:
  SSL* ssl_;
};

class ScriptedServer {
 public:
  // Called for each connection; the connection closes, without a goodbye, when it returns.
  using Script = std::function<void(ScriptedConnection&)>;

  // `client_ca`: asks for a client certificate that it signed.
  ScriptedServer(const TestCertificate& pair, Script script, std::string client_ca = "")
      : script_(std::move(script)), client_ca_(std::move(client_ca)) {
    Use(pair);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    }
    for (std::thread& thread : threads_) thread.join();
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_; }
  // The certificate of later connections.
  void Use(const TestCertificate& pair) {
    const std::lock_guard lock(mutex_);
    pair_ = pair;
  }

 private:
  void Accept() {
    while (true) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      threads_.emplace_back([this, fd, pair = pair_] { Serve(fd, pair); });
    }
  }

  void Serve(int fd, const TestCertificate& pair) {
    // OpenSSL writes without MSG_NOSIGNAL, and clients leave when they like.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    SSL_CTX* context = SSL_CTX_new(TLS_server_method());
    const auto bio = [](const std::string& pem) {
      return BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
    };
    BIO* in = bio(pair.certificate);
    X509* certificate = PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, certificate);
    X509_free(certificate);
    BIO_free(in);
    in = bio(pair.key);
    EVP_PKEY* key = PEM_read_bio_PrivateKey(in, nullptr, nullptr, nullptr);
    SSL_CTX_use_PrivateKey(context, key);
    EVP_PKEY_free(key);
    BIO_free(in);
    if (!client_ca_.empty()) {
      in = bio(client_ca_);
      X509* ca = PEM_read_bio_X509(in, nullptr, nullptr, nullptr);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
      X509_free(ca);
      BIO_free(in);
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    SSL* ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1) {
      ++connections_;
      ScriptedConnection connection(ssl);
      script_(connection);
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    const std::lock_guard lock(mutex_);
    open_.remove(fd);
    close(fd);
  }

  const Script script_;
  const std::string client_ca_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread thread_;
  std::mutex mutex_;  // guards what follows
  TestCertificate pair_;
  std::list<int> open_;
  std::list<std::thread> threads_;
};

}  // namespace parallelrun::kube
