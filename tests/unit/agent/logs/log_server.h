// For tests of what an agent does with logs: a server that keeps them, and logs to send.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "base/http/client.h"
#include "base/http/server.h"
#include "base/http/target.h"

namespace parallelrun::agent {

constexpr uint64_t kMiB = uint64_t{1} << 20;

inline int OpenAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// The lines "0\n", "1\n", … up to at least `bytes`.
inline std::string Counting(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  return text;
}

// Keeps what node 0 puts, as a coordinator does.
class LogServer {
 public:
  LogServer() {
    auto started = HttpServer::Start(
        loop_, {}, [](const HttpRequest&) { return size_t{8} << 20; },
        [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(*exchange); });
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LogServer() {
    loop_.Stop();
    thread_.join();
  }
  LogServer(const LogServer&) = delete;
  LogServer& operator=(const LogServer&) = delete;

  std::unique_ptr<HttpClient> Client() const {
    HttpClientOptions options;
    options.base_url = "http://127.0.0.1:" + std::to_string(port_);
    return std::move(*HttpClient::Make(options));
  }
  // Until the file is that.
  void Await(const std::string& name, const std::string& text) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(60), [&] { return files[name] == text; }))
        << name << " is " << files[name];
  }

  int unavailable = 0;  // set it first: so many answers of 503 come first
  // Read these after Finish.
  std::map<std::string, std::string> files;
  int requests = 0;
  size_t largest = 0;   // bytes of one request
  size_t received = 0;  // bytes
  size_t most = 0;      // bytes of all files together, ever

 private:
  void Handle(HttpExchange& exchange) {
    const std::lock_guard lock(mutex_);
    const HttpRequest& request = exchange.request();
    ++requests;
    if (unavailable > 0) {
      --unavailable;
      return exchange.Respond(TextResponse(503, "later"));
    }
    const auto segments = PathSegments(request.path);
    if (!segments.ok() || segments->size() < 5) {
      return exchange.Respond(TextResponse(400, "bad path"));
    }
    std::string name = (*segments)[4];
    for (size_t i = 5; i < segments->size(); ++i) name += "/" + (*segments)[i];
    if (name.find("forbidden") != std::string::npos) {
      return exchange.Respond(TextResponse(403, "no"));
    }
    Keep(files[name], request);
    changed_.notify_all();
    exchange.Respond(TextResponse(200, "ok"));
  }
  void Keep(std::string& file, const HttpRequest& request) {
    const size_t offset = std::stoul(QueryParameter(request.query, "offset").value_or("x"));
    if (QueryParameter(request.query, "truncate") == "true") file.clear();
    EXPECT_EQ(offset, file.size()) << request.path;  // nothing is lost, nothing twice
    file += request.body;
    largest = std::max(largest, request.body.size());
    received += request.body.size();
    size_t all = 0;
    for (const auto& [name, bytes] : files) all += bytes.size();
    most = std::max(most, all);
  }

  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace parallelrun::agent
