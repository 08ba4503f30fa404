#include "kube/leader_election.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "base/random.h"

namespace parallelrun::kube {
namespace {

const Resource& Leases() {
  static const Resource leases{"coordination.k8s.io", "v1", "leases"};
  return leases;
}

constexpr double kJitter = 1.2;
constexpr Duration kRenewAgain = seconds(1);  // after a renewal that failed

Duration Jittered(Duration period) {
  const double random = static_cast<double>(RandomU64() >> 11) * 0x1p-53;
  return period + std::chrono::duration_cast<Duration>(period * (random * (kJitter - 1)));
}

Duration CallLimit(const ElectionTimes& times) {
  return std::max<Duration>(times.renew_deadline / 2, seconds(1));
}

}  // namespace

Result<std::unique_ptr<LeaderElector>> LeaderElector::Start(Client& client,
                                                            ElectionOptions options) {
  if (const Status times = CheckElectionTimes(options.times); !times.ok()) return times.error();
  if (options.identity.empty() || options.lease.name.empty() || options.lease.name_space.empty()) {
    return Error{Code::kInvalid,
                 "leader election needs an identity and the lease's name and "
                 "namespace"};
  }
  std::unique_ptr<LeaderElector> elector(new LeaderElector(client, std::move(options)));
  elector->thread_ = Thread("election", [raw = elector.get()] { raw->Run(); });
  return elector;
}

LeaderElector::LeaderElector(Client& client, ElectionOptions options)
    : client_(client), options_(std::move(options)), core_(options_.identity, options_.times) {}

LeaderElector::~LeaderElector() { Stop(false); }

bool LeaderElector::leading() const {
  const std::lock_guard lock(mutex_);
  return leading_ && options_.clock->Now() < deadline_;
}

void LeaderElector::Stop(bool release) {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    release_ = release_ || release;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LeaderElector::Run() {
  bool led = false;
  while (true) {
    const bool holds = TryOnce();
    const Instant now = options_.clock->Now();
    const bool leading = core_.Leading(now);
    {
      const std::lock_guard lock(mutex_);
      leading_ = leading;
      if (leading) deadline_ = core_.Deadline();
    }
    if (leading && !led) {
      spdlog::info("leader election: {} leads", options_.identity);
      led = true;
      if (options_.on_started) options_.on_started();
    } else if (led && !leading) {
      spdlog::error("leader election: {} lost the lease {}", options_.identity,
                    options_.lease.Key());
      if (options_.on_lost) options_.on_lost();
      return;
    }
    Tell();
    Duration wait = Jittered(options_.times.retry_period);
    if (led) {
      // Not late for the end of the term, and without jitter: the lease is ours to keep.
      wait = holds ? options_.times.retry_period : std::min(wait, kRenewAgain);
      wait = std::clamp(core_.Deadline() - now, Duration(0), wait);
    }
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, wait, [this] { return stop_; })) break;
  }
  Release();
}

// Takes or renews the lease, if it can be had. False: not held for sure.
bool LeaderElector::TryOnce() {
  const Clock& clock = *options_.clock;
  const auto limit = [&] {
    // A call that outlives the term is of no use; within it the lease may still be written again.
    const Duration longest = CallLimit(options_.times);
    if (!core_.Leading(clock.Now())) return longest;
    return std::clamp(core_.Deadline() - clock.Now(), Duration(milliseconds(1)), longest);
  };
  if (core_.CanUpdateBlindly()) {
    const Instant begun = clock.Now();
    const std::optional<LeaseRecord> wanted = core_.Wanted(begun, clock.WallNow());
    if (wanted && Write(*wanted, begun, limit())) return true;
    // The record that was seen last may be stale: look again.
  }
  const ApiResult<nlohmann::json> read =
      client_.Get(Leases(), options_.lease, CallOptions{limit(), 0});
  const Instant now = clock.Now();
  if (read.ok()) {
    core_.Observed(LeaseRecordOf(*read), now);
  } else if (read.error().NotFound()) {
    core_.Observed(std::nullopt, now);
  } else {
    spdlog::warn("leader election: {}", read.error().message);
    return false;
  }
  const Instant begun = clock.Now();
  const std::optional<LeaseRecord> wanted = core_.Wanted(begun, clock.WallNow());
  return wanted && Write(*wanted, begun, limit());
}

bool LeaderElector::Write(const LeaseRecord& record, Instant begun, Duration limit) {
  const nlohmann::json object = LeaseObject(options_.lease, record);
  const CallOptions call{limit, 0};
  const ApiResult<nlohmann::json> stored = core_.exists() ? client_.Update(Leases(), object, call)
                                                          : client_.Create(Leases(), object, call);
  if (stored.ok()) {
    core_.Written(LeaseRecordOf(*stored), begun);
    return true;
  }
  // Somebody else was quicker: not worth a word.
  const ApiError& error = stored.error();
  if (!error.Conflict() && !error.AlreadyExists()) {
    spdlog::warn("leader election: {}", error.message);
  }
  return false;
}

void LeaderElector::Tell() {
  if (core_.holder() == told_) return;
  told_ = core_.holder();
  if (told_ != options_.identity) {
    spdlog::info("leader election: the leader is {}",
                 told_.empty() ? "nobody" : Printable(told_, kShownShort));
  }
  if (options_.on_new_leader) options_.on_new_leader(told_);
}

void LeaderElector::Release() {
  bool release = false;
  {
    const std::lock_guard lock(mutex_);
    release = release_;
    leading_ = false;
  }
  const std::optional<LeaseRecord> record = core_.Released(options_.clock->WallNow());
  if (!release || !record) return;
  const ApiResult<nlohmann::json> stored = client_.Update(
      Leases(), LeaseObject(options_.lease, *record), CallOptions{CallLimit(options_.times), 0});
  if (stored.ok()) {
    spdlog::info("leader election: {} gave up the lease", options_.identity);
  } else {
    spdlog::warn("leader election: the lease was not given up: {}", stored.error().message);
  }
}

}  // namespace parallelrun::kube
