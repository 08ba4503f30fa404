#include "tests/simulation/operator/kubelet.h"

#include <spdlog/fmt/fmt.h>

#include <utility>
#include <vector>

#include "agent/agent.h"
#include "coordinator/progress.h"
#include "tests/simulation/operator/cluster.h"
#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

constexpr int32_t kKilled = 137;
constexpr Duration kGrace = seconds(10);
constexpr Duration kFirstBackOff = seconds(10);

// As of a pod: what was told to go ends with 0 too, and says so.
int32_t ExitCode(agent::AgentEnd end) {
  const bool in_order = end == agent::AgentEnd::kFinished || end == agent::AgentEnd::kDrained;
  return in_order ? agent::kAgentFinished : agent::kAgentGaveUp;
}

// As Kubernetes keeps times.
WallTime WholeSeconds(WallTime time) { return std::chrono::floor<seconds>(time); }

}  // namespace

void Kubelet::Step() {
  std::vector<std::string> names;
  for (const auto& [name, pod] : cluster_.api().pods()) names.push_back(name);
  for (const std::string& name : names) {
    if (const operators::PodDigest* const pod = cluster_.api().Find(name)) StepPod(*pod);
  }
  EndGone();
}

void Kubelet::StepPod(operators::PodDigest pod) {
  if (silent_.contains(pod.name)) {
    if (pod.deletion || pod.Terminal() || !cluster_.Chance(50)) return;
    pod.deletion = WholeSeconds(cluster_.Wall()) + seconds(30);  // the taint is not tolerated
    pod.disruption = "DeletionByTaintManager";
    return cluster_.api().StorePod(std::move(pod));
  }
  if (pod.lingers && !pod.deletion && cluster_.Chance(300)) {  // the pod has ended too
    pod.lingers = false;
    return cluster_.api().StorePod(std::move(pod));
  }
  if (pod.Terminal()) {
    const bool collected = cluster_.GoesWrong(5);  // PodGC
    if (collected && failed_[pod.index].pod == pod.name) failed_.erase(pod.index);
    if (pod.deletion || collected) cluster_.api().RemovePod(pod.name);
    return;
  }
  const auto found = containers_.find(pod.uid);
  if (found != containers_.end() && found->second.ended && cluster_.Chance(600)) {
    return TellEnd(std::move(pod), found->second);
  }
  if (pod.deletion) return Terminate(pod);
  if (!pod.main.running) return StartContainer(std::move(pod));
  if (found != containers_.end()) Misbehave(pod, found->second);
}

// That a node has failed is remembered, unless others than the operator took its pod away, or the
// user changed the job meanwhile.
void Kubelet::CheckMade(const operators::PodDigest& pod) {
  const auto failure = failed_.find(pod.index);
  if (pod.role != operators::PodRole::kNode || failure == failed_.end()) return;
  const bool changed = failure->second.generation != cluster_.api().job().generation;
  const bool waited = cluster_.Wall() >= failure->second.at + kFirstBackOff - seconds(1);
  if (!changed && (!waited || pod.failures == 0)) {
    cluster_.Violated(pod.name + " does not wait after the failure of " + failure->second.pod);
  }
  failed_.erase(failure);
}

// What runs for pods that are there no more; on a host that nobody reaches it goes on.
void Kubelet::EndGone() {
  for (auto it = containers_.begin(); it != containers_.end();) {
    Container& container = it->second;
    const operators::PodDigest* const pod = cluster_.api().Find(container.pod);
    const bool gone = (pod == nullptr || pod->uid != it->first) && !silent_.contains(container.pod);
    if (gone) Kill(container);
    it = gone ? containers_.erase(it) : std::next(it);
  }
}

void Kubelet::StartContainer(operators::PodDigest pod) {
  if (cluster_.GoesWrong(30)) {
    pod.main.waiting_reason = "ImagePullBackOff";
    return cluster_.api().StorePod(std::move(pod));
  }
  if (!cluster_.Chance(500)) return;
  World& world = cluster_.world();
  pod.main.waiting_reason.clear();
  pod.phase = operators::PodPhase::kRunning;
  pod.main.running = pod.ready = true;
  pod.ip = "10.0.0.1";
  Container& container = containers_[pod.uid];
  container = Container();
  container.role = pod.role;
  container.pod = pod.name;
  const uint64_t number = container.number = static_cast<uint64_t>(pod.incarnation);
  const auto index = static_cast<uint32_t>(pod.index);
  cluster_.api().StorePod(pod);
  if (pod.role == operators::PodRole::kNode) {
    container.process = world.StartAgent({index, 0, number});
    return;
  }
  const auto nodes = static_cast<uint32_t>(cluster_.api().job().node_count);
  const size_t process = world.StartCoordinator({"uid", api::IfExists::kFail, 0, nodes, number});
  if (!container.ended) container.process = process;
}

void Kubelet::TellEnd(operators::PodDigest pod, Container& container) {
  const operators::Ended ended = *std::exchange(container.ended, std::nullopt);
  world().Trace(fmt::format("{} ends with {} {}", pod.name, ended.exit_code, ended.reason));
  pod.main.running = pod.ready = false;
  pod.main.ended = ended;
  pod.main.ended->started = pod.created;
  pod.main.ended->finished = WholeSeconds(cluster_.Wall());
  const bool again =
      pod.role == operators::PodRole::kCoordinator && ended.exit_code != 0 && !pod.deletion;
  if (again) {  // restartPolicy OnFailure
    ++pod.main.restarts;
  } else {
    pod.phase =
        ended.exit_code == 0 ? operators::PodPhase::kSucceeded : operators::PodPhase::kFailed;
    if (container.evicted) pod.reason = "Evicted";
    if (container.host_short) pod.disruption = "TerminationByKubelet";
    pod.lingers =
        pod.role == operators::PodRole::kNode && !container.evicted && cluster_.Chance(500);
  }
  const bool in_order = ended.exit_code == agent::kAgentFinished;
  if (pod.role == operators::PodRole::kNode && !in_order && !container.evicted &&
      !container.out_of_memory) {
    ++own_failures_;
    if (!pod.deletion)
      failed_[pod.index] = {pod.name, cluster_.Wall(), cluster_.api().job().generation};
  }
  cluster_.api().StorePod(std::move(pod));
}

void Kubelet::Terminate(const operators::PodDigest& pod) {
  const auto found = containers_.find(pod.uid);
  const bool runs = found != containers_.end() && found->second.process;
  if (runs && !std::exchange(found->second.told, true)) {
    const size_t process = *found->second.process;
    if (pod.role == operators::PodRole::kNode) {
      world().OnAgent(process, Duration(0), [](SimAgent& agent) { agent.Drain(); });
    } else {
      world().OnCoordinator(process, Duration(0), [](SimCoordinator& coordinator) {
        if (coordinator.running()) coordinator.HandOver();
      });
    }
  }
  const auto grace =
      static_cast<int64_t>(world().rng().Below(static_cast<uint64_t>(Duration(kGrace).count())));
  const WallTime gone =
      gone_at_.try_emplace(pod.name, cluster_.Wall() + Duration(grace)).first->second;
  if (runs && gone > cluster_.Wall()) return;
  if (found != containers_.end()) Kill(found->second);
  gone_at_.erase(pod.name);
  world().Trace("gone " + pod.name);
  cluster_.api().RemovePod(pod.name);
}

void Kubelet::Misbehave(const operators::PodDigest& pod, Container& container) {
  if (!container.process) return;
  if (cluster_.GoesWrong(4)) {
    container.out_of_memory = cluster_.Chance(500);
    world().oracle().ContainerKilled();
    Kill(container);
  } else if (cluster_.GoesWrong(2)) {
    container.evicted = pod.role == operators::PodRole::kNode;
    container.host_short = container.evicted && cluster_.Chance(500);
    if (container.evicted && !container.host_short) world().oracle().ContainerKilled();
    Kill(container);
  } else if (cluster_.GoesWrong(2)) {
    world().Trace("the host of " + pod.name + " dies");
    silent_.insert(pod.name);
    Kill(container);
  } else if (cluster_.GoesWrong(1)) {
    world().Trace(pod.name + " is deleted by force");
    Kill(container);
    cluster_.api().RemovePod(pod.name);
  }
}

bool Kubelet::LoseHost(operators::PodRole role) {
  for (const auto& [uid, container] : containers_) {
    if (container.role != role || !container.process || silent_.contains(container.pod)) continue;
    world().Trace("the host of " + container.pod + " is not reached any more");
    lost_hosts_ = true;
    silent_.insert(container.pod);
    return true;
  }
  return false;
}

void Kubelet::Kill(Container& container) {
  if (!container.process) return;
  if (container.role == operators::PodRole::kNode) {
    world().KillAgent(*container.process);
  } else {
    world().KillCoordinator(*container.process);
  }
}

// --- how processes end

Kubelet::Container* Kubelet::Find(operators::PodRole role, size_t id) {
  for (auto& [uid, container] : containers_) {
    if (container.role == role && container.process == id) return &container;
  }
  return nullptr;
}

void Kubelet::NoteEnd(Container* container, int32_t exit_code, const std::string& message) {
  if (container == nullptr) return;
  container->process.reset();
  const char* reason = exit_code == 0 ? "Completed" : "Error";
  if (exit_code == kKilled && container->out_of_memory) reason = "OOMKilled";
  container->ended = operators::Ended{exit_code, reason, message, {}, {}};
}

void Kubelet::OnCoordinatorEnd(const SimCoordinator& coordinator,
                               coordinator::CoordinatorExit exit) {
  const bool drained = exit == coordinator::CoordinatorExit::kDrained;
  const std::string words =
      coordinator.core() == nullptr
          ? coordinator::LastErrorJson("it cannot start")
          : coordinator::LastWordsJson(
                coordinator::ProgressJson(*coordinator.core(), {coordinator.epoch()},
                                          coordinator.Now()),
                drained ? "ended by a signal" : "");
  for (auto& [uid, container] : containers_) {
    // Of one that cannot start the process is not known yet.
    const bool this_one =
        container.role == operators::PodRole::kCoordinator && container.number == coordinator.pod();
    if (this_one) NoteEnd(&container, drained ? 0 : static_cast<int32_t>(exit), words);
  }
}

void Kubelet::OnCoordinatorKilled(size_t id) {
  NoteEnd(Find(operators::PodRole::kCoordinator, id), kKilled, "");
}
void Kubelet::OnAgentEnd(size_t id, agent::AgentEnd end) {
  const char* const words = end == agent::AgentEnd::kDrained ? "drained: it was told to go" : "";
  NoteEnd(Find(operators::PodRole::kNode, id), ExitCode(end), words);
}
void Kubelet::OnAgentKilled(size_t id) {
  NoteEnd(Find(operators::PodRole::kNode, id), kKilled, "");
}

std::optional<size_t> Kubelet::CoordinatorOf(const std::string& pod_uid) const {
  const auto found = containers_.find(pod_uid);
  return found == containers_.end() ? std::nullopt : found->second.process;
}

World& Kubelet::world() { return cluster_.world(); }

}  // namespace parallelrun::simulation
