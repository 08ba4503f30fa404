// What goes wrong between the client and a server: connections that are closed or lead nowhere,
// silence, answers that are cut, too large or no answers at all.
#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <atomic>
#include <future>
#include <latch>

#include "tests/unit/base/http/client_fixture.h"

namespace parallelrun {
namespace {

class HttpClientFaultsTest : public HttpClientTest {
 protected:
  static HttpClientOptions Options(const PlainServer& server) {
    HttpClientOptions options;
    options.base_url = server.url();
    return options;
  }
  // What a GET comes to when the server answers these bytes, and then closes.
  static Result<HttpResponse> Answered(const std::string& bytes,
                                       const std::string& method = "GET") {
    PlainServer server([&](PlainConnection& connection) {
      connection.ReadRequest();
      connection.Write(bytes);
    });
    return Make(Options(server))->Send(Request(method, "/"), seconds(60));
  }
  static void ExpectError(const Result<HttpResponse>& response, Code code, const char* words) {
    ASSERT_FALSE(response.ok()) << response->status << response->body;
    EXPECT_EQ(response.error().code, code) << response.error().message;
    EXPECT_NE(response.error().message.find(words), std::string::npos) << response.error().message;
  }
};

// --- Kept connections

TEST_F(HttpClientFaultsTest, OneThatTheServerClosedMeanwhileIsNotUsed) {
  std::latch closed(1);
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, std::to_string(connection.number()));
    if (connection.number() > 0) return connection.WaitForClient();
    shutdown(connection.fd(), SHUT_RDWR);  // the end is with the client when this returns
    closed.count_down();
  });
  const auto client = Make(Options(server));
  EXPECT_EQ(client->Send(Post("/", ""), seconds(60))->body, "0");
  closed.wait();
  // A POST, which is never sent twice: the end was seen before anything was sent.
  const auto second = client->Send(Post("/", ""), seconds(60));
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(second->body, "1");
}

// Answers the first request of the first connection, and closes when the second has come there: the
// client cannot know whether it was carried out.
void CloseAtTheSecond(PlainConnection& connection) {
  connection.ReadRequest();
  connection.Respond(200, std::to_string(connection.number()));
  connection.ReadRequest();
}

TEST_F(HttpClientFaultsTest, ARequestThatMayBeRepeatedIsSentOnceMore) {
  PlainServer server(CloseAtTheSecond);
  const auto client = Make(Options(server));
  for (const char* method : {"GET", "PUT", "DELETE"}) {
    const auto response = client->Send(Request(method, "/", "x"), seconds(60));
    EXPECT_TRUE(response.ok()) << method << response.error().message;
  }
  EXPECT_EQ(server.connections(), 3);
}

TEST_F(HttpClientFaultsTest, APostIsNotSentTwice) {
  PlainServer server(CloseAtTheSecond);
  const auto client = Make(Options(server));
  EXPECT_TRUE(client->Send(Post("/", ""), seconds(60)).ok());
  ExpectError(client->Send(Post("/", ""), seconds(60)), Code::kUnavailable,
              "the server closed the connection");
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientFaultsTest, UnlessItsClientSaysThatItMayBe) {
  PlainServer server(CloseAtTheSecond);
  HttpClientOptions options = Options(server);
  options.repeat_posts = true;
  const auto client = Make(options);
  EXPECT_TRUE(client->Send(Post("/", ""), seconds(60)).ok());
  EXPECT_EQ(client->Send(Post("/", ""), seconds(60))->body, "1");
}

TEST_F(HttpClientFaultsTest, ANewConnectionThatBreaksIsNotTriedAgain) {
  PlainServer server([](PlainConnection& connection) { connection.ReadRequest(); });
  ExpectError(Make(Options(server))->Send(Get(), seconds(60)), Code::kUnavailable,
              "the server closed the connection");
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientFaultsTest, AnAnswerThatBeganIsNotAskedForAgain) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "");
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Le");
  });
  const auto client = Make(Options(server));
  EXPECT_TRUE(client->Send(Get(), seconds(60)).ok());
  ExpectError(client->Send(Get(), seconds(60)), Code::kUnavailable, "within its answer");
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientFaultsTest, WhatTheServerWantsClosedIsNotKept) {
  for (const char* head : {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                           "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                           "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n"}) {
    PlainServer server([&](PlainConnection& connection) {
      connection.ReadRequest();
      connection.Write(head);
      connection.WaitForClient();
    });
    const auto client = Make(Options(server));
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(client->Send(Get(), seconds(60)).ok()) << head;
    EXPECT_EQ(server.connections(), 2) << head;
  }
}

TEST_F(HttpClientFaultsTest, ConnectionsAreBoundedAndWaitedFor) {
  std::atomic<int> open = 0;
  std::atomic<int> most = 0;
  std::latch two(2);
  PlainServer server([&](PlainConnection& connection) {
    for (int i = 0; !connection.ReadRequest().empty(); ++i) {
      most = std::max(most.load(), ++open);
      if (i == 0) two.arrive_and_wait();  // both are in use before either is free
      --open;
      connection.Respond(200, "");
    }
  });
  HttpClientOptions options = Options(server);
  options.max_connections = 2;
  const auto client = Make(options);
  std::vector<std::future<Result<HttpResponse>>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(
        std::async(std::launch::async, [&] { return client->Send(Get(), seconds(60)); }));
  }
  for (auto& call : calls) EXPECT_TRUE(call.get().ok());
  EXPECT_EQ(most, 2);
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(HttpClientFaultsTest, WhoGetsNoConnectionIsTold) {
  std::promise<void> come;
  std::atomic<bool> first_here = false;  // the one that waits may get a connection of its own
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    if (!first_here.exchange(true)) come.set_value();
    connection.WaitForClient();
  });
  HttpClientOptions options = Options(server);
  options.max_connections = 1;
  const auto client = Make(options);
  auto first = std::async(std::launch::async, [&] { return client->Send(Get(), seconds(60)); });
  come.get_future().get();
  ExpectError(client->Send(Get(), milliseconds(20)), Code::kTimeout,
              "all 1 connections are in use");
  auto waiting = std::async(std::launch::async, [&] { return client->Send(Get(), seconds(60)); });
  client->Cancel();
  EXPECT_EQ(first.get().error().code, Code::kUnavailable);
  EXPECT_EQ(waiting.get().error().code, Code::kUnavailable);
}

// --- Silence

// Takes no connection: the kernel lets one in and drops the rest.
class DeafServer {
 public:
  DeafServer()
      : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        first_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 0), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    EXPECT_EQ(connect(first_, reinterpret_cast<sockaddr*>(&address), size), 0);
    while (Waiting() == 0) {  // which may be a moment later, on a busy machine
    }
  }
  ~DeafServer() {
    close(first_);
    close(listener_);
  }
  DeafServer(const DeafServer&) = delete;
  DeafServer& operator=(const DeafServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  // Connections that the kernel has let in, and nobody has taken.
  uint32_t Waiting() const {
    tcp_info info{};
    socklen_t size = sizeof(info);
    EXPECT_EQ(getsockopt(listener_, IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_unacked;  // of a socket that listens
  }

  const int listener_;
  const int first_;
  uint16_t port_ = 0;
};

TEST_F(HttpClientFaultsTest, ToConnectHasItsTime) {
  const DeafServer server;
  HttpClientOptions options;
  options.base_url = server.url();
  options.connect_timeout = milliseconds(50);
  ExpectError(Make(options)->Send(Get(), seconds(60)), Code::kTimeout, "connect to 127.0.0.1:");
}

TEST_F(HttpClientFaultsTest, TheDeadlineHoldsForConnectingToo) {
  const DeafServer server;
  HttpClientOptions options;
  options.base_url = server.url();
  ExpectError(Make(options)->Send(Get(), milliseconds(50)), Code::kTimeout, "no connection within");
}

TEST_F(HttpClientFaultsTest, ToConnectIsCancelled) {
  const DeafServer server;
  std::promise<void> asked;
  HttpClientOptions options;
  options.base_url = server.url();
  options.connect_timeout = seconds(60);
  options.token = [&] {
    asked.set_value();
    return std::string();
  };
  const auto client = Make(options);
  auto call = std::async(std::launch::async, [&] { return client->Send(Get(), seconds(60)); });
  asked.get_future().get();
  client->Cancel();
  ExpectError(call.get(), Code::kUnavailable, "cancelled");
}

TEST_F(HttpClientFaultsTest, TheFirstByteHasItsTime) {
  PlainServer server([](PlainConnection& connection) { connection.WaitForClient(); });
  HttpClientOptions options = Options(server);
  options.first_byte_timeout = milliseconds(50);
  ExpectError(Make(options)->Send(Get(), seconds(60)), Code::kTimeout, "no answer for 50ms");
}

TEST_F(HttpClientFaultsTest, AndEachByteOfTheAnswer) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    connection.WaitForClient();
  });
  HttpClientOptions options = Options(server);
  options.idle_timeout = milliseconds(50);
  ExpectError(Make(options)->Send(Get(), seconds(60)), Code::kTimeout,
              "no byte of the answer for 50ms");
}

TEST_F(HttpClientFaultsTest, AndEachByteOfTheRequest) {
  std::promise<void> over;
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadHead();
    over.get_future().wait();  // takes nothing of the body
  });
  HttpClientOptions options = Options(server);
  options.idle_timeout = milliseconds(50);
  const std::string body(size_t{32} << 20, 'x');  // far more than sockets hold
  ExpectError(Make(options)->Send(Request("PUT", "/", body), seconds(60)), Code::kTimeout,
              "the server took no byte for 50ms");
  over.set_value();
}

TEST_F(HttpClientFaultsTest, AServerThatNeverPausesIsEndedByTheDeadline) {
  std::atomic<uint64_t> written = 0;
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "");
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
    const std::string piece(1000, 'x');
    while (connection.Write(piece)) written += piece.size();
  });
  const auto client = Make(Options(server));
  // Its connection is kept: else, on a busy machine, it may be this one that takes all the time.
  ASSERT_TRUE(client->Send(Get(), seconds(60)).ok());
  HttpCall call;
  call.request = Get();
  call.sink = [&, taken = uint64_t{0}](std::string_view piece) mutable {
    taken += piece.size();
    while (written <= taken) std::this_thread::yield();  // more is there whenever the client looks
    return Status();
  };
  call.max_sink_bytes = uint64_t{1} << 50;
  ExpectError(client->Send(call, milliseconds(100)), Code::kTimeout, "no answer within 100ms");
}

TEST_F(HttpClientFaultsTest, AnAnswerIsCancelledInItsMiddle) {
  std::promise<void> begun;
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    connection.WaitForClient();
  });
  HttpCall call;
  call.request = Get();
  call.sink = [&](std::string_view) {
    begun.set_value();
    return Status();
  };
  call.max_sink_bytes = 100;
  const auto client = Make(Options(server));
  auto response = std::async(std::launch::async, [&] { return client->Send(call, seconds(60)); });
  begun.get_future().get();
  client->Cancel();
  ExpectError(response.get(), Code::kUnavailable, "cancelled");
}

TEST_F(HttpClientFaultsTest, ATimeoutClosesTheIdleOnesToo) {
  // Each connection answers once, and then never again: its pod is gone, say.
  std::latch two(2);
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    if (connection.number() < 2) two.arrive_and_wait();  // so that there are two
    connection.Respond(200, std::to_string(connection.number()));
    connection.WaitForClient();
  });
  const auto client = Make(Options(server));
  auto other = std::async(std::launch::async, [&] { return client->Send(Get(), seconds(60)); });
  EXPECT_TRUE(client->Send(Get(), seconds(60)).ok());
  EXPECT_TRUE(other.get().ok());
  ExpectError(client->Send(Get(), milliseconds(50)), Code::kTimeout, "no answer within 50ms");
  const auto next = client->Send(Get(), seconds(60));
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(next->body, "2");
}

// --- Answers

TEST_F(HttpClientFaultsTest, ABodyThatIsCutIsAnError) {
  const char* cut = "within its answer";
  ExpectError(Answered("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), Code::kUnavailable,
              cut);
  ExpectError(Answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
              Code::kUnavailable, cut);
  ExpectError(Answered("HTTP/1.1 200"), Code::kUnavailable, cut);
  ExpectError(Answered(""), Code::kUnavailable, "the server closed the connection");
}

TEST_F(HttpClientFaultsTest, AResetIsAnError) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Reset();
  });
  ExpectError(Make(Options(server))->Send(Get(), seconds(60)), Code::kUnavailable,
              "the server closed the connection");
}

TEST_F(HttpClientFaultsTest, AnAnswerAboveItsBoundIsRefused) {
  PlainServer server([](PlainConnection& connection) {
    const std::string head = connection.ReadRequest();
    if (head.starts_with("GET /known")) {
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n");
      return connection.WaitForClient();
    }
    connection.Write(head.starts_with("GET /head") ? "HTTP/1.1 200 OK\r\n"
                     : head.starts_with("GET /chunks")
                         ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         : "HTTP/1.1 200 OK\r\n\r\n");
    const std::string chunk = "186a0\r\n" + std::string(100'000, 'x') + "\r\n";
    while (connection.Write(head.starts_with("GET /head") ? "X-A: b\r\n" : chunk)) {
    }
  });
  HttpClientOptions options = Options(server);
  options.max_response_bytes = 1'000'000;
  const auto client = Make(options);
  for (const char* path : {"/known", "/chunks", "/end"}) {
    ExpectError(client->Send(Request("GET", path), seconds(60)), Code::kInternal,
                "the answer is larger than 1000000 bytes");
  }
  ExpectError(client->Send(Request("GET", "/head"), seconds(60)), Code::kInternal,
              "the answer's head is larger than");
}

TEST_F(HttpClientFaultsTest, WhatIsNoHttpIsToldSo) {
  for (const char* bytes : {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n",
                            "HTTP/1.1 2 OK\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    ExpectError(Answered(bytes), Code::kUnavailable, "the answer is not HTTP as it should be");
  }
}

}  // namespace
}  // namespace parallelrun
