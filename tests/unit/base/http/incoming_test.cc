// A request taken apart, byte by byte, without a connection.
#include "base/http/server/incoming.h"

#include <gtest/gtest.h>

#include <string>

namespace parallelrun {
namespace {

constexpr size_t kMaxHead = 1000;

// Feeds `bytes` in pieces of `size` until it is done or refused. What was left over is kept and
// comes again with more behind it, as a connection does it. How many bytes it was given.
size_t Feed(Incoming& incoming, const std::string& bytes, size_t size, size_t max_body = 100) {
  std::string pending;
  bool bounded = false;
  size_t fed = 0;
  while (fed < bytes.size()) {
    pending += bytes.substr(fed, size);
    fed += std::min(size, bytes.size() - fed);
    std::string_view rest = pending;
    while (!rest.empty() && !incoming.done()) {
      const Incoming::Took took = incoming.Take(rest);
      if (took == Incoming::Took::kRefused) return fed;
      if (took == Incoming::Took::kMore) break;
      if (incoming.head_done() && !bounded) {
        bounded = true;
        if (!incoming.BoundBody(max_body)) return fed;
      }
    }
    pending.erase(0, pending.size() - rest.size());
    if (incoming.done()) return fed;
  }
  return fed;
}

TEST(HttpIncomingTest, IsTheSameInPiecesOfAnySize) {
  const std::string head = "PUT /a%20b?c=d HTTP/1.1\r\nHost: x\r\nX-A: b\r\n";
  for (const std::string& bytes :
       {head + "Content-Length: 6\r\n\r\nhello!",
        head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\nX-A: c\r\n\r\n"}) {
    for (size_t size = 1; size <= bytes.size(); ++size) {
      Incoming incoming("peer", kMaxHead);
      EXPECT_EQ(Feed(incoming, bytes, size), bytes.size());
      ASSERT_TRUE(incoming.done()) << size;
      EXPECT_EQ(incoming.request().method, "PUT");
      EXPECT_EQ(incoming.request().path, "/a%20b");
      EXPECT_EQ(incoming.request().query, "c=d");
      EXPECT_EQ(incoming.request().Header("x-a"), "b");
      EXPECT_EQ(incoming.request().body, "hello!");
      EXPECT_EQ(incoming.request().peer, "peer");
      EXPECT_STREQ(incoming.Ambiguous(), "");
      EXPECT_TRUE(incoming.keep_alive());
    }
  }
}

TEST(HttpIncomingTest, EndlessPartsAreBounded) {
  const std::string head = "PUT / HTTP/1.1\r\nHost: x\r\n";
  const std::string chunks = head + "Transfer-Encoding: chunked\r\n\r\n";
  const std::string much(100'000, 'x');
  for (const auto& [bytes, status] :
       {std::pair{much, 431}, std::pair{head + "X: " + much, 431},
        std::pair{chunks + "1;" + much, 400}, std::pair{chunks + "3e9\r\n" + much, 413}}) {
    for (const size_t size : {size_t{1}, size_t{100}, size_t{50'000}}) {
      Incoming incoming("", kMaxHead);
      EXPECT_LE(Feed(incoming, bytes, size), 4 * 1024 + 200 + size) << bytes.substr(0, 60);
      EXPECT_EQ(incoming.refusal().status, status) << bytes.substr(0, 60);
    }
  }
}

TEST(HttpIncomingTest, WhatTwoReadersCouldReadInTwoWaysIsTold) {
  for (const char* head : {"GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
                           "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n",
                           "GET / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"}) {
    Incoming incoming("", kMaxHead);
    Feed(incoming, std::string(head) + "\r\n", 1000);
    ASSERT_TRUE(incoming.head_done()) << head;
    EXPECT_STRNE(incoming.Ambiguous(), "") << head;
  }
}

TEST(HttpIncomingTest, WhoAwaitsAContinueHasABodyToSend) {
  const auto awaits = [](const std::string& text) {
    Incoming incoming("", kMaxHead);
    Feed(incoming, text, 1000);
    EXPECT_TRUE(incoming.head_done()) << text;
    return incoming.awaits_continue();
  };
  const std::string expect = " HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\n";
  EXPECT_TRUE(awaits("PUT /" + expect + "Content-Length: 1\r\n\r\n"));
  EXPECT_FALSE(awaits("PUT /" + expect + "Content-Length: 0\r\n\r\n"));
  EXPECT_FALSE(awaits("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n"));
}

}  // namespace
}  // namespace parallelrun
