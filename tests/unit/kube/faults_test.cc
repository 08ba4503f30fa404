// The informer and its streams against faults that a real API server does not produce.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <set>

#include "tests/unit/kube/server_fixture.h"

namespace parallelrun::kube {
namespace {

using Json = nlohmann::json;

std::string Line(const char* type, const std::string& name, const std::string& version,
                 const std::string& value = "v") {
  return Json{{"type", type},
              {"object",
               {{"metadata", {{"namespace", "ns"}, {"name", name}, {"resourceVersion", version}}},
                {"value", value}}}}
             .dump() +
         "\n";
}
std::string InitialEnd(const std::string& version) {
  return Json{{"type", "BOOKMARK"},
              {"object",
               {{"metadata",
                 {{"resourceVersion", version},
                  {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}}}
             .dump() +
         "\n";
}
bool IsWatchList(const std::string& request) {
  return request.find("sendInitialEvents=true") != std::string::npos;
}

TEST_F(KubeServer, CutMidLineGoesOnFromTheLastVersion) {
  std::mutex mutex;
  std::vector<std::string> seen;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    const std::string request = connection.ReadRequest();
    {
      const std::lock_guard lock(mutex);
      seen.push_back(request);
    }
    connection.BeginStream();
    if (IsWatchList(request)) {
      connection.Chunk(Line("ADDED", "a", "5") + InitialEnd("10"));
      const std::string line = Line("ADDED", "b", "11");
      connection.Chunk(line + Line("ADDED", "c", "12").substr(0, 20));
      return;  // cut
    }
    connection.Chunk(Line("ADDED", "c", "12"));
    connection.WaitForClient();
  });
  const auto client = Connect(server);
  const auto informer = Watch(*client);
  ExpectSeen({{"ns/a", "v"}, {"ns/b", "v"}, {"ns/c", "v"}});
  const std::lock_guard lock(mutex);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[1].find("resourceVersion=11"), std::string::npos) << "not 12: it was cut";
  EXPECT_EQ(informer->stats().lists, 1u);
}

TEST_F(KubeServer, GoneInsideA200StreamRelists) {
  std::atomic<int> lists{0};
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    const std::string request = connection.ReadRequest();
    if (!IsWatchList(request)) return;
    connection.BeginStream();
    if (lists++ == 0) {
      connection.Chunk(Line("ADDED", "a", "5") + InitialEnd("10"));
      connection.Chunk(
          R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})"
          "\n");
    } else {
      connection.Chunk(Line("ADDED", "b", "20") + InitialEnd("20"));
    }
    connection.WaitForClient();
  });
  const auto client = Connect(server);
  const auto informer = Watch(*client);
  ExpectSeen({{"ns/b", "v"}});
  EXPECT_EQ(lists, 2);
}

TEST_F(KubeServer, SilenceEndsTheStream) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    connection.Chunk(Line("ADDED", "a", "5"));
    connection.WaitForClient();
  });
  const auto client = Connect(server);
  Duration silence = milliseconds(50);
  auto stream = client->Watch(kPods, "ns", "watch=true", silence);
  ASSERT_TRUE(stream.ok());
  // On a busy machine the server itself may be silent for so long.
  while (!(*stream)->Next().ok()) {
    silence *= 4;
    ASSERT_LT(silence, seconds(60));
    stream = client->Watch(kPods, "ns", "watch=true", silence);
    ASSERT_TRUE(stream.ok());
  }
  const auto silent = (*stream)->Next();
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, Code::kTimeout);
  EXPECT_EQ(silent.error().status, 0);
}

TEST_F(KubeServer, ASlowDripIsOneEvent) {
  ScriptedServer server(pair_, [](ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.BeginStream();
    for (const char c : Line("ADDED", "a", "5")) connection.Chunk(std::string(1, c));
    connection.EndStream();
    connection.WaitForClient();
  });
  const auto client = Connect(server);
  const auto stream = client->Watch(kPods, "ns", "watch=true", seconds(10));
  ASSERT_TRUE(stream.ok());
  const auto event = (*stream)->Next();
  ASSERT_TRUE(event.ok() && event->has_value());
  EXPECT_EQ((*event)->type, WatchEventType::kAdded);
  const auto end = (*stream)->Next();
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST_F(KubeServer, BadJsonAndLinesAbove8MiBEndTheStream) {
  for (const bool long_line : {false, true}) {
    ScriptedServer server(pair_, [long_line](ScriptedConnection& connection) {
      connection.ReadRequest();
      connection.BeginStream();
      if (!long_line) connection.Chunk("{\"type\": \"ADDED\", \n");
      const std::string piece(size_t{1} << 20, 'x');
      while (long_line && connection.Chunk(piece)) {
      }
      connection.WaitForClient();
    });
    const auto client = Connect(server);
    const auto stream = client->Watch(kPods, "ns", "watch=true", seconds(10));
    ASSERT_TRUE(stream.ok());
    const auto next = (*stream)->Next();
    ASSERT_FALSE(next.ok());
    EXPECT_EQ(next.error().code, Code::kCorrupt) << next.error().message;
  }
}

TEST_F(KubeServer, A429OnAWatchKeepsTheVersion) {
  std::atomic<int> watches{0};
  std::mutex mutex;
  std::set<std::string> versions;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      if (IsWatchList(request)) {
        connection.BeginStream();
        connection.Chunk(Line("ADDED", "a", "5") + InitialEnd("9") + Line("MODIFIED", "a", "10"));
        connection.EndStream();
        continue;
      }
      const size_t at = request.find("resourceVersion=");
      {
        const std::lock_guard lock(mutex);
        versions.insert(request.substr(at, 18));
      }
      if (watches++ == 0) {
        connection.Respond(429, "", "Retry-After: 0\r\n");
      } else {
        connection.BeginStream();
        connection.Chunk(Line("MODIFIED", "a", "11", "w"));
        connection.WaitForClient();
        return;
      }
    }
  });
  const auto client = Connect(server);
  const auto informer = Watch(*client);
  ExpectSeen({{"ns/a", "w"}});
  const std::lock_guard lock(mutex);
  EXPECT_EQ(versions, std::set<std::string>{"resourceVersion=10"});
  EXPECT_EQ(informer->stats().lists, 1u);
}

TEST_F(KubeServer, StopEndsAWatchAndCancelEndsCalls) {
  std::promise<void> watching;
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    const std::string request = connection.ReadRequest();
    if (IsWatchList(request)) {
      connection.BeginStream();
      connection.Chunk(InitialEnd("10"));
      watching.set_value();
    }
    connection.WaitForClient();
  });
  const auto client = Connect(server);
  auto informer = Watch(*client);
  watching.get_future().get();
  const auto begun = std::chrono::steady_clock::now();
  informer->Stop();
  auto call = std::async(std::launch::async, [&] { return client->Get(kPods, {"ns", "a"}); });
  client->Cancel();
  EXPECT_FALSE(call.get().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begun, seconds(25)) << "a call may take 30";
  EXPECT_EQ(client->Get(kPods, {"ns", "a"}).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace parallelrun::kube
