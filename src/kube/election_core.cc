// The rules of leader_election.h, without network and threads.
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "kube/leader_election.h"
#include "kube/resource.h"

namespace parallelrun::kube {
namespace {

// Lease's times are of the kind MicroTime.
std::string MicroTime(WallTime time) {
  const auto rest = time.time_since_epoch() % seconds(1);
  std::string fraction = std::to_string(1'000'000 + rest.count());
  fraction[0] = '.';
  std::string text = Rfc3339(time);
  text.insert(text.size() - 1, fraction);
  return text;
}

int SpecInteger(const nlohmann::json& object, const char* key) {
  return static_cast<int>(lenient::Integer(lenient::At(object, "spec"), key));
}

}  // namespace

Status CheckElectionTimes(const ElectionTimes& times) {
  if (times.retry_period <= Duration(0) || times.renew_deadline * 5 <= times.retry_period * 6) {
    return Error{Code::kInvalid,
                 "leader election: the renew deadline must be more than 1.2 x the retry period"};
  }
  if (times.lease <= times.renew_deadline) {
    return Error{Code::kInvalid,
                 "leader election: the lease duration must be more than the renew deadline"};
  }
  if (times.lease < seconds(1)) {
    return Error{Code::kInvalid, "leader election: a lease lasts whole seconds, at least 1"};
  }
  return {};
}

LeaseRecord LeaseRecordOf(const nlohmann::json& lease) {
  LeaseRecord record;
  record.holder = TextAt(lease, "/spec/holderIdentity");
  record.duration_seconds = SpecInteger(lease, "leaseDurationSeconds");
  record.acquire_time = TextAt(lease, "/spec/acquireTime");
  record.renew_time = TextAt(lease, "/spec/renewTime");
  record.transitions = SpecInteger(lease, "leaseTransitions");
  record.resource_version = TextAt(lease, "/metadata/resourceVersion");
  return record;
}

nlohmann::json LeaseObject(const ObjectName& name, const LeaseRecord& record) {
  nlohmann::json lease = {{"apiVersion", "coordination.k8s.io/v1"},
                          {"kind", "Lease"},
                          {"metadata", {{"name", name.name}, {"namespace", name.name_space}}},
                          {"spec",
                           {{"holderIdentity", record.holder},
                            {"leaseDurationSeconds", record.duration_seconds},
                            {"acquireTime", record.acquire_time},
                            {"renewTime", record.renew_time},
                            {"leaseTransitions", record.transitions}}}};
  if (!record.resource_version.empty()) {
    lease["metadata"]["resourceVersion"] = record.resource_version;
  }
  return lease;
}

ElectionCore::ElectionCore(std::string identity, ElectionTimes times)
    : identity_(std::move(identity)), times_(times) {}

void ElectionCore::Observed(const std::optional<LeaseRecord>& record, Instant now) {
  if (record != record_) observed_ = now;
  record_ = record;
  if (!record_ || record_->holder != identity_) leading_ = false;
}

std::optional<LeaseRecord> ElectionCore::Wanted(Instant now, WallTime wall) const {
  LeaseRecord wanted;
  wanted.holder = identity_;
  wanted.duration_seconds = static_cast<int>(std::chrono::ceil<seconds>(times_.lease).count());
  wanted.renew_time = MicroTime(wall);
  wanted.acquire_time = wanted.renew_time;
  if (!record_) return wanted;
  const bool foreign = !record_->holder.empty() && record_->holder != identity_;
  if (foreign && now < observed_ + seconds(record_->duration_seconds)) return std::nullopt;
  wanted.transitions = record_->transitions;
  wanted.resource_version = record_->resource_version;
  if (record_->holder == identity_) {
    wanted.acquire_time = record_->acquire_time;
  } else {
    ++wanted.transitions;
  }
  return wanted;
}

void ElectionCore::Written(const LeaseRecord& stored, Instant begun) {
  record_ = stored;
  observed_ = begun;
  leading_ = stored.holder == identity_;
  renewed_ = begun;
}

std::optional<LeaseRecord> ElectionCore::Released(WallTime wall) const {
  if (!leading_ || !record_) return std::nullopt;
  LeaseRecord released = *record_;
  released.holder.clear();
  released.duration_seconds = 1;
  released.renew_time = MicroTime(wall);
  released.acquire_time = released.renew_time;
  return released;
}

bool ElectionCore::Leading(Instant now) const { return leading_ && now < Deadline(); }

}  // namespace parallelrun::kube
