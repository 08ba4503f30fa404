// The elector and the event recorder, their threads and calls included.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "kube/events.h"
#include "kube/leader_election.h"

#include "tests/unit/kube/server_fixture.h"

namespace parallelrun::kube {
namespace {

using Json = nlohmann::json;

// Keeps one Lease, as an API server would.
class LeaseServer {
 public:
  void Serve(ScriptedConnection& connection) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      const std::lock_guard lock(mutex);
      if (down) {
        connection.Respond(500, "");
        continue;
      }
      const std::string body = request.substr(request.find("\r\n\r\n") + 4);
      if (!thief.empty() && request.starts_with("PUT")) {
        lease["spec"]["holderIdentity"] = std::exchange(thief, "");
        lease["metadata"]["resourceVersion"] = "999";
      }
      if (request.starts_with("GET")) {
        connection.Respond(lease.is_null() ? 404 : 200, lease.is_null() ? "" : lease.dump());
        continue;
      }
      Json next = Json::parse(body);
      const std::string version =
          lease.is_null() ? "" : lease["metadata"]["resourceVersion"].get<std::string>();
      if (next["metadata"].value("resourceVersion", "") != version) {
        connection.Respond(409, "");
        continue;
      }
      lease = std::move(next);
      lease["metadata"]["resourceVersion"] = std::to_string(++writes);
      connection.Respond(200, lease.dump());
      written.notify_all();
    }
  }
  void UntilWrites(int count) {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(written.wait_for(lock, milliseconds(kPatienceMs), [&] { return writes >= count; }));
  }
  void Rob(const std::string& by) {
    const std::lock_guard lock(mutex);
    thief = by;
  }
  std::string holder() {
    const std::lock_guard lock(mutex);
    return lease.is_null() ? "" : lease["spec"]["holderIdentity"].get<std::string>();
  }
  std::mutex mutex;
  std::condition_variable written;
  Json lease;
  std::string thief;  // takes the lease right before the next update
  int writes = 0;
  bool down = false;
};

class KubeElector : public KubeServer {
 protected:
  KubeElector()
      : server_(pair_, [this](ScriptedConnection& connection) { leases_.Serve(connection); }) {}
  // `term`: the renew deadline.
  std::unique_ptr<LeaderElector> Run(Client& client, const std::string& identity, Duration term,
                                     std::promise<void>* started,
                                     std::promise<void>* lost = nullptr) {
    ElectionOptions options;
    options.lease = {"ns", "operator"};
    options.identity = identity;
    options.times = {term + seconds(1), term, milliseconds(20)};
    options.on_started = [started] { started->set_value(); };
    options.on_lost = [lost] {
      if (lost != nullptr) lost->set_value();
    };
    auto elector = LeaderElector::Start(client, options);
    EXPECT_TRUE(elector.ok());
    return std::move(*elector);
  }
  LeaseServer leases_;
  ScriptedServer server_;
};

TEST_F(KubeElector, ALeaseThatIsGivenUpGoesToTheNextAtOnce) {
  const auto client = Connect(server_);
  std::promise<void> first_started, second_started;
  const auto first = Run(*client, "one", seconds(30), &first_started);
  first_started.get_future().get();
  EXPECT_TRUE(first->leading());
  const auto second = Run(*client, "two", seconds(30), &second_started);
  EXPECT_FALSE(second->leading());
  first->Stop(true);
  EXPECT_FALSE(first->leading());
  second_started.get_future().get();
  EXPECT_EQ(leases_.holder(), "two");
  second->Stop(false);
  EXPECT_EQ(leases_.holder(), "two") << "kept until it runs out";
}

TEST_F(KubeElector, AnIdentityThatIsStartedAgainHasItsLeaseStill) {
  const auto client = Connect(server_);
  std::promise<void> before_started, after_started;
  // Killed: nothing is given up. Another identity would wait for the lease to run out.
  const auto before = Run(*client, "pod_uid", seconds(300), &before_started);
  before_started.get_future().get();
  before->Stop(false);
  const auto after = Run(*client, "pod_uid", seconds(300), &after_started);
  after_started.get_future().get();
  EXPECT_TRUE(after->leading());
  const std::lock_guard lock(leases_.mutex);
  EXPECT_EQ(leases_.lease["spec"]["leaseTransitions"], 0);
}

TEST_F(KubeElector, AStolenLeaseIsLostAtTheNextRenewal) {
  const auto client = Connect(server_);
  std::promise<void> started, lost;
  const auto elector = Run(*client, "one", seconds(30), &started, &lost);
  started.get_future().get();
  {
    const std::lock_guard lock(leases_.mutex);
    leases_.lease["spec"]["holderIdentity"] = "thief";
    leases_.lease["metadata"]["resourceVersion"] = "999";
  }
  lost.get_future().get();
  EXPECT_FALSE(elector->leading());
  elector->Stop(true);
  EXPECT_EQ(leases_.holder(), "thief") << "what is not ours is not given up";
}

TEST_F(KubeElector, ARenewalThatMeetsAnotherVersionLooksAgain) {
  const auto client = Connect(server_);
  std::promise<void> started;
  const auto elector = Run(*client, "one", seconds(30), &started);
  started.get_future().get();
  int before = 0;
  {
    // Somebody wrote a label: the holder is who it was.
    const std::lock_guard lock(leases_.mutex);
    leases_.lease["metadata"]["resourceVersion"] = "999";
    before = leases_.writes;
  }
  leases_.UntilWrites(before + 2);
  EXPECT_TRUE(elector->leading());
  EXPECT_EQ(leases_.holder(), "one");
}

TEST_F(KubeElector, ALeaseThatSomebodyElseHasTakenIsNotGivenUp) {
  const auto client = Connect(server_);
  std::promise<void> started;
  const auto elector = Run(*client, "one", seconds(30), &started);
  started.get_future().get();
  leases_.Rob("thief");  // at the next write, as if that one had come first
  elector->Stop(true);
  EXPECT_EQ(leases_.holder(), "thief");
}

TEST_F(KubeElector, AServerThatFailsEndsTheTermAtTheRenewDeadline) {
  const auto client = Connect(server_);
  std::promise<void> started, lost;
  const auto elector = Run(*client, "one", milliseconds(300), &started, &lost);
  started.get_future().get();
  {
    const std::lock_guard lock(leases_.mutex);
    leases_.down = true;
  }
  lost.get_future().get();
  EXPECT_FALSE(elector->leading());
}

TEST_F(KubeServer, TheRecorderNeverBlocksAndWritesInOrder) {
  std::mutex mutex;
  std::vector<std::string> written;
  std::promise<void> go;
  const std::shared_future<void> open = go.get_future().share();
  ScriptedServer server(pair_, [&](ScriptedConnection& connection) {
    for (std::string request; !(request = connection.ReadRequest()).empty();) {
      open.wait();
      const bool patch = request.starts_with("PATCH");
      if (patch) {  // the event has been forgotten by the server: it is made again
        connection.Respond(404, "");
        continue;
      }
      const Json event = Json::parse(request.substr(request.find("\r\n\r\n") + 4));
      const std::lock_guard lock(mutex);
      written.push_back(event["message"].get<std::string>() + " x" + event["count"].dump());
      connection.Respond(201, "{}");
    }
  });
  const auto client = Connect(server);
  EventRecorder recorder(*client, "operator");
  Event event;
  event.kind = "Pod";
  event.object = {"ns", "a"};
  event.reason = "Tested";
  for (const char* message : {"one", "two", "one"}) {
    event.message = message;
    recorder.Record(event);
  }
  for (size_t i = 0; i < kEventQueue + 10; ++i) {  // the thread stands before the closed server
    event.object.name = "other" + std::to_string(i % 3);
    recorder.Record(event);
  }
  EXPECT_GE(recorder.dropped(), 10u);
  go.set_value();
  recorder.Stop(seconds(20));
  const std::lock_guard lock(mutex);
  ASSERT_GE(written.size(), 3u);
  EXPECT_EQ(written[0], "one x1");
  EXPECT_EQ(written[1], "two x1");
  EXPECT_EQ(written[2], "one x2");
}

}  // namespace
}  // namespace parallelrun::kube
