// StartServer answers HTTP while a coordinator starts, which takes long where a ledger is long or
// where a slow volume is asked for each of a million files: the probes hear that it lives for as
// long as it goes on, nodes and people that it is to come (docs/coordinator-api.md, "While it
// starts"). A start of a moment is over before the ports are opened.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::coordinator {

class StartServer {
 public:
  struct Options {
    HttpServerOptions http;  // an inherited socket stays the caller's
    std::optional<HttpServerOptions> metrics_http;
    std::string key;                   // of the job
    Duration open_after = seconds(1);  // until then who calls waits, or is refused
    // Without a step: it does not live. One step may list a large folder.
    Duration stall_limit = std::chrono::minutes(30);
  };

  // A port that cannot be opened is for CoordinatorServer to tell.
  explicit StartServer(Options options);
  // Closes the ports. On the thread that made it.
  ~StartServer();

  // What is done from now on, and what its steps are, for people: "reads the ledger", "records".
  // Thread-safe.
  void Begin(std::string doing, std::string steps);
  // A step of it is done. Thread-safe, cheap.
  void Step();

 private:
  void Open();
  void Watch();
  HttpResponse Answer(const HttpRequest& request);

  Options options_;
  const SystemClock clock_;
  EventLoop loop_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<HttpServer> metrics_http_;
  std::mutex mutex_;  // guards the next two and begun_
  std::string doing_ = "looks at its folders";
  std::string unit_ = "steps";
  std::atomic<uint64_t> steps_ = 0;  // of all that was begun
  uint64_t begun_ = 0;               // how many of them came before doing_
  uint64_t seen_ = 0;                // the last Watch, and when it saw another number
  Instant stepped_at_ = clock_.Now();
  Thread thread_;
};

}  // namespace parallelrun::coordinator
