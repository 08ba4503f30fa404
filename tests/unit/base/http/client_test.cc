// The client, and TLS between it and the server.
#include "base/http/client.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>
#include <sys/inotify.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <future>
#include <mutex>

#include "base/fd.h"
#include "base/http/thread.h"
#include "tests/unit/base/http/fixture.h"
#include "tests/unit/kube/scripted_server.h"

namespace parallelrun {
namespace {

class HttpClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InitHttpClientThread(); }

  static std::unique_ptr<HttpClient> Client(uint16_t port, const std::string& ca = "",
                                            const std::string& token = "") {
    HttpClientOptions options;
    options.base_url =
        (ca.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") + std::to_string(port);
    options.ca_pem = ca;
    options.user_agent = "test/1";
    options.token = [token] { return token; };
    auto client = HttpClient::Make(options);
    EXPECT_TRUE(client.ok());
    return std::move(*client);
  }
  static HttpRequest Post(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    return request;
  }
};

TEST_F(HttpClientTest, SendsAndReceives) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& r = exchange->request();
    HttpResponse response = TextResponse(
        r.path == "/missing" ? 404 : 200,
        r.method + " " + r.query + " " + r.body + " " + std::string(r.Header("Authorization")) +
            " " + std::string(r.Header("User-Agent")) + " " + std::string(r.Header("X-A")));
    response.headers.push_back({"X-B", "b"});
    exchange->Respond(std::move(response));
  });
  const auto client = Client(server.port(), "", "secret");
  HttpRequest request = Post("/x%20y", "hello");
  request.query = "q=%26";
  request.headers.push_back({"X-A", "a"});
  const auto response = client->Send(request, seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POST q=%26 hello Bearer secret test/1 a");
  EXPECT_EQ(response->Header("x-b"), "b");
  EXPECT_EQ(response->content_type, "text/plain; charset=utf-8");
  const auto missing = client->Send(Post("/missing", ""), seconds(60));
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->status, 404);
}

TEST_F(HttpClientTest, ReusesItsConnection) {
  TestServer server;
  const auto client = Client(server.port());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client->Send(Post("/", ""), seconds(60)).ok());
  // Not always 1: a connection goes back to the pool a little after the answer is out.
  EXPECT_LE(server.OnLoop([&] { return server.server().connections(); }), 3u);
}

TEST_F(HttpClientTest, AsksNothingAfterItIsDestroyed) {
  std::promise<void> go;
  std::promise<void> over;
  PostToHttpThread([wait = go.get_future().share()] { wait.wait(); });
  std::atomic<int> questions = 0;
  {
    HttpClientOptions options;
    options.base_url = "https://127.0.0.1:1";
    options.tls = [&questions] {
      ++questions;
      return HttpTls();
    };
    auto client = HttpClient::Make(options);
    ASSERT_TRUE(client.ok());
    // It is given up before the thread of all connections comes to it.
    EXPECT_EQ((*client)->Send(Post("/", ""), Duration(0)).error().code, Code::kTimeout);
  }
  PostToHttpThread([&over] { over.set_value(); });
  go.set_value();
  over.get_future().wait();
  EXPECT_EQ(questions, 0);
}

TEST_F(HttpClientTest, CarriesBinaryBodiesOfAnySize) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response;
    response.content_type = "application/octet-stream";
    for (int i = 0; i < 3'000'000; ++i) response.body.push_back(static_cast<char>(i * 7));
    exchange->Respond(std::move(response));
  });
  const auto response =
      Client(server.port())->Send(Post("/", std::string("\0\xff\r\n", 4)), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->body.size(), 3'000'000u);
  EXPECT_EQ(response->body[2'999'999], static_cast<char>(2'999'999 * 7));
}

TEST_F(HttpClientTest, DeadlineIsKept) {
  std::shared_ptr<HttpExchange> parked;
  TestServer server({}, [&](const auto& exchange) { parked = exchange; });
  const auto client = Client(server.port());
  const auto begin = std::chrono::steady_clock::now();
  const auto response = client->Send(Post("/", ""), milliseconds(100));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kTimeout) << response.error().message;
  EXPECT_GE(took, milliseconds(100));
  EXPECT_LT(took, seconds(25)) << "silence ends a call after 30";
  // The connection was closed, and the server saw it.
  while (server.OnLoop([&] { return server.server().connections(); }) != 0) {
  }
  server.OnLoop([&] { return parked.reset(), 0; });
}

TEST_F(HttpClientTest, CancelEndsCallsInFlightAndLaterOnes) {
  std::promise<void> arrived;
  std::vector<std::shared_ptr<HttpExchange>> parked;
  TestServer server({}, [&](const auto& exchange) {
    parked.push_back(exchange);
    if (parked.size() == 2) arrived.set_value();
  });
  const auto client = Client(server.port());
  const auto send = [&] { return client->Send(Post("/", ""), seconds(60)); };
  auto a = std::async(std::launch::async, send);
  auto b = std::async(std::launch::async, send);
  arrived.get_future().get();
  client->Cancel();
  for (auto* call : {&a, &b}) {
    const auto response = call->get();
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, Code::kUnavailable);
  }
  EXPECT_EQ(send().error().code, Code::kUnavailable);
  server.OnLoop([&] { return parked.clear(), 0; });
}

TEST_F(HttpClientTest, RefusedAndBrokenConnectionsAreUnavailable) {
  // A port that is taken, so that nobody else listens there meanwhile, and not listened on.
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const uint16_t port = ntohs(address.sin_port);
  const auto refused = Client(port)->Send(Post("/", ""), seconds(60));
  close(taken);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnavailable) << refused.error().message;
  EXPECT_NE(refused.error().message.find(std::to_string(port)), std::string::npos);

  std::shared_ptr<HttpExchange> kept;
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    kept = exchange;
    server.server().Drain(Duration(0), [] {});
  });
  const auto broken = Client(server.port())->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, Code::kUnavailable) << broken.error().message;
  server.OnLoop([&] { return kept.reset(), 0; });
}

TEST_F(HttpClientTest, RedirectsAreNotFollowed) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response = TextResponse(302, "");
    response.headers.push_back({"Location", "/elsewhere"});
    exchange->Respond(std::move(response));
  });
  const auto response = Client(server.port())->Send(Post("/", ""), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 302);
}

TEST_F(HttpClientTest, RefusesRequestsThatWouldBreakTheMessage) {
  TestServer server;
  const auto client = Client(server.port());
  EXPECT_EQ(client->Send(Post("/a b", ""), seconds(1)).error().code, Code::kInvalid);
  EXPECT_EQ(client->Send(Post("a", ""), seconds(1)).error().code, Code::kInvalid);
  HttpRequest request = Post("/", "");
  request.headers.push_back({"X", "a\r\nY: b"});
  EXPECT_EQ(client->Send(request, seconds(1)).error().code, Code::kInvalid);
  const auto forged = Client(server.port(), "", "t\r\nX: y");
  EXPECT_EQ(forged->Send(Post("/", ""), seconds(1)).error().code, Code::kInvalid);
}

TEST_F(HttpClientTest, MakeRefusesWhatCannotWork) {
  for (const char* url : {"", "host", "ftp://x", "http://"}) {
    HttpClientOptions options;
    options.base_url = url;
    EXPECT_FALSE(HttpClient::Make(options).ok()) << url;
  }
  HttpClientOptions options;
  options.base_url = "https://127.0.0.1:1";
  options.ca_pem = "not a certificate";
  EXPECT_FALSE(HttpClient::Make(options).ok());
}

TEST_F(HttpClientTest, TlsRoundTrip) {
  const TestCertificate pair;
  const TlsFolder folder(pair);
  TestServer server(folder.Options());
  const auto client = Client(server.port(), pair.certificate);
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send(Post("/a", std::string(900, 'x')), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "POST /a? " + std::string(900, 'x'));
  }
  RawClient plain(server.port());
  plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadToEnd().find("HTTP/1.1"), std::string::npos);
}

class Ipv6ClientTest : public HttpClientTest {
 protected:
  void SetUp() override {
    if (!HasIpv6Loopback()) GTEST_SKIP() << "this machine has no ::1";
  }
  static HttpServerOptions Loopback(HttpServerOptions options = {}) {
    options.host = "::1";
    return options;
  }
  static void AnswerHost(const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Respond(TextResponse(200, std::string(exchange->request().Header("Host"))));
  }
  // Of a server whose certificate is `pair`, if there is one.
  static Result<HttpResponse> Ask(uint16_t port, const TestCertificate* pair = nullptr,
                                  const std::string& verify_host = "") {
    HttpClientOptions options;
    options.base_url = fmt::format("{}://[::1]:{}", pair == nullptr ? "http" : "https", port);
    if (pair != nullptr) options.ca_pem = pair->certificate;
    options.verify_host = verify_host;
    return (*HttpClient::Make(options))->Send(Post("/", ""), seconds(60));
  }
};

TEST_F(Ipv6ClientTest, AnAddressInBracketsIsReached) {
  TestServer server(Loopback(), &AnswerHost);
  const auto response = Ask(server.port());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, fmt::format("[::1]:{}", server.port()));
}

TEST_F(Ipv6ClientTest, TheCertificateMustCarryTheAddress) {
  const TestCertificate right("IP:::1"), wrong("IP:::2");
  const TlsFolder right_folder(right), wrong_folder(wrong);
  TestServer good(Loopback(right_folder.Options()));
  const auto response = Ask(good.port(), &right);
  ASSERT_TRUE(response.ok()) << response.error().message;
  TestServer bad(Loopback(wrong_folder.Options()));
  EXPECT_EQ(Ask(bad.port(), &wrong).error().code, Code::kUnavailable);
}

TEST_F(Ipv6ClientTest, OrTheNameToVerify) {
  const TestCertificate named("DNS:coordinator.default.svc");
  const TlsFolder folder(named);
  TestServer server(Loopback(folder.Options()), &AnswerHost);
  const auto response = Ask(server.port(), &named, "coordinator.default.svc");
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "coordinator.default.svc");
  EXPECT_EQ(Ask(server.port(), &named).error().code, Code::kUnavailable);
  EXPECT_EQ(Ask(server.port(), &named, "other.svc").error().code, Code::kUnavailable);
}

TEST_F(HttpClientTest, OnlyTheGivenCaIsTrusted) {
  const TestCertificate pair, other;
  const TlsFolder folder(pair);
  bool handled = false;
  TestServer server(folder.Options(), [&](const auto&) { handled = true; });
  const auto response = Client(server.port(), other.certificate)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_FALSE(server.OnLoop([&] { return handled; }));
}

// The system's certificates, while this lives: this one.
class SystemCertificates {
 public:
  SystemCertificates(const TlsFolder& folder, const std::string& certificate)
      : opened_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    const std::string file = folder.folder() + "/system.crt";
    std::ofstream(file) << certificate;
    setenv("SSL_CERT_FILE", file.c_str(), 1);
    EXPECT_GE(inotify_add_watch(opened_.get(), file.c_str(), IN_OPEN), 0);
  }
  ~SystemCertificates() { unsetenv("SSL_CERT_FILE"); }
  SystemCertificates(const SystemCertificates&) = delete;
  SystemCertificates& operator=(const SystemCertificates&) = delete;

  bool WereRead() const {
    std::array<char, 4096> event{};
    return read(opened_.get(), event.data(), event.size()) > 0;
  }

 private:
  const Fd opened_;
};

TEST_F(HttpClientTest, WithoutACaTheSystemsAreTrusted) {
  const TestCertificate pair;
  const TlsFolder folder(pair);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, pair.certificate);
  HttpClientOptions options;
  options.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  const auto client = HttpClient::Make(options);
  ASSERT_TRUE(client.ok());
  const auto response = (*client)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_TRUE(system.WereRead());
}

TEST_F(HttpClientTest, WithACaTheSystemsAreNotEvenRead) {
  const TestCertificate pair;
  const TlsFolder folder(pair);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, pair.certificate);
  const auto response = Client(server.port(), pair.certificate)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_FALSE(system.WereRead());
}

TEST_F(HttpClientTest, TlsServerNoticesAParkedClientThatGoes) {
  const TestCertificate pair;
  const TlsFolder folder(pair);
  std::promise<void> came, gone;
  std::shared_ptr<HttpExchange> parked;
  TestServer server(folder.Options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    parked = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    came.set_value();
  });
  const auto client = Client(server.port(), pair.certificate);
  auto response =
      std::async(std::launch::async, [&] { return client->Send(Post("/", ""), seconds(60)); });
  came.get_future().get();
  client->Cancel();
  EXPECT_FALSE(response.get().ok());
  gone.get_future().get();
  server.OnLoop([&] { return parked.reset(), 0; });
}

TEST_F(HttpClientTest, ABadKeyIsNamed) {
  const TestCertificate pair, other;
  const TlsFolder folder(pair);
  std::ofstream(folder.folder() + "/tls.key") << other.key;
  EventLoop loop;
  const auto server = HttpServer::Start(loop, folder.Options(), nullptr, nullptr);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("tls.key"), std::string::npos) << server.error().message;
}

// What every test of streams does: GET / on a server that plays `script`.
class HttpStreamTest : public HttpClientTest {
 protected:
  Result<std::unique_ptr<HttpStream>> Open(ScriptedServer& server) {
    HttpClientOptions options;
    options.base_url = server.url();
    options.ca_pem = pair_.certificate;
    client_ = std::move(*HttpClient::Make(options));
    HttpRequest request;
    request.path = "/";
    return client_->Open(request, seconds(50));
  }
  const TestCertificate pair_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(HttpStreamTest, BytesComeAsTheyAreSentAndTheEndIsTold) {
  std::promise<void> first_read;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    connection.Chunk("one");
    first_read.get_future().wait();  // the rest only once the first piece has arrived
    connection.Chunk("two");
    connection.EndStream();
    connection.WaitForClient();
  });
  const auto stream = Open(server);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  EXPECT_EQ((*stream)->head().status, 200);
  EXPECT_EQ((*stream)->head().content_type, "application/json");
  std::string text;
  ASSERT_EQ(*(*stream)->Read(text, seconds(60)), 3u);
  first_read.set_value();
  while (true) {
    const auto more = (*stream)->Read(text, seconds(60));
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (*more == 0) break;
  }
  EXPECT_EQ(text, "onetwo");
}

TEST_F(HttpStreamTest, ACutStreamIsAnError) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    connection.Chunk("one");
    connection.Write("10\r\nhalf");
  });
  const auto stream = Open(server);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  std::string text;
  Result<size_t> more = size_t{1};
  while (more.ok() && *more > 0) more = (*stream)->Read(text, seconds(60));
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, Code::kUnavailable) << more.error().message;
}

TEST_F(HttpStreamTest, SilenceIsATimeoutAndDoesNotEndTheStream) {
  std::promise<void> silent;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    silent.get_future().wait();
    connection.Chunk("late");
    connection.WaitForClient();
  });
  const auto stream = Open(server);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  std::string text;
  const auto nothing = (*stream)->Read(text, milliseconds(50));
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().code, Code::kTimeout);
  EXPECT_NE(nothing.error().message.find("50ms"), std::string::npos) << nothing.error().message;
  silent.set_value();
  EXPECT_EQ(*(*stream)->Read(text, seconds(60)), 4u);
}

TEST_F(HttpStreamTest, CancelWakesTheReader) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    connection.WaitForClient();
  });
  const auto stream = Open(server);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  auto reader = std::async(std::launch::async, [&] {
    std::string text;
    return (*stream)->Read(text, seconds(60));
  });
  (*stream)->Cancel();
  EXPECT_EQ(reader.get().error().code, Code::kUnavailable);
  // A client that goes cancels its streams too.
  const auto other = Open(server);
  ASSERT_TRUE(other.ok());
  client_.reset();
  std::string text;
  EXPECT_EQ((*other)->Read(text, seconds(60)).error().code, Code::kUnavailable);
}

TEST_F(HttpStreamTest, ASlowReaderSlowsTheSenderDown) {
  constexpr size_t kPieces = 64;  // of 1 MiB: far more than sockets hold
  std::atomic<size_t> sent{0};
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    const std::string piece(size_t{1} << 20, 'x');
    while (sent < kPieces && connection.Chunk(piece)) ++sent;
    connection.EndStream();
    connection.WaitForClient();
  });
  const auto stream = Open(server);
  ASSERT_TRUE(stream.ok()) << stream.error().message;
  std::string text;
  size_t total = 0;
  size_t seen = 0;
  while (true) {
    text.clear();
    const auto more = (*stream)->Read(text, seconds(30));
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (*more == 0) break;
    total += *more;
    seen = std::max(seen, text.size());
  }
  EXPECT_EQ(total, kPieces << 20);
  EXPECT_LE(seen, size_t{3} << 20);  // what waited at most: the limit and the piece that broke it
}

TEST_F(HttpStreamTest, AStreamThatIsDroppedUnreadClosesItsConnection) {
  std::promise<void> closed;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    const std::string piece(size_t{1} << 20, 'x');
    while (connection.Chunk(piece)) {
    }
    closed.set_value();
  });
  {
    const auto stream = Open(server);
    ASSERT_TRUE(stream.ok()) << stream.error().message;
  }
  closed.get_future().get();
}

TEST_F(HttpStreamTest, AnAnswerOverTheLimitIsRefusedAlsoWithoutALength) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    while (connection.Chunk(std::string(100'000, 'x'))) {
    }
  });
  HttpClientOptions options;
  options.base_url = server.url();
  options.ca_pem = pair_.certificate;
  options.max_response_bytes = 1'000'000;
  const auto client = HttpClient::Make(options);
  const auto response = (*client)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.error().message.find("larger than 1000000"), std::string::npos)
      << response.error().message;
}

TEST_F(HttpStreamTest, TheNameToVerifyReplacesTheHostOfTheUrl) {
  const TestCertificate named("DNS:coordinator.default.svc");
  std::mutex mutex;
  std::string request;
  ScriptedServer server(named, [&](ScriptedConnection& connection) {
    const std::string text = connection.ReadRequest();
    const std::lock_guard lock(mutex);
    request = text;
    connection.Respond(200, "{}");
    connection.WaitForClient();
  });
  HttpClientOptions options;
  options.base_url = server.url();
  options.ca_pem = named.certificate;
  options.verify_host = "coordinator.default.svc";
  const auto good = (*HttpClient::Make(options))->Send(Post("/", ""), seconds(60));
  ASSERT_TRUE(good.ok()) << good.error().message;
  {
    const std::lock_guard lock(mutex);
    EXPECT_NE(request.find("Host:coordinator.default.svc\r\n"), std::string::npos) << request;
  }
  for (const char* wrong : {"", "other.default.svc"}) {
    options.verify_host = wrong;
    const auto bad = (*HttpClient::Make(options))->Send(Post("/", ""), seconds(60));
    ASSERT_FALSE(bad.ok()) << wrong;
    EXPECT_EQ(bad.error().code, Code::kUnavailable);
  }
}

TEST_F(HttpStreamTest, AClientCertificateIsShown) {
  const TestCertificate mine, other;
  ScriptedServer server(
      pair_,
      [](ScriptedConnection& connection) {
        connection.ReadRequest();
        connection.Respond(200, "{}");
        connection.WaitForClient();
      },
      mine.certificate);
  HttpClientOptions options;
  options.base_url = server.url();
  for (const auto& [tls, good] :
       {std::pair{HttpTls{pair_.certificate, mine.certificate, mine.key}, true},
        std::pair{HttpTls{pair_.certificate, other.certificate, other.key}, false},
        std::pair{HttpTls{pair_.certificate, mine.certificate, other.key}, false},
        std::pair{HttpTls{pair_.certificate, "", ""}, false},
        std::pair{HttpTls{"no certificate", mine.certificate, mine.key}, false}}) {
    options.tls = [&tls = tls] { return tls; };
    const auto response = (*HttpClient::Make(options))->Send(Post("/", ""), seconds(60));
    EXPECT_EQ(response.ok(), good) << (response.ok() ? "" : response.error().message);
  }
}

TEST_F(HttpStreamTest, ACertificateThatRotatesIsTakenWithTheNextConnection) {
  const TestCertificate next;
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "{}", "Connection: close\r\n");
  });
  std::mutex mutex;
  std::string ca = pair_.certificate;
  HttpClientOptions options;
  options.base_url = server.url();
  options.tls = [&] {
    const std::lock_guard lock(mutex);
    return HttpTls{ca, "", ""};
  };
  const auto client = HttpClient::Make(options);
  EXPECT_TRUE((*client)->Send(Post("/", ""), seconds(60)).ok());
  server.Use(next);
  EXPECT_FALSE((*client)->Send(Post("/", ""), seconds(60)).ok());
  {
    const std::lock_guard lock(mutex);
    ca = next.certificate;
  }
  const auto after = (*client)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(after.ok()) << after.error().message;
}

TEST_F(HttpStreamTest, OpenKeepsItsDeadline) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.WaitForClient();
  });
  HttpClientOptions options;
  options.base_url = server.url();
  options.ca_pem = pair_.certificate;
  const auto client = HttpClient::Make(options);
  const auto stream = (*client)->Open(Post("/", ""), milliseconds(100));
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().code, Code::kTimeout);
}

}  // namespace
}  // namespace parallelrun
