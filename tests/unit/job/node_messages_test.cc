#include "job/node_messages.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "tests/support/source_folder.h"

namespace parallelrun::job {
namespace {

ExchangeRequest Request() {
  ExchangeRequest r;
  r.incarnation = {3, 7};
  r.settings_digest = 0x1122334455667788;
  r.number = 900;
  r.open = 899;
  r.unheard = true;
  r.want = 12;
  r.park_ms = 1000;
  r.held = {{5, {3, 9}, true}, {6, {3, 10}, false}};
  r.offered = {{1, {2, 4}, 99}};
  r.parts = {{2, {3, 11}, 4096, "part\n"}};
  Finished ok;
  ok.id = 3;
  ok.fence = {3, 12};
  ok.process = 4;
  ok.run_ns = 1234;
  ok.cpu_ns = 1200;
  ok.elapsed_ns = 5000;
  ok.waited_ns = 700;
  ok.read_ns = 800;
  ok.wrote_ns = 900;
  ok.items_succeeded = 2;
  ok.items_skipped = 6;
  ok.row_count = 2;
  ok.rows_offset = 5;
  ok.rows = "a\nb\n";
  Finished bad;
  bad.id = 4;
  bad.fence = {3, 13};
  bad.kind = Finished::Kind::kFailed;
  bad.cause = Cause::kRunTimeout;
  bad.error_kind = "RunTimeout";
  bad.message = "too slow";
  bad.log = "user/error/0/process000.txt";
  bad.output = {1, 20, 0, 7};
  Finished back;
  back.id = 8;
  back.fence = {3, 14};
  back.kind = Finished::Kind::kReturned;
  r.finished = {ok, bad, back};
  r.events = {{1, ProcessEvent::Kind::kInitFailed, "no model", "log"},
              {1, ProcessEvent::Kind::kMetric, "{}", "1"},
              {2, ProcessEvent::Kind::kHeader, "a b", "2"},
              {0, ProcessEvent::Kind::kNoRoom, "no space left", ""},
              {0, ProcessEvent::Kind::kRanOut, "", ""},
              {2, ProcessEvent::Kind::kWhere, "run score.py:30", "log"}};
  return r;
}

ExchangeReply Reply() {
  ExchangeReply reply;
  reply.epoch = 3;
  reply.directive = Directive::kDrain;
  reply.settled = {{1, {3, 1}}};
  reply.refused = {{2, {3, 2}}};
  reply.adopted = {{3, {2, 9}, {3, 3}}};
  reply.leased = {{4, {3, 4}, 77, "work"}};
  reply.header = "a b\n";
  reply.urls = {{4, {3, 4}, 1800, "", {"https://s3/b/k?X-Amz-Signature=1", ""}},
                {5, {3, 5}, 0, "no keys", {}}};
  return reply;
}

std::string Kept(const std::string& name) {
  std::stringstream bytes;
  bytes << std::ifstream(SourceFolder() + "tests/fuzz/corpus/protocol/" + name).rdbuf();
  return bytes.str();
}

// What the fuzz target begins with is what agents and coordinators of this protocol say.
TEST(NodeMessagesTest, AnotherFormatIsAnotherProtocol) {
  const std::string request = std::string(1, '\0') + Encode(Request());
  const std::string reply = std::string(1, '\1') + Encode(Reply());
  const auto why = [](const std::string& name, const std::string& bytes) {
    const std::string folder = std::filesystem::temp_directory_path();
    std::ofstream(folder + "/" + name) << bytes;
    return "raise kNodeProtocol, and keep " + folder + "/" + name +
           " in tests/fuzz/corpus/protocol";
  };
  EXPECT_EQ(kNodeProtocol, 9U);
  EXPECT_TRUE(Kept("request") == request) << why("request", request);
  EXPECT_TRUE(Kept("reply") == reply) << why("reply", reply);
}

TEST(NodeMessagesTest, TheIncarnationIsReadOfAnyProtocol) {
  EXPECT_EQ(IncarnationOf(Encode(Request()).substr(0, 8) + "?"), (Incarnation{3, 7}));
  EXPECT_EQ(IncarnationOf("short"), Incarnation());
}

TEST(NodeMessagesTest, TheLastKindOfEventIsTakenAndNoneBehindIt) {
  ExchangeRequest request;
  request.events = {{0, ProcessEvent::Kind::kStoreWait, "throttled by the store s3://box", ""}};
  const std::string bytes = Encode(request);
  const Result<ExchangeRequest> decoded = DecodeExchangeRequest(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->events.at(0).kind, ProcessEvent::Kind::kStoreWait);
  request.events[0].kind =
      static_cast<ProcessEvent::Kind>(static_cast<uint8_t>(ProcessEvent::Kind::kStoreWait) + 1);
  EXPECT_FALSE(DecodeExchangeRequest(Encode(request)).ok());
}

TEST(NodeMessagesTest, RequestRoundTrip) {
  const std::string bytes = Encode(Request());
  const Result<ExchangeRequest> decoded = DecodeExchangeRequest(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(Encode(*decoded), bytes);
  EXPECT_EQ(decoded->number, 900u);
  EXPECT_EQ(decoded->open, 899u);
  EXPECT_TRUE(decoded->unheard);
  EXPECT_EQ(decoded->parts[0].offset, 4096u);
  EXPECT_EQ(decoded->finished[0].rows, "a\nb\n");
  EXPECT_EQ(decoded->finished[0].cpu_ns, 1200u);
  EXPECT_EQ(decoded->finished[0].items_succeeded, 2u);
  EXPECT_EQ(decoded->finished[0].items_skipped, 6u);
  EXPECT_EQ(decoded->finished[0].row_count, 2u);
  EXPECT_EQ(decoded->finished[0].elapsed_ns, 5000u);
  EXPECT_EQ(decoded->finished[0].read_ns, 800u);
  EXPECT_FALSE(decoded->finished[1].read_ns);
  EXPECT_EQ(decoded->finished[1].message, "too slow");
  EXPECT_EQ(decoded->finished[1].output, (OutputRanges{1, 20, 0, 7}));
  EXPECT_EQ(decoded->events[0].message, "no model");
}

TEST(NodeMessagesTest, ReplyRoundTrip) {
  const std::string bytes = Encode(Reply());
  const Result<ExchangeReply> decoded = DecodeExchangeReply(bytes);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(Encode(*decoded), bytes);
  EXPECT_EQ(decoded->leased[0].work, "work");
  EXPECT_EQ(decoded->header, "a b\n");
  EXPECT_EQ(decoded->adopted[0].fence.number, 3u);
  ASSERT_EQ(decoded->urls.size(), 2u);
  EXPECT_EQ(decoded->urls[0].fence, (Fence{3, 4}));
  EXPECT_EQ(decoded->urls[0].seconds, 1800u);
  EXPECT_EQ(decoded->urls[0].urls[0], "https://s3/b/k?X-Amz-Signature=1");
  EXPECT_EQ(decoded->urls[1].why, "no keys");
}

TEST(NodeMessagesTest, WhatIsHeldWaitsHasStartedOrWantsUrls) {
  ExchangeRequest request;
  request.held = {{1, {3, 1}}, {2, {3, 2}, true}, {3, {3, 3}, false, true}};
  std::string bytes = Encode(request);
  const Result<ExchangeRequest> decoded = DecodeExchangeRequest(bytes);
  ASSERT_TRUE(decoded.ok());
  ASSERT_EQ(decoded->held.size(), 3u);
  for (const HeldLease& held : decoded->held) {
    EXPECT_EQ(held.started, held.id == 2) << held.id;
    EXPECT_EQ(held.wants_urls, held.id == 3) << held.id;
  }
  // Behind them are four empty lists, each with its count.
  char& last = bytes[bytes.size() - 4 * sizeof(uint32_t) - 1];
  ASSERT_EQ(last, 2);
  last = 3;
  EXPECT_FALSE(DecodeExchangeRequest(bytes).ok());
}

TEST(NodeMessagesTest, UrlsAreAddedToWhatWasEncodedBefore) {
  ExchangeReply without = Reply();
  const std::vector<ObjectUrls> urls = std::exchange(without.urls, {});
  std::string bytes = Encode(without);
  AddUrls(bytes, urls);
  EXPECT_EQ(bytes, Encode(Reply()));
}

TEST(NodeMessagesTest, EveryTruncationAndEveryExtraByteOfAReplyIsRefused) {
  const std::string bytes = Encode(Reply());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeExchangeReply(std::string_view(bytes).substr(0, n)).ok()) << n;
  }
  const Result<ExchangeReply> more = DecodeExchangeReply(bytes + "x");
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().message, "malformed exchange reply") << "URLs are secrets";
}

TEST(NodeMessagesTest, EveryTruncationAndEveryExtraByteIsRefused) {
  const std::string bytes = Encode(Request());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeExchangeRequest(std::string_view(bytes).substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(DecodeExchangeRequest(bytes + "x").ok());
}

TEST(NodeMessagesTest, EventsAreBounded) {
  using Kind = ProcessEvent::Kind;
  const auto taken = [](Kind kind, size_t size) {
    const std::string message(size, 'x');
    ExchangeRequest r;
    r.events = {{1, kind, message, "1"}};
    return DecodeExchangeRequest(Encode(r)).ok();
  };
  EXPECT_TRUE(taken(Kind::kMetric, kMaxMetricBytes));
  EXPECT_FALSE(taken(Kind::kMetric, kMaxMetricBytes + 1));
  EXPECT_TRUE(taken(Kind::kHeader, kMaxHeaderBytes));
  EXPECT_FALSE(taken(Kind::kHeader, kMaxHeaderBytes + 1));
  EXPECT_FALSE(taken(static_cast<Kind>(20), 0));
  EXPECT_FALSE(taken(static_cast<Kind>(0), 0));
}

TEST(NodeMessagesTest, AHostileCountSizesNothing) {
  std::string bytes = Encode(ExchangeRequest());
  bytes[41] = bytes[42] = bytes[43] = bytes[44] = '\xff';  // the count of held leases
  EXPECT_FALSE(DecodeExchangeRequest(bytes).ok());
}

}  // namespace
}  // namespace parallelrun::job
