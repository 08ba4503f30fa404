// For tests of the client and the informer: both, connected to a scripted server.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/informer.h"
#include "tests/unit/kube/scripted_server.h"

namespace parallelrun::kube {

inline const Resource kPods{"", "v1", "pods"};

class KubeServer : public testing::Test {
 protected:
  using Json = nlohmann::json;
  struct Digest {
    std::string value;
  };

  static void SetUpTestSuite() { rest_client::InitRestThread(); }

  std::unique_ptr<Client> Connect(const ScriptedServer& server,
                                  std::shared_ptr<CredentialSource> credentials = nullptr) {
    ClientConfig config;
    config.server = server.url();
    config.credentials = std::move(credentials);
    config.ca_pem = [this] { return pair_.certificate; };
    ClientOptions options;
    options.on_request = [this](const RequestDone& done) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(done.verb + " " + done.resource + " " + std::to_string(done.status));
      changed_.notify_all();
    };
    auto client = Client::Make(std::move(config), std::move(options));
    EXPECT_TRUE(client.ok());
    return std::move(*client);
  }
  std::unique_ptr<Informer<Digest>> Watch(Client& client) {
    InformerOptions<Digest> options;
    options.resource = kPods;
    options.digest = [](const Json& object) {
      return std::optional<Digest>(Digest{object.at("value").get<std::string>()});
    };
    options.handler = [this](const InformerEvent<Digest>& event) {
      const std::lock_guard lock(mutex_);
      if (event.after) {
        seen_[event.key] = event.after->value;
      } else {
        seen_.erase(event.key);
      }
      changed_.notify_all();
    };
    return std::make_unique<Informer<Digest>>(client, options);
  }
  // Waits until the handler was told of just these.
  void ExpectSeen(const std::map<std::string, std::string>& expected) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, milliseconds(kPatienceMs), [&] {
      return seen_ == expected;
    })) << testing::PrintToString(seen_);
  }

  const TestCertificate pair_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> seen_;
  std::vector<std::string> requests_;
};

}  // namespace parallelrun::kube
