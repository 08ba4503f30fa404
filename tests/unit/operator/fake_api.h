// An API server that keeps objects by path and refuses what the test says. It lists what the test
// gives it and lets watches wait for what the test tells them. What only a real one can tell is in
// tests/controlplane.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/time.h"
#include "kube/client.h"

namespace parallelrun::operators {

inline HttpResponse StatusAnswer(int code, const std::string& reason, const std::string& message) {
  using nlohmann::json;
  HttpResponse response;
  response.status = code;
  response.content_type = "application/json";
  response.body = json{{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Failure"},
                       {"reason", reason}, {"message", message}, {"code", code}}
                      .dump();
  return response;
}

class FakeApi {
 public:
  using json = nlohmann::json;
  // Answers in place of the store; nothing: the store answers.
  using Refusal = std::function<std::optional<HttpResponse>(const HttpRequest&)>;

  FakeApi() {
    std::promise<uint16_t> port;
    thread_ = std::thread([this, &port] {
      auto server = HttpServer::Start(
          loop_, {},
          [](const HttpRequest&) -> std::variant<size_t, HttpResponse> { return size_t{1} << 20; },
          [this](const std::shared_ptr<HttpExchange>& exchange) {
            if (std::optional<HttpResponse> answer = Answer(exchange->request())) {
              exchange->Respond(std::move(*answer));
            } else {
              held_.push_back(exchange);
              Feed();
            }
          });
      port.set_value(server.ok() ? (*server)->port() : uint16_t{0});
      loop_.Run();
    });
    kube::ClientConfig config;
    config.server = "http://127.0.0.1:" + std::to_string(port.get_future().get());
    config.source = "test";
    config.credentials = kube::FixedCredential({});
    config.ca_pem = [] { return std::string(); };
    auto made = kube::Client::Make(std::move(config));
    EXPECT_TRUE(made.ok());
    client_ = std::move(*made);
  }
  ~FakeApi() {
    client_.reset();
    loop_.Stop();
    thread_.join();
  }

  kube::Client& client() { return *client_; }
  void Refuse(Refusal refusal) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(refusal);
  }
  void Put(const std::string& path, json object) {
    const std::lock_guard lock(mutex_);
    objects_[path] = std::move(object);
  }
  void Erase(const std::string& path) {
    const std::lock_guard lock(mutex_);
    objects_.erase(path);
  }
  json Stored(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(path);
    return found == objects_.end() ? json() : found->second;
  }
  // What a list of this path shows, at resourceVersion 1.
  void List(const std::string& path, std::vector<json> items) {
    const std::lock_guard lock(mutex_);
    lists_[path] = {{"kind", "List"}, {"metadata", {{"resourceVersion", "1"}}}, {"items", items}};
  }
  // An event for the watch of this path: "ADDED", "MODIFIED" or "DELETED". The watch ends with it,
  // as one may at any time.
  void Tell(const std::string& path, const std::string& type, const json& object) {
    const std::string line = json{{"type", type}, {"object", object}}.dump() + "\n";
    loop_.Post([this, path, line] {
      news_[path] += line;
      Feed();
    });
  }
  // "POST /api/v1/...", oldest first, without lists and watches, and forgets them.
  std::vector<std::string> Requests() {
    const std::lock_guard lock(mutex_);
    return std::exchange(requests_, {});
  }
  json last_body() {
    const std::lock_guard lock(mutex_);
    return last_body_;
  }

 private:
  // Hands what was told to the watches that are there.
  void Feed() {
    std::erase_if(held_, [this](const std::shared_ptr<HttpExchange>& watch) {
      if (watch->gone()) return true;
      const auto told = news_.find(watch->request().path);
      if (told == news_.end()) return false;
      HttpResponse response;
      response.content_type = "application/json";
      response.body = std::move(told->second);
      news_.erase(told);
      watch->Respond(std::move(response));
      return true;
    });
  }

  // Nothing: a watch, which is held until the test tells it something.
  std::optional<HttpResponse> Answer(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    if (const auto list = lists_.find(request.path); list != lists_.end()) {
      if (request.query.find("watch=true") != std::string::npos) return std::nullopt;
      HttpResponse response;
      response.content_type = "application/json";
      response.body = list->second.dump();
      return response;
    }
    requests_.push_back(request.method + " " + request.path);
    last_body_ = json::parse(request.body, nullptr, false);
    if (refusal_) {
      if (auto refused = refusal_(request)) return *refused;
    }
    std::string path = request.path;
    if (request.method == "POST") path += "/" + last_body_["metadata"].value("name", "");
    const bool there = objects_.contains(path);
    if (request.method == "POST" && there) {
      return StatusAnswer(409, "AlreadyExists", path + " already exists");
    }
    if (request.method == "GET" && !there) return StatusAnswer(404, "NotFound", "not found");
    if (request.method == "POST" || request.method == "PATCH") {
      last_body_["metadata"]["resourceVersion"] = std::to_string(++version_);
      last_body_["metadata"]["uid"] = "uid-" + std::to_string(version_);
      last_body_["metadata"]["creationTimestamp"] = Rfc3339(SystemClock().WallNow());
      objects_[path] = last_body_;
    }
    HttpResponse response;
    response.content_type = "application/json";
    response.body = objects_[path].dump();
    if (request.method == "DELETE") objects_.erase(path);
    return response;
  }

  EventLoop loop_;
  std::mutex mutex_;
  Refusal refusal_;
  std::map<std::string, json> objects_;
  std::map<std::string, json> lists_;
  std::vector<std::shared_ptr<HttpExchange>> held_;  // watches; the loop's thread only, as
  std::map<std::string, std::string> news_;          // lines of events by path
  std::vector<std::string> requests_;
  json last_body_;
  int version_ = 100;
  std::thread thread_;
  std::unique_ptr<kube::Client> client_;
};

}  // namespace parallelrun::operators
