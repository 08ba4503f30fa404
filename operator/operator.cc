#include "operator/operator.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/random.h"
#include "base/version.h"
#include "operator/process_usage.h"
#include "operator/resources.h"
#include "operator/schema_check.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kName[] = "parallelrun-operator";  // of the lease, and of the events' source
constexpr char kKeySecret[] = "parallelrun-operator-key";
constexpr char kPodSelector[] = "app.kubernetes.io/managed-by=parallelrun";
constexpr Duration kStartRetry = seconds(5);
constexpr Duration kSchemaPeriod = seconds(60);
constexpr Duration kCachePoll = milliseconds(20);
// One reconcile makes a handful of calls of at most 30 s each.
constexpr Duration kStuck = std::chrono::minutes(5);
constexpr Duration kStopLimit = seconds(30);
constexpr Duration kDrainLimit = seconds(20);

std::string Identity(const std::string& pod_uid) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{}_{}", host.data(), pod_uid.empty() ? RandomHex(8) : pod_uid);
}

}  // namespace

Result<OperatorKey> EnsureOperatorKey(kube::Client& client, const std::string& name_space) {
  const std::string place = fmt::format("secret {}/{}", name_space, kKeySecret);
  kube::ApiResult<json> secret = client.Get(kSecrets, {name_space, kKeySecret});
  if (!secret.ok() && secret.error().NotFound()) {
    secret =
        client.Create(kSecrets, {{"apiVersion", "v1"},
                                 {"kind", "Secret"},
                                 {"metadata",
                                  {{"name", kKeySecret},
                                   {"namespace", name_space},
                                   {"labels", {{"app.kubernetes.io/managed-by", "parallelrun"}}}}},
                                 {"type", "Opaque"},
                                 {"data", {{"key", EncodeBase64(MakeOperatorKey().bytes)}}}});
    // Another replica was faster: its key is the key.
    if (!secret.ok() && secret.error().AlreadyExists()) {
      secret = client.Get(kSecrets, {name_space, kKeySecret});
    }
  }
  if (!secret.ok()) return secret.error().ToError().With(place);
  Result<OperatorKey> key =
      ReadOperatorKey(DecodeBase64(kube::TextAt(*secret, "/data/key")).value_or(""));
  if (!key.ok()) {
    return key.error().With(place +
                            ": data.key is not a key of this operator; delete the secret "
                            "while no job runs, and a new one is made");
  }
  return key;
}

Operator::Operator(ProcessOptions options, kube::Client& client, Metrics& metrics,
                   std::shared_ptr<const Clock> clock)
    : options_(std::move(options)),
      client_(client),
      metrics_(metrics),
      clock_(std::move(clock)),
      queue_(clock_, metrics_.QueueHooks()) {}

Operator::~Operator() = default;

void Operator::Stop() {
  const std::lock_guard lock(mutex_);
  if (stop_) _exit(1);  // the second signal: whoever sent it does not want to wait
  stop_ = true;
  changed_.notify_all();
  if (servers_) {
    servers_->After(kStopLimit, [] {
      spdlog::error("the shutdown takes too long: ended");
      _exit(1);
    });
  }
}

bool Operator::WaitStop(Duration at_most) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [this] { return stop_; });
}

void Operator::SetNotReady(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (why == not_ready_) return;
  not_ready_ = why;
  if (why.empty()) {
    spdlog::info("ready");
  } else {
    spdlog::warn("not ready: {}", why);
  }
}

std::string Operator::Ready() const {
  const std::lock_guard lock(mutex_);
  if (stop_) return "shutting down";
  return not_ready_;
}

std::string Operator::Healthy() const {
  const Duration longest = queue_.LongestWork();
  if (longest < kStuck) return "";
  return fmt::format("a reconcile has been running for {}", HumanDuration(longest));
}

std::string Operator::MetricsText() const {
  std::vector<JobFigures> figures;
  if (const JobInformer* jobs = shown_) {
    for (const auto& [key, job] : jobs->All()) figures.push_back(FiguresOf(*job));
  }
  return metrics_.Text(figures, options_.per_job_metrics, clock_->Now(), clock_->WallNow()) +
         ProcessText(OwnUsage());
}

bool Operator::WaitForSchema() {
  while (true) {
    const Status fits = CheckServedSchema(client_);
    if (fits.ok()) return true;
    SetNotReady(fits.error().message);
    if (WaitStop(kStartRetry)) return false;
  }
}

std::optional<OperatorKey> Operator::WaitForKey() {
  while (true) {
    Result<OperatorKey> key = EnsureOperatorKey(client_, options_.planning.operator_namespace);
    if (key.ok()) return *key;
    SetNotReady(key.error().message);
    if (WaitStop(kStartRetry)) return std::nullopt;
  }
}

void Operator::StartInformers() {
  kube::InformerOptions<HeldPod> pods;
  pods.resource = kPods;
  pods.namespaces = options_.watch_namespaces;
  pods.label_selector = kPodSelector;
  pods.digest = DigestHeldPod;
  pods.index = [](const HeldPod& pod) { return pod.job_key; };
  pods.handler = [this](const kube::InformerEvent<HeldPod>& event) {
    queue_.Add((event.after ? event.after : event.before)->job_key);
  };
  pods.clock = clock_;
  pods_ = std::make_unique<PodInformer>(client_, pods);

  kube::InformerOptions<ObservedJob> jobs;
  jobs.resource = kJobs;
  jobs.namespaces = options_.watch_namespaces;
  jobs.digest = [](const json& job) -> std::optional<ObservedJob> { return ReadObservedJob(job); };
  jobs.index = [](const ObservedJob& job) { return job.output_address; };
  jobs.handler = [this](const kube::InformerEvent<ObservedJob>& event) {
    // A job that has nothing yet goes before those that have.
    queue_.Add(event.key, event.after && event.after->status.phase.empty());
  };
  jobs.clock = clock_;
  jobs_ = std::make_unique<JobInformer>(client_, jobs);
  shown_ = jobs_.get();
}

bool Operator::WaitForCaches() {
  while (!jobs_->HasSynced() || !pods_->HasSynced()) {
    std::string error = jobs_->stats().last_error;
    if (error.empty()) error = pods_->stats().last_error;
    SetNotReady(error.empty() ? "the caches are being filled" : error);
    if (WaitStop(kCachePoll)) return false;
  }
  return true;
}

bool Operator::WaitForLease() {
  if (!options_.leader.elect) {
    metrics_.Leading(true);
    return true;
  }
  kube::ElectionOptions election;
  election.lease = {options_.planning.operator_namespace, kName};
  election.identity = Identity(options_.leader.pod_uid);
  election.times = {options_.leader.lease_duration, options_.leader.renew_deadline,
                    options_.leader.retry_period};
  election.on_started = [this] {
    const std::lock_guard lock(mutex_);
    leading_ = true;
    changed_.notify_all();
  };
  election.on_lost = [] {
    spdlog::error("the lease is lost: this process ends at once, another one leads");
    spdlog::shutdown();
    _exit(1);
  };
  election.on_new_leader = [](const std::string& holder) { spdlog::info("leader: {}", holder); };
  election.clock = clock_;
  auto elector = kube::LeaderElector::Start(client_, std::move(election));
  if (!elector.ok()) {
    spdlog::error("leader election: {}", elector.error().message);
    return false;
  }
  elector_ = std::move(*elector);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stop_ || leading_; });
  if (leading_) metrics_.Leading(true);
  return leading_ && !stop_;
}

void Operator::Work(OperatorKey key) {
  events_ = std::make_unique<kube::EventRecorder>(client_, kName, clock_);
  CoordinatorPoolOptions pool;
  pool.clock = clock_;
  coordinators_ =
      std::make_unique<CoordinatorPool>(pool, [this](const std::string& job) { queue_.Add(job); });
  reconciler_ = std::make_unique<Reconciler>(
      Reconciler::Parts{client_, *jobs_, *pods_, queue_, *coordinators_, *events_, metrics_},
      options_.planning, std::move(key), clock_);
  for (int i = 0; i < options_.workers; ++i) {
    workers_.emplace_back("worker", [this] {
      while (const std::optional<std::string> job = queue_.Get()) {
        if (!fits_) {
          queue_.AddAfter(*job, kStartRetry);
        } else if (!stopping_) {  // what still waits is the next leader's
          reconciler_->Reconcile(*job);
        }
        queue_.Done(*job);
      }
    });
  }
}

// Somebody may put an older definition into the cluster at any time.
void Operator::RecheckSchema() {
  const Status fits = CheckServedSchema(client_);
  if (!fits.ok() && fits.error().code == Code::kUnavailable) return;  // says nothing about it
  fits_ = fits.ok();
  SetNotReady(fits.ok() ? "" : fits.error().message);
}

int Operator::Run() {
  HealthSources sources{[this] { return Healthy(); }, [this] { return Ready(); },
                        [this] { return MetricsText(); }};
  auto servers = HealthServers::Start(options_.health_address, options_.metrics_address, sources,
                                      [this] { Stop(); });
  if (!servers.ok()) {
    spdlog::error("{}", servers.error().message);
    return 2;
  }
  {
    const std::lock_guard lock(mutex_);
    servers_ = std::move(*servers);
  }
  spdlog::info("parallelrun-operator {} on {}: health on port {}, metrics on port {}", kVersion,
               client_.config().server, servers_->health_port(), servers_->metrics_port());
  if (!WaitForSchema()) return 0;
  std::optional<OperatorKey> key = WaitForKey();
  if (!key) return 0;
  StartInformers();
  int exit_code = 0;
  if (WaitForCaches()) {
    SetNotReady("");
    if (WaitForLease()) {
      Work(std::move(*key));
      while (!WaitStop(kSchemaPeriod)) {
        RecheckSchema();
      }
    } else {
      exit_code = WaitStop(Duration::zero()) ? 0 : 2;
    }
  }
  ShutDown();
  return exit_code;
}

void Operator::ShutDown() {
  stopping_ = true;
  spdlog::info("shutting down: {} jobs are being worked on", queue_.processing());
  if (!queue_.Drain(kDrainLimit)) spdlog::warn("some work is given up; the next start repeats it");
  if (events_) events_->Stop();
  // The lease last: nothing acts as leader any more.
  if (elector_) elector_->Stop(/*release=*/queue_.processing() == 0);
  metrics_.Leading(false);
  jobs_->Stop();
  pods_->Stop();
  client_.Cancel();
  for (Thread& worker : workers_) worker.join();
  workers_.clear();
  coordinators_.reset();  // a worker that outlasted the drain may have used it until now
  shown_ = nullptr;
  spdlog::info("stopped");
}

}  // namespace parallelrun::operators
