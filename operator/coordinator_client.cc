#include "operator/coordinator_client.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "base/random.h"
#include "kube/resource.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr size_t kMaxAnswer = size_t{1} << 20;

// Between 0.8 and 1.2 times `period`, so that a thousand jobs do not call at the same moment.
Duration Jittered(Duration period) {
  return period * 8 / 10 + period * static_cast<int64_t>(RandomU64() % 401) / 1000;
}

Result<std::unique_ptr<rest_client::RestClient>> MakeClient(const CoordinatorAddress& address) {
  rest_client::RestClientOptions options;
  options.base_url = address.url;
  options.token = [token = address.token] { return token; };
  options.ca_pem = address.ca_pem;
  options.verify_host = address.server_name;
  options.user_agent = "parallelrun-operator";
  options.max_response_bytes = kMaxAnswer;
  return rest_client::RestClient::Make(std::move(options));
}

}  // namespace

struct CoordinatorPool::Entry {
  std::string job;
  CoordinatorAddress address;
  std::shared_ptr<rest_client::RestClient>
      client;  // made by the first call, off the caller's thread
  CoordinatorAnswer answer;
  std::string significant;
  std::string control;  // to be sent; "" for nothing
  Duration period{};
  Instant due{};
  Instant told{};  // when `changed` was last called
  int failures = 0;
  int64_t generation = 0;     // of the control that was last taken
  bool lost_control = false;  // a progress shows a lower generation than was acknowledged
  Due* queue = nullptr;       // that it waits in
  bool suspect = false;       // the call in flight came from suspect_
  bool in_flight = false;
  bool again = false;  // something to send came while a call was in flight
  bool forgotten = false;
};

struct CoordinatorPool::Outcome {
  std::shared_ptr<const json> progress;  // null: failed
  std::string error;
  bool answered = false;  // also when the answer was a refusal
};

std::string Significant(const json& progress) {
  json part = json::object();
  for (const char* key :
       {"epoch", "state", "verdict", "output", "paused", "listingDone", "controlGeneration"}) {
    if (const auto found = progress.find(key); found != progress.end()) part[key] = *found;
  }
  // An error's count is one of the growing numbers; that there is another error is not.
  part["errors"] = lenient::List(progress, "errors").size();
  json& registered = part["nodes"] = json::array();
  for (const json& node : lenient::List(progress, "nodes")) {
    if (!node.is_object()) continue;
    registered.push_back(
        {lenient::At(node, "index"), lenient::At(node, "registered"), lenient::At(node, "gaveUp")});
  }
  return part.dump(-1, ' ', false, json::error_handler_t::replace);
}

CoordinatorPool::CoordinatorPool(CoordinatorPoolOptions options, Changed changed)
    : options_(std::move(options)), changed_(std::move(changed)) {
  for (int i = 0; i < options_.threads; ++i)
    threads_.emplace_back("coordinators", [this] { Run(); });
}

CoordinatorPool::~CoordinatorPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& [job, entry] : entries_) {
      if (entry->client) entry->client->Cancel();
    }
  }
  wake_.notify_all();
  for (Thread& thread : threads_) thread.join();
}

void CoordinatorPool::Watch(const std::string& job, const CoordinatorAddress& address,
                            Duration period) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[job];
  if (entry && entry->address == address) {
    entry->period = period;
    return;
  }
  auto next = std::make_shared<Entry>();
  next->job = job;
  next->address = address;
  next->period = period;
  next->answer.pod_uid = address.pod_uid;
  next->answer.asked_since = options_.clock->WallNow();
  if (entry) {
    Void(*entry);
  }
  entry = std::move(next);
  Schedule(*entry, options_.clock->Now());
}

bool CoordinatorPool::Control(const std::string& job, const std::string& control) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(job);
  if (found == entries_.end()) return false;
  Entry& entry = *found->second;
  const bool taken =
      entry.control.empty() && !entry.lost_control && entry.answer.acknowledged == control;
  if (taken || entry.control == control) return false;
  entry.control = control;
  if (entry.in_flight) {
    entry.again = true;
  } else {
    Schedule(entry, options_.clock->Now());
  }
  return true;
}

void CoordinatorPool::Forget(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(job);
  if (found == entries_.end()) return;
  Void(*found->second);
  entries_.erase(found);
}

std::optional<CoordinatorAnswer> CoordinatorPool::Latest(const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(job);
  if (found == entries_.end()) return std::nullopt;
  return found->second->answer;
}

size_t CoordinatorPool::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

// With the lock held. What comes of a call in flight is not stored.
void CoordinatorPool::Void(Entry& entry) {
  entry.forgotten = true;
  if (entry.queue != nullptr) entry.queue->erase({entry.due, entry.job});
  if (entry.client) entry.client->Cancel();
}

// With the lock held, while no call is in flight.
void CoordinatorPool::Schedule(Entry& entry, Instant when) {
  if (entry.queue != nullptr) entry.queue->erase({entry.due, entry.job});
  entry.queue = entry.failures > 0 || !entry.answer.progress ? &suspect_ : &healthy_;
  entry.due = when;
  entry.queue->emplace(when, entry.job);
  wake_.notify_one();
}

std::shared_ptr<CoordinatorPool::Entry> CoordinatorPool::Take(std::unique_lock<std::mutex>& lock) {
  while (!stop_) {
    const Instant now = options_.clock->Now();
    const bool may_suspect = suspects_in_flight_ < std::max(1, options_.threads / 2);
    Duration wait = seconds(3600);
    for (Due* due : {&healthy_, &suspect_}) {
      if (due->empty() || (due == &suspect_ && !may_suspect)) continue;
      const auto first = due->begin();
      if (first->first > now) {
        wait = std::min(wait, first->first - now);
        continue;
      }
      std::shared_ptr<Entry> entry = entries_.at(first->second);
      due->erase(first);
      entry->queue = nullptr;
      entry->in_flight = true;
      entry->suspect = due == &suspect_;
      if (entry->suspect) ++suspects_in_flight_;
      return entry;
    }
    wake_.wait_for(lock, wait);
  }
  return nullptr;
}

CoordinatorPool::Outcome CoordinatorPool::Call(Entry& entry, const std::string& control) {
  std::shared_ptr<rest_client::RestClient> client;
  {
    const std::lock_guard lock(mutex_);
    client = entry.client;
  }
  if (!client) {
    Result<std::unique_ptr<rest_client::RestClient>> made = MakeClient(entry.address);
    if (!made.ok()) return {nullptr, made.error().message, false};
    client = std::move(*made);
    const std::lock_guard lock(mutex_);
    if (entry.forgotten || stop_) return {nullptr, "the job is gone", false};
    entry.client = client;
  }
  HttpRequest request;
  request.path = "/v1/progress";
  if (!control.empty()) {
    request.method = "PUT";
    request.path = "/v1/control";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = control;
  }
  const std::string path = request.path;
  const Result<HttpResponse> response = client->Send(std::move(request), options_.deadline);
  if (!response.ok()) return {nullptr, response.error().message, false};
  if (response->status != 200) {
    return {nullptr,
            fmt::format("{}{} answered {}: {}", entry.address.url, path, response->status,
                        Printable(response->body, kShown)),
            true};
  }
  std::optional<json> progress = ParseJson(response->body);
  if (!progress || !progress->is_object()) {
    return {nullptr, entry.address.url + path + " answered what is not a JSON object", true};
  }
  return {std::make_shared<const json>(std::move(*progress)), "", true};
}

void CoordinatorPool::Store(Entry& entry, Outcome outcome, const std::string& control) {
  std::string significant = outcome.progress ? Significant(*outcome.progress) : "";
  const Instant now = options_.clock->Now();
  bool tell = false;
  {
    const std::lock_guard lock(mutex_);
    entry.in_flight = false;
    if (entry.forgotten) return;
    CoordinatorAnswer& answer = entry.answer;
    // What the coordinator refuses is not repeated here: the next plan may say it otherwise.
    if (outcome.answered && entry.control == control) entry.control.clear();
    Duration delay = entry.period;
    const WallTime wall = options_.clock->WallNow();
    if (outcome.progress) {
      // The first word after an acknowledgement shows what came of it: somebody waits for it.
      tell = answer.at == answer.acknowledged_at || significant != entry.significant ||
             entry.failures > 0 ||
             (now - entry.told >= options_.quiet && *outcome.progress != *answer.progress);
      if (!control.empty()) {
        entry.generation = lenient::Integer(ParseJson(control).value_or(nullptr), "generation");
        entry.lost_control = false;
      } else if (lenient::Integer(*outcome.progress, "controlGeneration") < entry.generation) {
        entry.lost_control = true;  // it was restarted in its pod
      }
      if (!control.empty() && answer.acknowledged != control) {
        answer.acknowledged = control;
        answer.acknowledged_at = wall;
        tell = true;
      }
      entry.significant = std::move(significant);
      answer.progress = std::move(outcome.progress);
      answer.at = wall;
      answer.error.clear();
      entry.failures = 0;
    } else {
      tell = entry.failures == 0;
      answer.error = std::move(outcome.error);
      entry.failures = std::min(entry.failures + 1, 10);
      delay = std::min(options_.longest_backoff, delay * (1 << (entry.failures - 1)));
    }
    if (tell) entry.told = now;
    const bool at_once = std::exchange(entry.again, false);
    Schedule(entry, at_once ? now : now + Jittered(delay));
  }
  if (tell) changed_(entry.job);
}

void CoordinatorPool::Run() {
  std::unique_lock lock(mutex_);
  while (const std::shared_ptr<Entry> entry = Take(lock)) {
    const std::string control = entry->control;
    const bool was_suspect = entry->suspect;
    lock.unlock();
    Store(*entry, Call(*entry, control), control);
    lock.lock();
    if (was_suspect) {
      --suspects_in_flight_;
      wake_.notify_one();
    }
  }
}

}  // namespace parallelrun::operators
