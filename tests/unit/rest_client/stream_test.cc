// Answers that are read as they come.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "tests/unit/kube/scripted_server.h"
#include "tests/unit/rest_client/client_fixture.h"

namespace parallelrun::rest_client {
namespace {

// What every test of streams does: GET / on a server that plays `script`.
class RestStreamTest : public RestClientTest {
 protected:
  Result<std::unique_ptr<RestStream>> Open(kube::ScriptedServer& server) {
    RestClientOptions options;
    options.base_url = server.url();
    options.ca_pem = pair_.certificate;
    client_ = std::move(*RestClient::Make(options));
    HttpRequest request;
    request.path = "/";
    return client_->Open(request, seconds(50));
  }
  const TestCertificate pair_;
  std::unique_ptr<RestClient> client_;
};

TEST_F(RestStreamTest, BytesComeAsTheyAreSentAndTheEndIsTold) {
  std::promise<void> first_read;
  kube::ScriptedServer server(pair_, [&](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, ACutStreamIsAnError) {
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, SilenceIsATimeoutAndDoesNotEndTheStream) {
  std::promise<void> silent;
  kube::ScriptedServer server(pair_, [&](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, CancelWakesTheReader) {
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, ASlowReaderSlowsTheSenderDown) {
  constexpr size_t kPieces = 64;  // of 1 MiB: far more than sockets hold
  std::atomic<size_t> sent{0};
  kube::ScriptedServer server(pair_, [&](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, AStreamThatIsDroppedUnreadClosesItsConnection) {
  std::promise<void> closed;
  kube::ScriptedServer server(pair_, [&](kube::ScriptedConnection& connection) {
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

TEST_F(RestStreamTest, AnAnswerOverTheLimitIsRefusedAlsoWithoutALength) {
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    while (connection.Chunk(std::string(100'000, 'x'))) {
    }
  });
  RestClientOptions options;
  options.base_url = server.url();
  options.ca_pem = pair_.certificate;
  options.max_response_bytes = 1'000'000;
  const auto client = RestClient::Make(options);
  const auto response = (*client)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_NE(response.error().message.find("larger than 1000000"), std::string::npos)
      << response.error().message;
}

TEST_F(RestStreamTest, OpenKeepsItsDeadline) {
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.WaitForClient();
  });
  RestClientOptions options;
  options.base_url = server.url();
  options.ca_pem = pair_.certificate;
  const auto client = RestClient::Make(options);
  const auto stream = (*client)->Open(Post("/", ""), milliseconds(100));
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().code, Code::kTimeout);
  EXPECT_NE(stream.error().message.find("no answer within 100ms"), std::string::npos)
      << stream.error().message;
}

}  // namespace
}  // namespace parallelrun::rest_client
