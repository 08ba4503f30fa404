// A coordinator as the operator meets it: a real server with the certificate of a job, and an
// answer that the test sets. The operator's key is 32 times "k".
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "operator/coordinator_client.h"
#include "operator/credentials.h"
#include "tests/unit/base/http/fixture.h"

namespace parallelrun::operators {

class FakeCoordinator {
 public:
  // Clients judge certificates by the real time.
  explicit FakeCoordinator(const std::string& uid, bool silent = false)
      : FakeCoordinator({"team", "digits", uid, SystemClock().WallNow()}, silent) {}
  explicit FakeCoordinator(const JobIdentity& job, bool silent = false)
      : folder_(std::filesystem::temp_directory_path() /
                ("operator_client." + std::to_string(getpid()) + "." + job.uid)),
        identity_(job),
        credentials_(
            *DeriveCredentials({std::string(32, 'k')}, identity_, SystemClock().WallNow())),
        silent_(silent) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "tls.crt") << credentials_.tls_pem;
    std::ofstream(folder_ / "tls.key") << credentials_.tls_key_pem;
    HttpServerOptions options;
    options.tls_chain_file = folder_ / "tls.crt";
    options.tls_key_file = folder_ / "tls.key";
    server_ = std::make_unique<TestServer>(
        options, [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(exchange); });
  }
  ~FakeCoordinator() {
    server_.reset();
    held_.clear();
    std::filesystem::remove_all(folder_);
  }

  uint16_t port() const { return server_->port(); }
  CoordinatorAddress address() const {
    return {"pod-" + identity_.uid, "https://127.0.0.1:" + std::to_string(port()),
            credentials_.server_name, credentials_.ca_pem, credentials_.operator_token};
  }
  void Answer(int status, const std::string& body, HttpHeaders headers = {}) {
    const std::lock_guard lock(mutex_);
    response_.status = status;
    response_.body = body;
    response_.headers = std::move(headers);
  }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  // Waits for `count` requests.
  void WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(came_.wait_for(lock, std::chrono::milliseconds(kPatienceMs),
                               [&] { return requests_.size() >= count; }));
  }

 private:
  void Handle(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.path + " " +
                        std::string(request.Header("authorization")) + " " + request.body);
    came_.notify_all();
    if (silent_) {
      held_.push_back(exchange);
    } else {
      exchange->Respond(response_);
    }
  }

  const std::filesystem::path folder_;
  const JobIdentity identity_;
  const JobCredentials credentials_;
  const bool silent_;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  HttpResponse response_{200, "application/json", {}, R"({"state": "Running"})"};
  std::vector<std::string> requests_;
  std::vector<std::shared_ptr<HttpExchange>> held_;
  std::unique_ptr<TestServer> server_;
};

}  // namespace parallelrun::operators
