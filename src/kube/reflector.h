// Keeps a sink in step with one collection of the API server: list, then watch, for ever, with
// client-go's rules and figures. What it does about each failure stands in README.md.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/api_error.h"
#include "kube/client.h"
#include "kube/watch.h"

namespace parallelrun::kube {

// client-go's figures (tools/cache/reflector.go).
inline constexpr Duration kMinWatch = seconds(300);  // the server ends a watch after
inline constexpr Duration kMaxWatch = seconds(600);  //   a random time between these
inline constexpr Duration kMinBackoff = milliseconds(800);
inline constexpr Duration kMaxBackoff = seconds(30);     // doubled by the jitter at most
inline constexpr Duration kBackoffReset = seconds(120);  // of health
inline constexpr Duration kShortWatch = seconds(1);      // without an event: counts as a failure
// More than two bookmark periods of about a minute. A false alarm costs a new watch, no list.
inline constexpr Duration kWatchSilence = seconds(150);

struct WatchOptions {
  std::string resource_version;
  bool send_initial_events = false;  // watch-list
  Duration timeout{};                // timeoutSeconds
};

// The server, as a reflector sees it: one collection.
class ListWatcher {
 public:
  virtual ~ListWatcher() = default;
  // One page of the present state; `limit` 0: all at once.
  virtual ApiResult<ListPage> List(const std::string& continue_token, int limit) = 0;
  virtual ApiResult<std::unique_ptr<EventSource>> Watch(const WatchOptions& options) = 0;
};

struct Selection {
  Resource resource;
  std::string name_space;  // "": the whole cluster
  std::string label_selector;
  std::string field_selector;
  bool metadata_only = false;
};
// `client` must outlive it.
std::unique_ptr<ListWatcher> MakeListWatcher(Client& client, Selection selection);

// Where the objects go; called on the reflector's thread only.
class ReflectorSink {
 public:
  virtual ~ReflectorSink() = default;
  // A list comes in pieces: staged objects are not visible until CommitStage, which replaces
  // everything that the sink had (and so deletes what was not staged).
  virtual void BeginStage() = 0;
  virtual void Stage(const nlohmann::json& object) = 0;
  virtual void Unstage(const nlohmann::json& object) = 0;
  virtual void CommitStage(const std::string& resource_version) = 0;
  virtual void Upsert(const nlohmann::json& object) = 0;
  virtual void Remove(const nlohmann::json& object) = 0;
  // Everything up to here has been seen.
  virtual void Reached(const std::string& resource_version) = 0;
};

struct ReflectorStats {
  uint64_t lists = 0;  // whole lists or watch-lists that were committed
  uint64_t watches = 0;
  uint64_t events = 0;
  uint64_t errors = 0;
  std::string last_error;  // "" while all is well
};

struct ReflectorOptions {
  std::string name;  // for the log: "pods"
  bool watch_list = true;
  int page_limit = 500;
  std::shared_ptr<const Clock> clock;
  std::function<double()> random;       // in [0, 1); empty: the system's
  std::function<void(Duration)> sleep;  // for tests, in place of waiting; empty: waits
};

// Thread-safe but for Run, which is for one thread, once.
class Reflector {
 public:
  // `source` and `sink` must outlive it.
  Reflector(ListWatcher& source, ReflectorSink& sink, ReflectorOptions options);

  // Lists and watches until Stop. Throws nothing.
  void Run();
  // Run returns soon: a wait and a watch end at once, a list call within its time-out, unless the
  // client is cancelled too.
  void Stop();
  ReflectorStats stats() const;

 private:
  enum class Next { kWatch, kList };

  bool ListOnce();
  bool ListPages();
  bool WatchList();
  Next WatchOnce();
  Next AfterError(const ApiError& error);
  void Apply(const WatchEvent& event);
  std::unique_ptr<EventSource> Open(const WatchOptions& options, std::optional<ApiError>& error);
  void Close(std::unique_ptr<EventSource> source);
  Duration WatchTimeout();
  void BackOff(const ApiError& error);
  void Wait(Duration duration);
  void Note(const ApiError& error);
  void Healthy();
  bool stopped() const;

  ListWatcher& source_;
  ReflectorSink& sink_;
  const ReflectorOptions options_;
  // Run's thread only.
  std::string resource_version_;
  std::unique_ptr<EventSource> stream_;  // that a watch-list left open
  bool watch_list_;
  int expired_in_a_row_ = 0;  // without an event in between
  Duration backoff_ = kMinBackoff;
  std::optional<Instant> last_backoff_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stop_ = false;
  EventSource* current_ = nullptr;
  ReflectorStats stats_;
};

}  // namespace parallelrun::kube
