// Bodies: sent from files, taken by sinks, refused before they were sent.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <vector>

#include "base/fd.h"
#include "tests/unit/base/http/client_fixture.h"

namespace parallelrun {
namespace {

std::string Pattern(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251);
  return text;
}

// A file without a name.
class TestFile {
 public:
  explicit TestFile(const std::string& text = "") : fd_(memfd_create("test", MFD_CLOEXEC)) {
    EXPECT_EQ(write(fd_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int fd() const { return fd_.get(); }
  std::string Text() const {
    std::string text(static_cast<size_t>(lseek(fd_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(fd_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  const Fd fd_;
};

class HttpClientBodiesTest : public HttpClientTest {
 protected:
  static std::unique_ptr<HttpClient> Client(const PlainServer& server) {
    HttpClientOptions options;
    options.base_url = server.url();
    return Make(std::move(options));
  }
  static HttpCall Put(const TestFile& file, uint64_t offset, uint64_t size) {
    HttpCall call;
    call.request = Request("PUT", "/");
    call.file = HttpFileRange{file.fd(), offset, size};
    return call;
  }
  // A GET whose body goes to the file.
  static HttpCall Into(const TestFile& file, uint64_t most) {
    HttpCall call;
    call.request = Get();
    call.sink = [&file](std::string_view bytes) {
      return write(file.fd(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())
                 ? Status()
                 : ErrnoError(errno, "write");
    };
    call.max_sink_bytes = most;
    return call;
  }
};

TEST_F(HttpClientBodiesTest, ARangeOfAFileIsSent) {
  PlainServer server([](PlainConnection& connection) {
    for (std::string text; !(text = connection.ReadRequest()).empty();) {
      connection.Respond(200, text.substr(text.find("\r\n\r\n") + 4));
    }
  });
  const auto client = Client(server);
  const std::string text = Pattern(3'000'000);
  const TestFile file(text);
  for (const auto& [offset, size] : std::vector<std::pair<size_t, size_t>>{
           {0, 3'000'000}, {1, 2'999'999}, {65'536, 65'536}, {65'535, 65'538}, {7, 1}, {9, 0}}) {
    const auto response = client->Send(Put(file, offset, size), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_TRUE(response->body == text.substr(offset, size)) << offset << "+" << size;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientBodiesTest, ARangeIsSentOnceMoreAsAWhole) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "");
    if (connection.number() == 0) {
      connection.ReadHead();  // the body is lost
      return;
    }
    connection.WaitForClient();
  });
  const auto client = Client(server);
  EXPECT_TRUE(client->Send(Get(), seconds(60)).ok());
  const std::string text = Pattern(300'000);
  const TestFile file(text);
  const auto response = client->Send(Put(file, 0, text.size()), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(HttpClientBodiesTest, AFileThatWasCutIsNotSentAsAWholeOne) {
  std::promise<std::string> got;
  PlainServer server([&](PlainConnection& connection) { got.set_value(connection.ReadRequest()); });
  const TestFile file(Pattern(100'000));
  const auto response = Client(server)->Send(Put(file, 0, 100'001), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kInvalid);
  EXPECT_NE(response.error().message.find("ends 1 bytes early"), std::string::npos)
      << response.error().message;
  EXPECT_NE(got.get_future().get().find("Content-Length: 100001\r\n"), std::string::npos);
}

TEST_F(HttpClientBodiesTest, ASinkTakesTheBodyPieceByPiece) {
  const std::string text = Pattern(3'000'000);
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(206, text);
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t at = 0; at < text.size(); at += 1'000'000) {
      connection.Write("f4240;name=value\r\n" + text.substr(at, 1'000'000) + "\r\n");
    }
    connection.Write("0\r\nTrailer: ignored\r\n\r\n");
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\n\r\n" + text);  // its end is that of the connection
  });
  const auto client = Client(server);
  for (int i = 0; i < 3; ++i) {
    const TestFile file;
    const auto response = client->Send(Into(file, 3'000'000), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "");
    EXPECT_TRUE(file.Text() == text) << i;
  }
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(HttpClientBodiesTest, ASinkIsBounded) {
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    if (connection.number() == 0) {
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n");
    } else {
      connection.Write("HTTP/1.1 200 OK\r\n\r\n" + std::string(1001, 'x'));
    }
    connection.WaitForClient();
  });
  const auto client = Client(server);
  for (int i = 0; i < 2; ++i) {
    const TestFile file;
    const auto response = client->Send(Into(file, 1000), seconds(60));
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, Code::kInternal);
    EXPECT_NE(response.error().message.find("larger than 1000 bytes"), std::string::npos)
        << response.error().message;
    EXPECT_LE(file.Text().size(), 1000u);
  }
}

TEST_F(HttpClientBodiesTest, WhatASinkSaysEndsTheCall) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, std::string(1'000'000, 'x'));
    connection.WaitForClient();
  });
  HttpCall call;
  call.request = Get();
  call.max_sink_bytes = 1'000'000;
  call.sink = [](std::string_view) { return Status(Error{Code::kNoSpace, "the disk is full"}); };
  const auto response = Client(server)->Send(call, seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kNoSpace);
  EXPECT_NE(response.error().message.find("the disk is full"), std::string::npos);
}

TEST_F(HttpClientBodiesTest, ARefusalIsNoMatterForTheSink) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Respond(404, "not here");
  });
  const TestFile file;
  const auto response = Client(server)->Send(Into(file, 1000), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 404);
  EXPECT_EQ(response->body, "not here");
  EXPECT_EQ(file.Text(), "");
}

// A sink that waits makes the server wait: nothing piles up on the way.
TEST_F(HttpClientBodiesTest, ASlowSinkSlowsTheServerDown) {
  constexpr size_t kAll = size_t{64} << 20;  // far more than sockets hold
  std::atomic<size_t> sent = 0;
  std::promise<void> full;
  PlainServer server([&](PlainConnection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kAll) + "\r\n\r\n");
    const std::string piece(size_t{1} << 20, 'x');
    int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    while (sent < kAll) {
      const ssize_t n =
          send(connection.fd(), piece.data(), std::min(piece.size(), kAll - sent), flags);
      if (n > 0) {
        sent += static_cast<size_t>(n);
      } else if (flags == MSG_NOSIGNAL) {
        return;
      } else {
        flags = MSG_NOSIGNAL;
        full.set_value();  // the sockets hold no more
      }
    }
  });
  size_t taken = 0;
  HttpCall call;
  call.request = Get();
  call.max_sink_bytes = kAll;
  call.sink = [&](std::string_view bytes) {
    if (taken == 0) {
      full.get_future().wait();
      EXPECT_LT(sent, kAll / 2);
    }
    taken += bytes.size();
    return Status();
  };
  const auto response = Client(server)->Send(call, seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(taken, kAll);
}

TEST_F(HttpClientBodiesTest, AnEarlyRefusalIsTakenAndTheRestNotSent) {
  for (const int status : {413, 503}) {
    std::promise<void> over;
    PlainServer server([&](PlainConnection& connection) {
      connection.ReadHead();
      connection.Respond(status, "no", "Connection: close\r\n");
      over.get_future().wait();  // reads no byte of the body, and does not close
    });
    const std::string body(size_t{32} << 20, 'x');
    const auto response = Client(server)->Send(Request("PUT", "/", body), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->status, status);
    EXPECT_EQ(response->body, "no");
    over.set_value();
  }
}

TEST_F(HttpClientBodiesTest, AlsoFromAServerThatClosesAtOnce) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadHead();
    connection.Respond(503, "later");
    connection.Reset();
  });
  const std::string body(size_t{32} << 20, 'x');
  const auto response = Client(server)->Send(Request("PUT", "/", body), seconds(60));
  // A reset may overtake what was said. But never is it a success, nor a wait.
  if (response.ok()) {
    EXPECT_EQ(response->status, 503);
  } else {
    EXPECT_EQ(response.error().code, Code::kUnavailable) << response.error().message;
  }
}

TEST_F(HttpClientBodiesTest, AndFromOurOwnServer) {
  TestServer server;  // which admits 1000 bytes
  const auto client = HttpClientTest::Client(server.port());
  const auto large = client->Send(Request("PUT", "/", std::string(500'000, 'x')), seconds(60));
  ASSERT_TRUE(large.ok()) << large.error().message;
  EXPECT_EQ(large->status, 413);
  const auto denied = client->Send(Request("PUT", "/deny", std::string(500'000, 'x')), seconds(60));
  ASSERT_TRUE(denied.ok()) << denied.error().message;
  EXPECT_EQ(denied->status, 401);
  EXPECT_TRUE(client->Send(Get(), seconds(60)).ok());
}

TEST_F(HttpClientBodiesTest, ASuccessBeforeTheWholeRequestIsNone) {
  PlainServer server([](PlainConnection& connection) {
    connection.ReadHead();
    connection.Respond(200, "ok");
    shutdown(connection.fd(), SHUT_WR);
    connection.Read(1'000'000);
    connection.Reset();
  });
  const std::string body(size_t{32} << 20, 'x');
  const auto response = Client(server)->Send(Request("PUT", "/", body), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable) << response.error().message;
}

TEST_F(HttpClientBodiesTest, AContinueIsPassedOverAndNotWaitedFor) {
  std::promise<std::string> head;
  PlainServer server([&](PlainConnection& connection) {
    head.set_value(connection.ReadHead());
    connection.Write("HTTP/1.1 100 Continue\r\n\r\n");
    connection.Write("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    connection.Respond(200, connection.Read(100'000).substr(0, 3));
    connection.WaitForClient();
  });
  const auto response = Client(server)->Send(Request("PUT", "/", Pattern(100'000)), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->Header("Link"), "");
  EXPECT_EQ(response->body, Pattern(3));
  EXPECT_EQ(head.get_future().get().find("Expect"), std::string::npos);
}

TEST_F(HttpClientBodiesTest, AHeadHasNoBodyWhateverItSays) {
  PlainServer server([](PlainConnection& connection) {
    while (!connection.ReadRequest().empty()) {
      connection.Write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n");
    }
  });
  const auto client = Client(server);
  for (int i = 0; i < 2; ++i) {
    const auto response = client->Send(Request("HEAD", "/"), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->Header("Content-Length"), "1000000000000");
  }
  EXPECT_EQ(server.connections(), 1);
}

}  // namespace
}  // namespace parallelrun
