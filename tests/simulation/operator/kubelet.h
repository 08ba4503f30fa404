// The kubelets of all hosts: they run the containers of pods as coordinators and agents of the
// World, and write into the pods what became of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "agent/core/agent_core.h"
#include "base/time.h"
#include "coordinator/last_words.h"
#include "operator/observed.h"

namespace parallelrun::simulation {

class Cluster;
class SimCoordinator;
class World;

class Kubelet {
 public:
  explicit Kubelet(Cluster& cluster) : cluster_(cluster) {}

  // One round over all pods.
  void Step();
  // All hosts are reached again.
  void Heal() { silent_.clear(); }

  // A host with such a pod is not reached any more; what runs there goes on.
  bool LoseHost(operators::PodRole role);

  void OnCoordinatorEnd(const SimCoordinator& coordinator, coordinator::CoordinatorExit exit);
  void OnCoordinatorKilled(size_t id);
  void OnAgentEnd(size_t id, agent::AgentEnd end);
  void OnAgentKilled(size_t id);

  // The process of a coordinator's pod, if it runs.
  std::optional<size_t> CoordinatorOf(const std::string& pod_uid) const;
  // A pod is made: not at once, if the one before it failed.
  void CheckMade(const operators::PodDigest& pod);
  // Some host was not reached: what went on there was unknown.
  bool lost_hosts() const { return lost_hosts_; }
  // Ends of nodes that count against nodeRestartLimit.
  int64_t own_failures() const { return own_failures_; }

 private:
  struct Container {
    operators::PodRole role = operators::PodRole::kNode;
    std::string pod;      // name
    uint64_t number = 0;  // of the pod
    std::optional<size_t> process;
    std::optional<operators::Ended> ended;  // the kubelet has still to say so
    bool told = false;                      // SIGTERM
    bool out_of_memory = false;
    bool evicted = false;     // for its own disk, or
    bool host_short = false;  // since its host ran short
  };

  struct Failure {
    std::string pod;  // name
    WallTime at{};
    int64_t generation = 0;  // of the job then
  };

  void StepPod(operators::PodDigest pod);
  void EndGone();
  void StartContainer(operators::PodDigest pod);
  void TellEnd(operators::PodDigest pod, Container& container);
  void Terminate(const operators::PodDigest& pod);
  void Misbehave(const operators::PodDigest& pod, Container& container);
  void Kill(Container& container);
  // Of that process.
  Container* Find(operators::PodRole role, size_t id);
  void NoteEnd(Container* container, int32_t exit_code, const std::string& message);
  World& world();

  Cluster& cluster_;
  std::map<std::string, Container> containers_;  // by uid of the pod
  std::map<std::string, WallTime> gone_at_;      // when a terminating pod goes, by name
  std::set<std::string> silent_;                 // pods on hosts that are not heard any more
  std::map<int32_t, Failure> failed_;            // the last of each node
  bool lost_hosts_ = false;
  int64_t own_failures_ = 0;
};

}  // namespace parallelrun::simulation
