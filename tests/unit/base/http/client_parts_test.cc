// The parts of the client that need no server: URLs, names, the pool, answers byte by byte.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <future>
#include <latch>

#include "base/http/client/answer.h"
#include "base/http/client/names.h"
#include "base/http/client/pool.h"
#include "base/http/client/url.h"

namespace parallelrun {
namespace {

SteadyTime Soon() { return std::chrono::steady_clock::now() + seconds(60); }

// --- URLs

TEST(HttpUrlTest, IsTakenApart) {
  const auto url = ParseHttpUrl("https://job-1.ns.svc:8443/a/b/");
  ASSERT_TRUE(url.ok());
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->host, "job-1.ns.svc");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->prefix, "/a/b");
  EXPECT_EQ(url->HostHeader(), "job-1.ns.svc:8443");
}

TEST(HttpUrlTest, APortOfItsSchemeIsLeftOut) {
  EXPECT_EQ(ParseHttpUrl("http://a")->port, 80);
  EXPECT_EQ(ParseHttpUrl("https://a/")->port, 443);
  EXPECT_EQ(ParseHttpUrl("https://a:443")->HostHeader(), "a");
  EXPECT_EQ(ParseHttpUrl("http://a:443")->HostHeader(), "a:443");
}

TEST(HttpUrlTest, AnIpv6AddressStandsInBrackets) {
  const auto url = ParseHttpUrl("http://[fe80::1%eth0]:81/x");
  ASSERT_TRUE(url.ok());
  EXPECT_EQ(url->host, "fe80::1%eth0");
  EXPECT_EQ(ParseHttpUrl("http://[::1]:81")->HostHeader(), "[::1]:81");
}

TEST(HttpUrlTest, WhatIsNoneIsRefused) {
  for (const char* text : {"",
                           "a",
                           "ftp://a",
                           "http:/a",
                           "http://",
                           "http:///x",
                           "http://a:",
                           "http://a:0",
                           "http://a:65536",
                           "http://a:1x",
                           "http://a:-1",
                           "http://u@a",
                           "http://u:p@a",
                           "http://[::1",
                           "http://[]",
                           "http://[::1]x",
                           "http://a b",
                           "http://a/b c",
                           "http://a/?q",
                           "http://a/#f",
                           "http://a/\xc3\xa9",
                           "http://a\r\nX: y",
                           "HTTP://a"}) {
    EXPECT_FALSE(ParseHttpUrl(text).ok()) << text;
  }
}

// --- Names

TEST(HttpNamesTest, AnAddressIsNotLookedUp) {
  Names names("127.0.0.1", 80, [](const std::string&, uint16_t) -> Result<Addresses> {
    ADD_FAILURE() << "somebody was asked";
    return Addresses();
  });
  const auto found = names.Find(Soon());
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->front().Text(), "127.0.0.1:80");
  EXPECT_EQ(Names("::1", 1).Find(Soon())->front().Text(), "[::1]:1");
}

TEST(HttpNamesTest, TheErrorIsTheSystems) {
  const auto found = LookUp("no-such-host.invalid", 80);
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kUnavailable);
  EXPECT_NE(found.error().message.find("no-such-host.invalid: "), std::string::npos);
}

// A look-up that ends when the test says so, and counts.
struct SlowLook {
  std::shared_ptr<std::promise<void>> go = std::make_shared<std::promise<void>>();
  std::shared_future<void> may_go = go->get_future().share();
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::latch> begun = std::make_shared<std::latch>(1);
  std::shared_ptr<std::latch> over = std::make_shared<std::latch>(1);

  Result<Addresses> operator()(const std::string&, uint16_t port) const {
    const int number = ++*asked;
    if (number == 1) begun->count_down();
    may_go.wait();
    if (number == 1) over->count_down();
    return LookUp("127.0.0.1", port);
  }
};

TEST(HttpNamesTest, WhoHasNoTimeLeftLeavesTheLookUpBehind) {
  const SlowLook look;
  {
    Names names("name", 80, look);
    const auto found = names.Find(std::chrono::steady_clock::now() + milliseconds(20));
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, Code::kTimeout);
    EXPECT_NE(found.error().message.find("name"), std::string::npos);
  }
  look.go->set_value();  // it ends after those who asked
  look.over->wait();
}

TEST(HttpNamesTest, CancelEndsTheWaitNotTheLookUp) {
  const SlowLook look;
  Names names("name", 80, look);
  auto call = std::async(std::launch::async, [&] { return names.Find(Soon()); });
  names.Cancel();
  EXPECT_EQ(call.get().error().code, Code::kUnavailable);
  EXPECT_EQ(names.Find(Soon()).error().code, Code::kUnavailable);
  look.go->set_value();
  if (*look.asked > 0) look.over->wait();
}

TEST(HttpNamesTest, OneLookUpServesAllWhoWait) {
  const SlowLook look;
  Names names("name", 80, look);
  EXPECT_FALSE(names.Find(std::chrono::steady_clock::now()).ok());  // begins it
  std::vector<std::future<Result<Addresses>>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::async(std::launch::async, [&] { return names.Find(Soon()); }));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(names.Find(std::chrono::steady_clock::now()).ok());
  }
  look.begun->wait();
  EXPECT_EQ(*look.asked, 1);
  look.go->set_value();  // who comes only now begins another
  for (auto& call : calls) EXPECT_EQ(call.get()->front().Text(), "127.0.0.1:80");
}

// --- The pool

class HttpPoolTest : public testing::Test {
 protected:
  // A connection to nobody in particular; `other` is its other end.
  std::unique_ptr<Wire> Make(Fd* other = nullptr) {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()), 0);
    others_.emplace_back(pair[1]);
    if (other != nullptr) *other = std::move(others_.back());
    return std::make_unique<Wire>(Fd(pair[0]), cancellation_);
  }
  // What the pool gives at `now`.
  std::unique_ptr<Wire> Enter(SteadyTime now) {
    auto wire = pool_.Enter(now, Soon());
    EXPECT_TRUE(wire.ok());
    return std::move(*wire);
  }

  Cancellation cancellation_;
  Pool pool_{3, seconds(60)};
  const SteadyTime start_{};
  std::vector<Fd> others_;
};

TEST_F(HttpPoolTest, TheNewestIdleOneIsGivenFirst) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Enter(start_), nullptr);
  std::array<Wire*, 3> made{};
  for (Wire*& wire : made) {
    auto owned = Make();
    wire = owned.get();
    pool_.Leave(std::move(owned), start_);
  }
  for (size_t i = 3; i-- > 0;) {
    const auto wire = Enter(start_);
    EXPECT_EQ(wire.get(), made[i]);
  }
  for (int i = 0; i < 3; ++i) pool_.Leave(nullptr, start_);
}

TEST_F(HttpPoolTest, OneThatWasIdleForLongIsClosed) {
  EXPECT_EQ(Enter(start_), nullptr);
  pool_.Leave(Make(), start_);
  EXPECT_NE(Enter(start_ + seconds(59)), nullptr);
  pool_.Leave(Make(), start_ + seconds(60));
  EXPECT_EQ(Enter(start_ + seconds(120)), nullptr);
  pool_.Leave(nullptr, start_);
}

TEST_F(HttpPoolTest, OneThatHasSomethingToSayIsClosed) {
  Fd closed, talks;
  EXPECT_EQ(Enter(start_), nullptr);
  EXPECT_EQ(Enter(start_), nullptr);
  pool_.Leave(Make(&closed), start_);
  pool_.Leave(Make(&talks), start_);
  closed.Close();
  EXPECT_EQ(write(talks.get(), "x", 1), 1);
  EXPECT_EQ(Enter(start_), nullptr);
  pool_.Leave(nullptr, start_);
}

TEST_F(HttpPoolTest, AfterClearNothingIsIdle) {
  EXPECT_EQ(Enter(start_), nullptr);
  pool_.Leave(Make(), start_);
  pool_.Clear();
  EXPECT_EQ(Enter(start_), nullptr);
  pool_.Leave(nullptr, start_);
}

TEST_F(HttpPoolTest, WhoFindsAllTakenWaitsForOne) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Enter(start_), nullptr);
  const auto none = pool_.Enter(start_, std::chrono::steady_clock::now());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, Code::kTimeout);
  auto waiting = std::async(std::launch::async, [&] { return Enter(start_); });
  auto wire = Make();
  Wire* const given = wire.get();
  pool_.Leave(std::move(wire), start_);
  EXPECT_EQ(waiting.get().get(), given);
  for (int i = 0; i < 3; ++i) pool_.Leave(nullptr, start_);
  pool_.WaitUntilLeft();
}

TEST_F(HttpPoolTest, CancelledItGivesAndKeepsNothing) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Enter(start_), nullptr);
  auto waiting = std::async(std::launch::async, [&] { return pool_.Enter(start_, Soon()); });
  pool_.Cancel();
  EXPECT_EQ(waiting.get().error().code, Code::kUnavailable);
  Fd other;
  pool_.Leave(Make(&other), start_);
  char byte = 0;
  EXPECT_EQ(read(other.get(), &byte, 1), 0);  // closed
}

// --- Answers

// What comes of these bytes, in pieces of `size`, and the end of the connection.
Result<HttpResponse> Taken(const std::string& bytes, size_t size, bool* keeps_alive = nullptr) {
  Answer answer({false, 1000, nullptr, 0});
  for (size_t at = 0; at < bytes.size(); at += size) {
    const Status put = answer.Put(std::string_view(bytes).substr(at, size));
    if (!put.ok()) return put.error();
  }
  if (keeps_alive != nullptr) *keeps_alive = answer.keeps_alive();
  if (!answer.done()) {
    if (const Status end = answer.End(); !end.ok()) return end.error();
  }
  return answer.response();
}

TEST(HttpAnswerTest, IsTheSameInPiecesOfAnySize) {
  const std::string chunked =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Type: text/plain\r\n"
      "ETag: \"a\"\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nX: "
      "y\r\n\r\n";
  const std::string sized =
      "HTTP/1.1 201 C\r\nContent-Type: text/plain\r\nETag: \"a\"\r\n"
      "Content-Length: 6\r\n\r\nhello!";
  for (const std::string& bytes : {chunked, sized}) {
    for (size_t size = 1; size <= bytes.size(); ++size) {
      bool keeps_alive = false;
      const auto response = Taken(bytes, size, &keeps_alive);
      ASSERT_TRUE(response.ok()) << size << response.error().message;
      EXPECT_EQ(response->status, 201);
      EXPECT_EQ(response->content_type, "text/plain");
      EXPECT_EQ(response->Header("etag"), "\"a\"");
      EXPECT_EQ(response->Header("X"), "");
      EXPECT_EQ(response->body, "hello!") << size;
      EXPECT_TRUE(keeps_alive) << size;
    }
  }
}

TEST(HttpAnswerTest, WhatEndsWithItsConnectionKeepsNone) {
  bool keeps_alive = true;
  const auto response = Taken("HTTP/1.1 200 OK\r\n\r\nhello", 7, &keeps_alive);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "hello");
  EXPECT_FALSE(keeps_alive);
}

TEST(HttpAnswerTest, LengthsThatTwoReadersCouldReadInTwoWaysAreRefused) {
  for (const char* headers :
       {"Content-Length: 1\r\nContent-Length: 2\r\n", "Content-Length: 1\r\nContent-Length: 1\r\n",
        "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length: -1\r\n",
        "Content-Length: 1x\r\n", "Content-Length: 99999999999999999999\r\n"}) {
    const auto response = Taken("HTTP/1.1 200 OK\r\n" + std::string(headers) + "\r\n1", 1000);
    ASSERT_FALSE(response.ok()) << headers;
  }
}

TEST(HttpAnswerTest, DamagedChunksAreRefused) {
  for (const char* body : {"x\r\n", "-1\r\n", "fffffffffffffffff\r\n", "2\r\nabc\r\n0\r\n\r\n"}) {
    const auto response =
        Taken("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(body), 1000);
    EXPECT_FALSE(response.ok()) << body;
  }
}

TEST(HttpAnswerTest, EndlessPartsAreBounded) {
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const std::string chunks = head + "Transfer-Encoding: chunked\r\n\r\n";
  std::string interim;
  for (int i = 0; i < 10'000; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string much(100'000, 'x');
  for (const std::string& bytes :
       {interim, head + "X: " + much, head + much, much, chunks + "1;" + much,
        chunks + "0\r\nX: " + much, chunks + "3e9\r\n" + much}) {
    for (const size_t size : {size_t{1}, size_t{1000}, size_t{65'536}}) {
      Answer answer({false, 1000, nullptr, 0});
      size_t fed = 0;
      Status put;
      for (; put.ok() && fed < bytes.size(); fed += size) {
        put = answer.Put(std::string_view(bytes).substr(fed, size));
      }
      EXPECT_FALSE(put.ok()) << bytes.substr(0, 60);
      EXPECT_LE(fed, 33u * 1024 + size) << bytes.substr(0, 60);
    }
  }
}

}  // namespace
}  // namespace parallelrun
