// For tests of the HTTP server and client: a server on its own loop and thread, a raw socket to
// talk to it, and certificates.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "tests/support/temp_folder.h"

namespace parallelrun {

constexpr int kPatienceMs = 60'000;  // no test waits for anything longer
constexpr const char* kGet = "GET /a?q=1 HTTP/1.1\r\nHost: x\r\n\r\n";

inline sockaddr_in6 Ipv6Loopback(uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(port);
  address.sin6_addr = in6addr_loopback;
  return address;
}

inline bool HasIpv6Loopback() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in6 any_port = Ipv6Loopback(0);
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&any_port), sizeof(any_port)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

class RawClient {
 public:
  explicit RawClient(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int rc = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    EXPECT_EQ(rc, 0) << "connect to port " << port;
  }
  explicit RawClient(const sockaddr_in6& address)
      : fd_(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int rc = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    EXPECT_EQ(rc, 0) << "connect to [::1]:" << ntohs(address.sin6_port);
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void Send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // the server may close early; what it said is what matters
      text.remove_prefix(static_cast<size_t>(n));
    }
  }
  // One response, by its Content-Length; what was read if the connection ends before.
  std::string ReadResponse() {
    while (true) {
      const size_t head = pending_.find("\r\n\r\n");
      if (head != std::string::npos) {
        size_t size = head + 4;
        const size_t length = pending_.find("Content-Length: ");
        if (length < head) size += std::stoul(pending_.substr(length + 16));
        if (pending_.size() >= size) {
          std::string response = pending_.substr(0, size);
          pending_.erase(0, size);
          return response;
        }
      }
      if (!ReadSome()) return std::exchange(pending_, {});
    }
  }
  // Everything until the server closes.
  std::string ReadToEnd() {
    while (ReadSome()) {
    }
    return std::exchange(pending_, {});
  }

 private:
  bool ReadSome() {
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, kPatienceMs) != 1) {
      ADD_FAILURE() << "the server neither answered nor closed";
      return false;
    }
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) return false;
    pending_.append(buffer, static_cast<size_t>(n));
    return true;
  }

  int fd_;
  std::string pending_;
};

// Runs its server on a thread of its own. The default gate admits 1000 bytes, and refuses "/deny"
// with 401; the default handler answers "METHOD path?query body".
class TestServer {
 public:
  explicit TestServer(const HttpServerOptions& options = {},
                      const HttpServer::Handler& handler = &Echo)
      : thread_([this, options, handler] {
          auto server = HttpServer::Start(
              loop_, options,
              [](const HttpRequest& request) -> std::variant<size_t, HttpResponse> {
                if (request.path == "/deny") return TextResponse(401, "who are you?");
                return size_t{1000};
              },
              handler);
          if (!server.ok()) {
            ADD_FAILURE() << server.error().message;
            started_.set_value(0);
            return;
          }
          server_ = std::move(*server);
          started_.set_value(server_->port());
          loop_.Run();
          server_.reset();
        }) {
    port_ = started_.get_future().get();
  }
  ~TestServer() {
    loop_.Stop();
    thread_.join();
  }

  uint16_t port() const { return port_; }
  EventLoop& loop() { return loop_; }
  // On the loop's thread only.
  HttpServer& server() { return *server_; }

  // Runs `f` on the loop's thread and waits for it.
  template <typename F>
  auto OnLoop(F f) {
    std::promise<decltype(f())> result;
    loop_.Post([&] { result.set_value(f()); });
    return result.get_future().get();
  }

  static void Echo(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& r = exchange->request();
    exchange->Respond(TextResponse(200, r.method + " " + r.path + "?" + r.query + " " + r.body));
  }

 private:
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::promise<uint16_t> started_;
  uint16_t port_ = 0;
  std::thread thread_;
};

// A self-signed ECDSA P-256 certificate for 127.0.0.1, or another subject, and its key, as PEM.
struct TestCertificate {
  std::string certificate;
  std::string key;

  explicit TestCertificate(const char* subject = "IP:127.0.0.1") {
    EVP_PKEY* pkey = EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pkey);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_EXTENSION* san = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, subject);
    X509_add_ext(x509, san, -1);
    X509_EXTENSION_free(san);
    X509_sign(x509, pkey, EVP_sha256());
    certificate = Pem([x509](BIO* bio) { PEM_write_bio_X509(bio, x509); });
    key = Pem([pkey](BIO* bio) {
      PEM_write_bio_PrivateKey(bio, pkey, nullptr, nullptr, 0, nullptr, nullptr);
    });
    X509_free(x509);
    EVP_PKEY_free(pkey);
  }

 private:
  template <typename Write>
  static std::string Pem(Write write) {
    BIO* bio = BIO_new(BIO_s_mem());
    write(bio);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(bio);
    return text;
  }
};

// A folder with "tls.crt" and "tls.key".
class TlsFolder {
 public:
  explicit TlsFolder(const TestCertificate& pair) {
    std::ofstream(folder_ + "/tls.crt") << pair.certificate;
    std::ofstream(folder_ + "/tls.key") << pair.key;
  }
  HttpServerOptions Options() const {
    HttpServerOptions options;
    options.tls_chain_file = folder_ + "/tls.crt";
    options.tls_key_file = folder_ + "/tls.key";
    return options;
  }
  const std::string& folder() const { return folder_; }

 private:
  const TempFolder temp_;
  const std::string folder_ = temp_.path();
};

}  // namespace parallelrun
