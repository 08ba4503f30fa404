#include "base/http/server.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "tests/unit/base/http/fixture.h"

namespace parallelrun {
namespace {

std::string Post(const std::string& path, const std::string& headers, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n" + body;
}

int StatusOf(const std::string& response) {
  return response.size() > 12 ? std::stoi(response.substr(9, 3)) : 0;
}

std::string BodyOf(const std::string& response) {
  const size_t at = response.find("\r\n\r\n");
  return at == std::string::npos ? "" : response.substr(at + 4);
}

bool Closes(const std::string& response) {
  return response.find("Connection: close\r\n") != std::string::npos;
}

// Keeps exchanges, so that tests can answer them later.
struct Parking {
  std::vector<std::shared_ptr<HttpExchange>> parked;
  std::promise<void> arrived;

  HttpServer::Handler Handler() {
    return [this](const std::shared_ptr<HttpExchange>& exchange) {
      parked.push_back(exchange);
      if (parked.size() == 1) arrived.set_value();
    };
  }
  void Await() { arrived.get_future().get(); }
};

TEST(HttpServer, AnswersAndKeepsAlive) {
  TestServer server;
  RawClient client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.Send(kGet);
    const std::string response = client.ReadResponse();
    EXPECT_EQ(StatusOf(response), 200);
    EXPECT_EQ(BodyOf(response), "GET /a?q=1 ");
    EXPECT_FALSE(Closes(response));
  }
  client.Send(Post("/b", "Content-Length: 5\r\n", "hello"));
  EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /b? hello");
}

TEST(HttpServer, TakesARequestByteByByte) {
  TestServer server;
  RawClient client(server.port());
  for (const char c : Post("/b", "Content-Length: 5\r\n", "hello")) client.Send({&c, 1});
  EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /b? hello");
}

TEST(HttpServer, TakesChunkedBodies) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Post("/b", "Transfer-Encoding: chunked\r\n",
                   "3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nAuthorization: trailer\r\n\r\n"));
  EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /b? abcdefg");
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += Post(fmt::format("/{}", i), "Content-Length: 2\r\n", "xy");
  }
  client.Send(all);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(BodyOf(client.ReadResponse()), fmt::format("POST /{}? xy", i));
  }
}

TEST(HttpServer, ConnectionCloseIsObeyed) {
  TestServer server;
  RawClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string response = client.ReadToEnd();
  EXPECT_EQ(StatusOf(response), 200);
  EXPECT_TRUE(Closes(response));
  RawClient old(server.port());
  old.Send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(StatusOf(old.ReadToEnd()), 200);
}

TEST(HttpServer, HeadHasNoBody) {
  TestServer server;
  RawClient client(server.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string response = client.ReadToEnd();
  EXPECT_NE(response.find("Content-Length: 8\r\n"), std::string::npos) << response;
  EXPECT_EQ(BodyOf(response), "");
}

TEST(HttpServer, SaysContinueOnlyToWhatTheGateAdmits) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Post("/b", "Content-Length: 2\r\nExpect: 100-continue\r\n", ""));
  EXPECT_EQ(client.ReadResponse(), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ab");
  EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /b? ab");
  client.Send(Post("/deny", "Content-Length: 2\r\nExpect: 100-continue\r\n", ""));
  EXPECT_EQ(StatusOf(client.ReadToEnd()), 401);
}

TEST(HttpServer, GateRefusesBeforeTheBody) {
  std::atomic<bool> handled = false;
  TestServer server({}, [&](const auto&) { handled = true; });
  RawClient client(server.port());
  client.Send(Post("/deny", "Content-Length: 1000000000\r\n", ""));  // nothing of it is sent
  const std::string response = client.ReadToEnd();
  EXPECT_EQ(StatusOf(response), 401);
  EXPECT_TRUE(Closes(response));
  EXPECT_FALSE(handled);
}

TEST(HttpServer, GateRefusalWithoutABodyKeepsTheConnection) {
  TestServer server;
  RawClient client(server.port());
  client.Send("GET /deny HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(StatusOf(client.ReadResponse()), 401);
  client.Send(kGet);
  EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
}

TEST(HttpServer, RefusesBodiesOverTheLimit) {
  TestServer server;
  RawClient by_length(server.port());
  by_length.Send(Post("/b", "Content-Length: 1001\r\n", ""));
  EXPECT_EQ(StatusOf(by_length.ReadToEnd()), 413);
  RawClient by_chunk(server.port());
  by_chunk.Send(Post("/b", "Transfer-Encoding: chunked\r\n", "3e8\r\n" + std::string(1000, 'x')));
  by_chunk.Send("\r\n1\r\n");
  EXPECT_EQ(StatusOf(by_chunk.ReadToEnd()), 413);
  RawClient exact(server.port());
  exact.Send(Post("/b", "Content-Length: 1000\r\n", std::string(1000, 'x')));
  EXPECT_EQ(StatusOf(exact.ReadResponse()), 200);
}

TEST(HttpServer, AnswerToARefusedBodyArrivesThoughTheClientGoesOnSending) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Post("/deny", "Content-Length: 500000\r\n", std::string(500000, 'x')));
  EXPECT_EQ(BodyOf(client.ReadToEnd()), "who are you?");
}

TEST(HttpServer, RefusesHeadsOverTheLimit) {
  HttpServerOptions options;
  options.max_header_bytes = 1000;
  TestServer server(options);
  const std::string small = "X-A: " + std::string(80, 'x') + "\r\n";
  RawClient at_once(server.port());
  std::string many;
  for (int i = 0; i < 20; ++i) many += small;
  at_once.Send("GET / HTTP/1.1\r\nHost: x\r\n" + many + "\r\n");
  EXPECT_EQ(StatusOf(at_once.ReadToEnd()), 431);
  // In pieces, never ending.
  RawClient in_pieces(server.port());
  in_pieces.Send("GET / HTTP/1.1\r\nHost: x\r\n");
  for (int i = 0; i < 20; ++i) in_pieces.Send(small);
  EXPECT_EQ(StatusOf(in_pieces.ReadToEnd()), 431);
  RawClient long_line(server.port());
  long_line.Send("GET /" + std::string(2000, 'a'));
  EXPECT_EQ(StatusOf(long_line.ReadToEnd()), 431);
  RawClient fits(server.port());
  fits.Send("GET / HTTP/1.1\r\nHost: x\r\n" + small + small + "\r\n");
  EXPECT_EQ(StatusOf(fits.ReadResponse()), 200);
}

TEST(HttpServer, TheHeadIsLimitedAsAWhole) {
  // The parser uses up the fields of the first read; what is left alone is within the limit.
  TestServer server;
  RawClient client(server.port());
  std::string head = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 300; ++i) head += "X-A: " + std::string(80, 'x') + "\r\n";
  client.Send(head + "\r\n");
  EXPECT_EQ(StatusOf(client.ReadToEnd()), 431);
}

TEST(HttpServer, RefusesWhatTwoReadersCouldUnderstandDifferently) {
  TestServer server;
  for (const char* request : {
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
           "POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
           "GET / HTTP/1.1\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
           "GET http://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nX-A : 1\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: x\r\nX-A: \x01\r\n\r\n",
           "\x16\x03\x01\x02 not http\r\n\r\n",
       }) {
    RawClient client(server.port());
    client.Send(request);
    EXPECT_EQ(StatusOf(client.ReadToEnd()), 400) << request;
  }
  RawClient version(server.port());
  version.Send("GET / HTTP/2.0\r\nHost: x\r\n\r\n");
  EXPECT_EQ(StatusOf(version.ReadToEnd()), 505);
}

TEST(HttpServer, RefusesAnEndlessChunkHeader) {
  TestServer server;
  RawClient client(server.port());
  client.Send(Post("/b", "Transfer-Encoding: chunked\r\n", "1;" + std::string(20000, 'x')));
  EXPECT_EQ(StatusOf(client.ReadToEnd()), 400);
}

TEST(HttpServer, SlowClientsAreClosed) {
  HttpServerOptions options;
  options.header_timeout = milliseconds(60);
  options.body_idle_timeout = milliseconds(60);
  TestServer server(options);
  RawClient silent(server.port());
  RawClient half_head(server.port());
  half_head.Send("GET / HT");
  RawClient half_body(server.port());
  half_body.Send(Post("/b", "Content-Length: 10\r\n", "abc"));
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_EQ(half_head.ReadToEnd(), "");
  EXPECT_EQ(half_body.ReadToEnd(), "");
}

TEST(HttpServer, IdleClientsAreClosed) {
  HttpServerOptions options;
  options.keep_alive_timeout = milliseconds(60);
  TestServer server(options);
  RawClient idle(server.port());
  idle.Send(kGet);
  EXPECT_EQ(StatusOf(idle.ReadToEnd()), 200);
}

TEST(HttpServer, AClientThatDoesNotReadIsClosed) {
  HttpServerOptions options;
  options.write_idle_timeout = milliseconds(60);
  std::promise<void> came;  // the connection may be closed again before anybody has counted it
  TestServer server(options, [&](const std::shared_ptr<HttpExchange>& exchange) {
    came.set_value();
    exchange->Respond(TextResponse(200, std::string(64 << 20, 'x')));  // more than sockets buffer
  });
  RawClient client(server.port());
  client.Send(kGet);
  came.get_future().wait();
  while (server.OnLoop([&] { return server.server().connections(); }) != 0) {
  }
  EXPECT_LT(client.ReadToEnd().size(), size_t{64} << 20);
}

TEST(HttpServer, ConnectionsOverTheLimitGet503) {
  HttpServerOptions options;
  options.max_connections = 2;
  TestServer server(options);
  RawClient a(server.port()), b(server.port());
  a.Send(kGet), b.Send(kGet);
  EXPECT_EQ(StatusOf(a.ReadResponse()), 200);
  EXPECT_EQ(StatusOf(b.ReadResponse()), 200);
  {
    RawClient c(server.port());
    c.Send(kGet);
    const std::string response = c.ReadToEnd();
    EXPECT_EQ(StatusOf(response), 503);
    EXPECT_TRUE(Closes(response));
  }
  a.Close();
  while (server.OnLoop([&] { return server.server().connections(); }) != 1) {
  }
  RawClient d(server.port());
  d.Send(kGet);
  EXPECT_EQ(StatusOf(d.ReadResponse()), 200);
}

TEST(HttpServer, AFloodOfConnectionsTakesNothingFromThoseWhoAreThere) {
  HttpServerOptions options;
  options.max_connections = 100;
  TestServer server(options);
  RawClient healthy(server.port());
  healthy.Send(kGet);
  EXPECT_EQ(StatusOf(healthy.ReadResponse()), 200);
  std::vector<std::unique_ptr<RawClient>> flood;
  for (int i = 0; i < 200; ++i) {
    flood.push_back(std::make_unique<RawClient>(server.port()));
    if (i % 3 == 0) flood.back()->Send("GET / HT");
    if (i % 3 == 1) flood.back()->Send(Post("/b", "Content-Length: 900\r\n", "abc"));
    if (i % 3 == 2) flood.back()->Send(kGet);  // and reads nothing
    healthy.Send(kGet);
    EXPECT_EQ(StatusOf(healthy.ReadResponse()), 200);
  }
  // A few above the limit are let in, to be told so.
  EXPECT_LT(server.OnLoop([&] { return server.server().connections(); }), 150u);
}

// A public port whose time limits are too long to save it.
HttpServerOptions CrowdedPort() {
  HttpServerOptions options;
  LimitPublicPort(options);
  options.max_connections = 4;
  options.header_timeout = options.body_idle_timeout = seconds(3600);
  return options;
}

TEST(HttpServer, ProbesAreAnsweredAmongAnyNumberOfSilentConnections) {
  TestServer server(CrowdedPort());
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 200; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    if (i % 3 == 1) crowd.back()->Send("GET /healthz HT");
    if (i % 3 == 2) crowd.back()->Send(kGet);  // a connection serves one request
    RawClient probe(server.port());
    probe.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = probe.ReadToEnd();
    EXPECT_EQ(StatusOf(answer), 200) << i;
    EXPECT_TRUE(Closes(answer));
  }
  EXPECT_LE(server.OnLoop([&] { return server.server().connections(); }), 40u);
}

TEST(HttpServer, ProbesAreAnsweredWhileNobodyReadsTheLongAnswers) {
  std::atomic<int> answered = 0;
  TestServer server(CrowdedPort(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    const bool probe = exchange->request().path == "/healthz";
    exchange->Respond(TextResponse(200, probe ? "ok" : std::string(8 << 20, 'x')));
    ++answered;
  });
  std::vector<std::unique_ptr<RawClient>> crowd;
  for (int i = 0; i < 4; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    crowd.back()->Send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  while (answered != 4) std::this_thread::yield();
  // Nor do those who hold their request back once they are let in beyond the limit.
  for (int i = 0; i < 50; ++i) {
    crowd.push_back(std::make_unique<RawClient>(server.port()));
    crowd.back()->Send(Post("/healthz", "Transfer-Encoding: chunked\r\n", "1"));
  }
  RawClient probe(server.port());
  probe.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(probe.ReadToEnd()), "ok");
  RawClient scraper(server.port());
  scraper.Send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(StatusOf(scraper.ReadToEnd()), 503);
}

TEST(HttpServer, AnswersLater) {
  Parking parking;
  TestServer server({}, parking.Handler());
  RawClient client(server.port());
  client.Send(kGet);
  client.Send(kGet);  // waits for its turn
  parking.Await();
  EXPECT_EQ(server.OnLoop([&] {
    parking.parked[0]->Respond(TextResponse(200, "first"));
    parking.parked[0]->Respond(TextResponse(200, "twice"));
    return parking.parked.size();
  }),
            1u);
  EXPECT_EQ(BodyOf(client.ReadResponse()), "first");
  while (server.OnLoop([&] { return parking.parked.size(); }) < 2) {
  }
  server.OnLoop([&] { return parking.parked[1]->Respond(TextResponse(200, "second")), 0; });
  EXPECT_EQ(BodyOf(client.ReadResponse()), "second");
  server.OnLoop([&] { return parking.parked.clear(), 0; });
}

TEST(HttpServer, AClientThatGoesWhileParkedIsNoticed) {
  std::promise<void> arrived, gone;
  std::shared_ptr<HttpExchange> parked;
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    parked = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    arrived.set_value();
  });
  {
    RawClient client(server.port());
    client.Send(kGet);
    arrived.get_future().get();
  }
  gone.get_future().get();
  EXPECT_TRUE(server.OnLoop([&] {
    const bool known = parked->gone();
    parked->Respond(TextResponse(200, "nobody hears this"));
    parked.reset();
    return known;
  }));
  RawClient next(server.port());  // the server is well
}

TEST(HttpServer, AnswersInParts) {
  Parking parking;
  TestServer server({}, parking.Handler());
  RawClient client(server.port());
  client.Send(kGet);
  parking.Await();
  server.OnLoop([&] {
    parking.parked[0]->Begin(TextResponse(200, "one "));
    parking.parked[0]->Send("two ");
    parking.parked[0]->Send("three ");
    return 0;
  });
  const std::string head = client.ReadResponse();  // up to where the body begins
  EXPECT_EQ(StatusOf(head), 200);
  EXPECT_TRUE(Closes(head));
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  while (server.OnLoop([&] { return parking.parked[0]->waiting(); }) > 0) {
  }
  server.OnLoop([&] {
    parking.parked[0]->Send("four");
    parking.parked[0]->End();
    parking.parked[0]->Send("nothing more");
    return 0;
  });
  EXPECT_EQ(client.ReadToEnd(), "one two three four");
  server.OnLoop([&] { return parking.parked.clear(), 0; });
}

TEST(HttpServer, WhatIsLetGoInPartsEndsThere) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Begin(TextResponse(200, "all "));
    exchange->Send("of it");
  });
  RawClient client(server.port());
  client.Send(kGet);
  EXPECT_EQ(BodyOf(client.ReadToEnd()), "all of it");
}

TEST(HttpServer, PartsOfAnyLengthArriveInOrder) {
  std::string all;
  for (int i = 0; i < 300'000; ++i) all += fmt::format("{} ", i);
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Begin(TextResponse(200, ""));
    for (size_t at = 0; at < all.size(); at += 9'999) exchange->Send(all.substr(at, 9'999));
  });
  RawClient client(server.port());
  client.Send(kGet);
  EXPECT_EQ(BodyOf(client.ReadToEnd()), all);
}

TEST(HttpServer, AClientThatGoesBetweenPartsIsNoticed) {
  std::promise<void> gone;
  std::shared_ptr<HttpExchange> kept;
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    kept = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    exchange->Begin(TextResponse(200, "one"));
  });
  {
    RawClient client(server.port());
    client.Send(kGet);
    client.ReadResponse();
  }
  gone.get_future().get();
  EXPECT_TRUE(server.OnLoop([&] {
    const bool known = kept->gone();
    kept->Send("nobody reads this");
    const bool nothing = kept->waiting() == 0;
    kept.reset();
    return known && nothing;
  }));
}

TEST(HttpServer, AClientThatTakesNoPartIsClosed) {
  HttpServerOptions options;
  options.write_idle_timeout = milliseconds(60);
  Parking parking;
  TestServer server(options, parking.Handler());
  RawClient client(server.port());
  client.Send(kGet);
  parking.Await();
  EXPECT_GT(server.OnLoop([&] {
    parking.parked[0]->Begin(TextResponse(200, ""));
    parking.parked[0]->Send(std::string(64 << 20, 'x'));  // more than sockets buffer
    return parking.parked[0]->waiting();
  }),
            size_t{32} << 20);
  while (!server.OnLoop([&] { return parking.parked[0]->gone(); })) {
  }
  server.OnLoop([&] { return parking.parked.clear(), 0; });
}

TEST(HttpServer, AnExchangeLetGoAnswers500) {
  TestServer server({}, [](const auto&) {});
  RawClient client(server.port());
  client.Send(kGet);
  EXPECT_EQ(StatusOf(client.ReadResponse()), 500);
}

TEST(HttpServer, NeverSendsAHeaderThatBreaksTheMessage) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response = TextResponse(200, "ok");
    const std::string value = exchange->request().path == "/bad" ? "v\r\nX-Injected: yes" : "v";
    response.headers.push_back({"X-A", value});
    exchange->Respond(std::move(response));
  });
  RawClient client(server.port());
  client.Send("GET /good HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(client.ReadResponse().find("X-A: v\r\n"), std::string::npos);
  client.Send("GET /bad HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string response = client.ReadResponse();
  EXPECT_EQ(StatusOf(response), 500);
  EXPECT_EQ(response.find("Injected"), std::string::npos);
}

TEST(HttpServer, DrainFinishesWhatIsInFlight) {
  Parking parking;
  TestServer server({}, parking.Handler());
  RawClient idle(server.port());
  RawClient busy(server.port());
  busy.Send(kGet);
  parking.Await();
  std::promise<void> drained;
  server.loop().Post([&] { server.server().Drain(seconds(60), [&] { drained.set_value(); }); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  server.OnLoop([&] { return parking.parked[0]->Respond(TextResponse(200, "done")), 0; });
  const std::string response = busy.ReadToEnd();
  EXPECT_EQ(BodyOf(response), "done");
  EXPECT_TRUE(Closes(response));
  busy.Close();
  drained.get_future().get();
  server.OnLoop([&] { return parking.parked.clear(), 0; });
}

TEST(HttpServer, DrainEndsAfterItsGrace) {
  Parking parking;
  TestServer server({}, parking.Handler());
  RawClient busy(server.port());
  busy.Send(kGet);
  parking.Await();
  std::promise<void> drained;
  server.loop().Post(
      [&] { server.server().Drain(milliseconds(20), [&] { drained.set_value(); }); });
  drained.get_future().get();
  EXPECT_EQ(busy.ReadToEnd(), "");
  EXPECT_TRUE(server.OnLoop([&] { return parking.parked[0]->gone(); }));
  server.OnLoop([&] { return parking.parked.clear(), 0; });
}

TEST(HttpServer, DestroyedWithRequestsInFlight) {
  Parking parking;
  {
    TestServer server({}, parking.Handler());
    RawClient client(server.port());
    client.Send(kGet);
    parking.Await();
  }
  parking.parked[0]->Respond(TextResponse(200, "to nobody"));
}

TEST(HttpServer, BindFailuresSayWhereAndWhatToDo) {
  TestServer first;
  EventLoop loop;
  HttpServerOptions options;
  options.port = first.port();
  const auto taken = HttpServer::Start(loop, options, nullptr, nullptr);
  ASSERT_FALSE(taken.ok());
  const std::string place = fmt::format("127.0.0.1:{}", first.port());
  EXPECT_NE(taken.error().message.find(place), std::string::npos) << taken.error().message;
  EXPECT_NE(taken.error().message.find("another port"), std::string::npos);
  options.host = "192.0.2.1";  // of nobody (RFC 5737)
  const auto foreign = HttpServer::Start(loop, options, nullptr, nullptr);
  ASSERT_FALSE(foreign.ok());
  EXPECT_NE(foreign.error().message.find("address of this machine"), std::string::npos);
}

void AnswerPeer(const std::shared_ptr<HttpExchange>& exchange) {
  exchange->Respond(TextResponse(200, exchange->request().peer));
}

HttpServerOptions Everywhere() {
  HttpServerOptions options;
  options.host = "";
  return options;
}

TEST(HttpServer, WithoutAHostItAnswersOnEveryIpv4Address) {
  TestServer server(Everywhere(), &AnswerPeer);
  RawClient client(server.port());
  client.Send(kGet);
  EXPECT_TRUE(BodyOf(client.ReadResponse()).starts_with("127.0.0.1:"));
}

TEST(HttpServer, WithoutAHostItAnswersOnEveryIpv6Address) {
  if (!HasIpv6Loopback()) GTEST_SKIP() << "this machine has no ::1";
  TestServer server(Everywhere(), &AnswerPeer);
  RawClient client(Ipv6Loopback(server.port()));
  client.Send(kGet);
  EXPECT_TRUE(BodyOf(client.ReadResponse()).starts_with("[::1]:"));
}

// Makes this thread's kernel one without IPv6.
bool TakeIpv6Away() {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(HttpServer, WithoutAHostItNeedsNoIpv6) {
  bool taken = false;
  std::thread([&taken] {
    taken = TakeIpv6Away();
    if (!taken) return;
    EventLoop loop;
    const auto server = HttpServer::Start(loop, Everywhere(), nullptr, nullptr);
    ASSERT_TRUE(server.ok()) << server.error().message;
    RawClient client((*server)->port());
  }).join();
  if (!taken) GTEST_SKIP() << "this machine allows no seccomp filter";
}

TEST(HttpServer, TakesAnInheritedSocket) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(listen(fd, 16), 0);
  HttpServerOptions options;
  options.listen_fd = fd;
  TestServer server(options);
  ASSERT_NE(server.port(), 0);
  RawClient client(server.port());
  client.Send(kGet);
  EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
}

}  // namespace
}  // namespace parallelrun
