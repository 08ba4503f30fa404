#include "coordinator/page/event_stream.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "base/http/server/connection.h"
#include "coordinator/page/live_page.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A client, which takes what it is sent at once, or not at all.
struct ViewerLine : HttpConnection {
  std::vector<HttpResponse> answers;
  std::vector<std::string> events;
  bool takes = true;
  size_t untaken = 0;
  bool ended = false;

  void Start() override {}
  void Respond(HttpResponse response) override { answers.push_back(std::move(response)); }
  void Begin(HttpResponse head) override { answers.push_back(std::move(head)); }
  void Add(std::string part) override {
    if (!takes) untaken += part.size();
    events.push_back(std::move(part));
  }
  void End() override { ended = true; }
  size_t waiting() const override { return untaken; }
  void CheckDeadline(SteadyTime) override {}
  std::optional<SteadyTime> WaitsSince() const override { return std::nullopt; }
  void CloseIfIdle() override {}
  void Close(bool) override {}
};

struct EventStreamTest : testing::Test {
  json document = {{"madeAt", "0"}, {"state", "Running"}, {"rows", 1}};
  int made = 0;
  EventStream stream{3, [this] {
                       document["madeAt"] = std::to_string(++made);
                       return document;
                     }};
  Instant now;

  std::shared_ptr<HttpExchange> Join(const std::shared_ptr<ViewerLine>& client,
                                     const std::string& last = "") {
    HttpRequest request;
    request.path = "/v1/events";
    if (!last.empty()) request.headers.push_back({"Last-Event-ID", last});
    auto exchange = std::make_shared<HttpExchange>(std::move(request), client);
    stream.Join(exchange, now);
    return exchange;
  }
  void Pass(Duration time) {
    now += time;
    stream.Tick(now);
  }
};

TEST_F(EventStreamTest, ASnapshotThenWhatHasChanged) {
  const auto client = std::make_shared<ViewerLine>();
  Join(client);
  ASSERT_EQ(client->answers.size(), 1U);
  EXPECT_EQ(client->answers[0].content_type, "text/event-stream; charset=utf-8");
  EXPECT_EQ(client->answers[0].Header("cache-control"), "no-store");
  EXPECT_EQ(client->answers[0].body, "retry: 2000\n\n");
  document["rows"] = 2;
  Pass(seconds(1));
  EXPECT_THAT(client->events,
              ElementsAre("id: 3-1\nevent: snapshot\ndata: "
                          "{\"madeAt\":\"1\",\"rows\":1,\"state\":\"Running\"}\n\n",
                          "id: 3-2\nevent: delta\ndata: {\"madeAt\":\"2\",\"rows\":2}\n\n"));
}

TEST_F(EventStreamTest, NothingIsMadeWhileNobodyLooks) {
  for (int i = 0; i < 10; ++i) Pass(seconds(1));
  EXPECT_EQ(made, 0);
}

TEST_F(EventStreamTest, OneEventASecondIsMadeForAll) {
  std::vector<std::shared_ptr<ViewerLine>> clients(EventStream::kMostViewers);
  for (auto& client : clients) Join(client = std::make_shared<ViewerLine>());
  for (int i = 0; i < 50; ++i) {
    document["rows"] = 100 + i;
    Pass(milliseconds(200));
  }
  EXPECT_EQ(made, 11);
  for (const auto& client : clients) EXPECT_EQ(client->events, clients[0]->events);
}

TEST_F(EventStreamTest, WithoutNewsThereIsAHeartbeat) {
  const auto client = std::make_shared<ViewerLine>();
  Join(client);
  client->events.clear();
  for (int i = 0; i < 14; ++i) Pass(seconds(1));
  EXPECT_THAT(client->events, IsEmpty());
  Pass(seconds(1));
  EXPECT_THAT(client->events, ElementsAre(":\n\n"));
}

TEST_F(EventStreamTest, WhoDoesNotTakeItsEventGetsOneSnapshotLater) {
  const auto slow = std::make_shared<ViewerLine>();
  Join(slow);
  slow->events.clear();
  slow->untaken = 1;
  for (int i = 0; i < 1000; ++i) {
    document["rows"] = 100 + i;
    Pass(seconds(1));
  }
  EXPECT_THAT(slow->events, IsEmpty());
  slow->untaken = 0;
  Pass(seconds(1));
  ASSERT_EQ(slow->events.size(), 1U);
  EXPECT_THAT(slow->events[0], HasSubstr("event: snapshot"));
  EXPECT_THAT(slow->events[0], HasSubstr("\"rows\":1099"));
}

TEST_F(EventStreamTest, WhoComesBackInTimeMissesNothingAndGetsNothingTwice) {
  const auto stays = std::make_shared<ViewerLine>();
  Join(stays);
  const auto back = std::make_shared<ViewerLine>();
  Join(back, "3-1");
  EXPECT_THAT(back->events, IsEmpty());
  document["rows"] = 2;
  Pass(seconds(1));
  ASSERT_EQ(back->events.size(), 1U);
  EXPECT_THAT(back->events[0], HasSubstr("event: delta"));
  const auto late = std::make_shared<ViewerLine>();
  Join(late, "3-1");
  ASSERT_EQ(late->events.size(), 1U);
  EXPECT_THAT(late->events[0], HasSubstr("id: 3-2\nevent: snapshot"));
}

TEST_F(EventStreamTest, WhoSawAnEarlierCoordinatorGetsASnapshot) {
  const auto stays = std::make_shared<ViewerLine>();
  Join(stays);
  const auto back = std::make_shared<ViewerLine>();
  Join(back, "2-1");
  ASSERT_EQ(back->events.size(), 1U);
  EXPECT_THAT(back->events[0], HasSubstr("id: 3-1\nevent: snapshot"));
}

TEST_F(EventStreamTest, OneMoreThanThereIsRoomForHearsSo) {
  std::vector<std::shared_ptr<ViewerLine>> clients(EventStream::kMostViewers);
  for (auto& client : clients) Join(client = std::make_shared<ViewerLine>());
  const auto last = std::make_shared<ViewerLine>();
  Join(last);
  ASSERT_EQ(last->answers.size(), 1U);
  EXPECT_EQ(last->answers[0].status, 503);
}

TEST_F(EventStreamTest, WhoHasGoneMakesRoom) {
  std::vector<std::shared_ptr<ViewerLine>> clients(EventStream::kMostViewers);
  std::shared_ptr<HttpExchange> gone;
  for (auto& client : clients) gone = Join(client = std::make_shared<ViewerLine>());
  gone->MarkGone();
  Pass(seconds(1));
  const auto next = std::make_shared<ViewerLine>();
  Join(next);
  ASSERT_EQ(next->answers.size(), 1U);
  EXPECT_EQ(next->answers[0].status, 200);
}

TEST_F(EventStreamTest, TheEndIsTheLastWord) {
  const auto client = std::make_shared<ViewerLine>();
  Join(client);
  client->events.clear();
  document["state"] = "Succeeded";
  stream.End();
  ASSERT_EQ(client->events.size(), 2U);
  EXPECT_THAT(client->events[0],
              HasSubstr("event: delta\ndata: {\"madeAt\":\"2\",\"state\":\"Succ"));
  EXPECT_EQ(client->events[1], "id: 3-2\nevent: end\ndata: {}\n\n");
  EXPECT_TRUE(client->ended);
}

TEST_F(EventStreamTest, TextOfOthersEndsNoEvent) {
  document["name"] = "a\n\nevent: end\ndata: {}\n\n\xff";
  const auto client = std::make_shared<ViewerLine>();
  Join(client);
  ASSERT_EQ(client->events.size(), 1U);
  EXPECT_EQ(client->events[0].find("\n\n"), client->events[0].size() - 2);
}

TEST(LoopbackHost, OnlyNamesThatNoSiteCanHave) {
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:43217", "localhost", "localhost:1", "[::1]", "[::1]:8080"}) {
    EXPECT_TRUE(IsLoopbackHost(host)) << host;
  }
  for (const char* host :
       {"", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example",
        "127.0.0.1:80@evil", "127.0.0.1:8x", "::1", "[::1].evil", "0.0.0.0"}) {
    EXPECT_FALSE(IsLoopbackHost(host)) << host;
  }
}

struct LivePageTest : testing::Test {
  std::vector<std::string> logs;  // that were asked for
  LivePage page{1, [] { return json::object(); },
                [this](const std::shared_ptr<HttpExchange>& exchange) {
                  logs.push_back(exchange->request().query);
                  exchange->Respond(TextResponse(200, "a log"));
                }};

  static HttpRequest Get(const std::string& path, HttpHeaders headers = {}) {
    HttpRequest request;
    request.path = path;
    headers.push_back({"Host", "127.0.0.1:1"});
    request.headers = std::move(headers);
    return request;
  }
  HttpResponse Give(HttpRequest request) {
    const auto client = std::make_shared<ViewerLine>();
    EXPECT_TRUE(page.Handle(std::make_shared<HttpExchange>(std::move(request), client), Instant()));
    return client->answers.at(0);
  }
};

TEST_F(LivePageTest, TheAssetsAreThereForAllWithHeadersThatHoldThemIn) {
  for (const char* path : {"/", "/page.js", "/page.css"}) {
    EXPECT_TRUE(page.Admit(Get(path)).has_value());
    const HttpResponse response = Give(Get(path));
    EXPECT_EQ(response.status, 200);
    EXPECT_THAT(std::string(response.Header("content-security-policy")),
                HasSubstr("default-src 'none'; script-src 'self'"));
    EXPECT_EQ(response.Header("x-content-type-options"), "nosniff");
    EXPECT_EQ(response.Header("referrer-policy"), "no-referrer");
    EXPECT_EQ(response.Header("content-encoding"), "");
    EXPECT_GT(response.body.size(), 100U);
  }
}

TEST_F(LivePageTest, TheyAreCompressedForWhoTakesThatAndSentOnce) {
  const HttpResponse plain = Give(Get("/page.js"));
  const HttpResponse response = Give(Get("/page.js", {{"Accept-Encoding", "br, gzip"}}));
  EXPECT_EQ(response.Header("content-encoding"), "gzip");
  EXPECT_LT(response.body.size(), plain.body.size() / 2);
  const std::string etag(response.Header("etag"));
  EXPECT_EQ(etag.size(), 22U);
  const HttpResponse again = Give(Get("/page.js", {{"If-None-Match", etag}}));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
}

TEST_F(LivePageTest, AnotherHostIsRefusedForPageAndEventsAlike) {
  for (const char* path : {"/", "/page.js", "/v1/events", "/v1/log"}) {
    HttpRequest request = Get(path);
    request.headers = {{"Host", "evil.example"}, {"Authorization", "Bearer right"}};
    const auto admitted = page.Admit(request);
    ASSERT_TRUE(admitted && std::holds_alternative<HttpResponse>(*admitted)) << path;
    EXPECT_EQ(std::get<HttpResponse>(*admitted).status, 421);
  }
}

TEST_F(LivePageTest, EventsAndAllElseNeedTheirTokensAsEver) {
  EXPECT_FALSE(page.Admit(Get("/v1/events")).has_value());
  EXPECT_FALSE(page.Admit(Get("/v1/log")).has_value());
  EXPECT_FALSE(page.Admit(Get("/v1/progress")).has_value());
  EXPECT_FALSE(page.Admit(Get("/page.js/x")).has_value());
}

TEST_F(LivePageTest, ItIsOnlyRead) {
  HttpRequest request = Get("/");
  request.method = "POST";
  EXPECT_EQ(std::get<HttpResponse>(*page.Admit(request)).status, 405);
}

}  // namespace
}  // namespace parallelrun::coordinator
