// Who does not reach whom: nodes that have not come to their coordinator, nodes that it hears no
// more, and a coordinator that does not answer the operator. A network that denies a connection
// drops what is sent, so that nobody else says a word. All of it is told, and nothing is done for
// it: leases give the work to other nodes, and a pod is replaced when its kubelet or its host
// calls for that.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

// A node asks its coordinator each second from its first moment on, but for what it copies before.
constexpr Duration kTimeToCome = seconds(15);
// A call of the operator takes 5 s at most, and so does the pause between two.
constexpr Duration kReportIsNews = seconds(10);
constexpr Duration kCoordinatorSilent = seconds(5);
constexpr Duration kCoordinatorSilentWarns = seconds(30);
constexpr size_t kMostNamed = 3;

using Pods = std::vector<const PodDigest*>;

std::string Place(const PodDigest& coordinator, uint16_t port) {
  return fmt::format("{} port {}", coordinator.ip, port);
}

// "node 1 has", "nodes 0, 1, 2 and 5 more have"
std::string WhoHas(const Pods& nodes) {
  std::string names;
  const size_t named = std::min(nodes.size(), kMostNamed);
  for (size_t i = 0; i < named; ++i) {
    const bool last = i > 0 && i + 1 == nodes.size();
    names += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", nodes[i]->index);
  }
  if (nodes.size() > named) names += fmt::format(" and {} more", nodes.size() - named);
  return fmt::format("{} {} {}", nodes.size() == 1 ? "node" : "nodes", names,
                     nodes.size() == 1 ? "has" : "have");
}

std::string Hosts(const Pods& nodes) {
  const std::string& first = nodes.front()->node_name;
  const bool one = std::all_of(nodes.begin(), nodes.end(),
                               [&](const PodDigest* pod) { return pod->node_name == first; });
  if (!one) return "their hosts";
  return (nodes.size() == 1 ? "its host " : "their host ") + first;
}

// Why it does not answer is the network's to know, and the words of the client are as near.
void AddSilentCoordinator(Draft& draft, const PodDigest& coordinator) {
  const CoordinatorView& view = draft.seen.coordinator;
  if (view.pod_uid != coordinator.uid || view.error.empty()) return;
  const WallTime since = std::max({view.pulled, view.asked_since, coordinator.ready_since});
  if (draft.now < since + kCoordinatorSilent) return draft.Wake(since + kCoordinatorSilent);
  const bool warns = draft.now >= since + kCoordinatorSilentWarns;
  if (!warns) draft.Wake(since + kCoordinatorSilentWarns);
  const auto so_long = [](Duration limit) {
    return fmt::format("for {} s", std::chrono::duration_cast<seconds>(limit).count());
  };
  const std::string& space = draft.options.operator_namespace;
  const std::string host =
      coordinator.host_silent
          ? fmt::format("its host {} does not answer either", coordinator.node_name)
          : fmt::format("where a NetworkPolicy is in the way, let the operator{} reach that port",
                        space.empty() ? "" : " in namespace " + space);
  draft.obstacles.push_back(
      {53, "CoordinatorSilent",
       fmt::format("the coordinator, pod {} at {}, has not answered the operator {}; what it does "
                   "with its nodes goes on, and nothing is replaced; {} ({})",
                   coordinator.name, Place(coordinator, draft.CoordinatorPort()),
                   so_long(warns ? kCoordinatorSilentWarns : kCoordinatorSilent), host, view.error),
       false, true, so_long(kCoordinatorSilentWarns)});
}

void AddUnreachable(Draft& draft, const PodDigest& coordinator, const Pods& nodes) {
  if (nodes.empty()) return;
  const uint16_t port = draft.CoordinatorPort();
  draft.obstacles.push_back(
      {48, "CoordinatorUnreachable",
       fmt::format(
           "{} run for more than {} s without a word to the coordinator at {}:{} ({}), which "
           "answers the operator; where a NetworkPolicy denies it, write one more in namespace {} "
           "with spec {{podSelector: {{matchLabels: {{parallelrun.dev/role: node}}}}, policyTypes: "
           "[Egress], egress: [{{to: [{{podSelector: {{matchLabels: {{parallelrun.dev/role: "
           "coordinator}}}}}}], ports: [{{protocol: TCP, port: {}}}]}}, {{ports: [{{protocol: UDP, "
           "port: 53}}, {{protocol: TCP, port: 53}}]}}]}}",
           WhoHas(nodes), std::chrono::duration_cast<seconds>(kTimeToCome).count(),
           CoordinatorHost(draft.identity), port, Place(coordinator, port),
           draft.identity.name_space, port)});
}

void AddSilentNodes(Draft& draft, const Pods& nodes) {
  if (nodes.empty()) return;
  const bool one = nodes.size() == 1;
  draft.obstacles.push_back(
      {21, "NodeSilent",
       fmt::format("{} said nothing for 10 s: {} may be cut off, frozen or gone; {} work goes on "
                   "elsewhere, and {} made again if Kubernetes gives {} up",
                   WhoHas(nodes), Hosts(nodes), one ? "its" : "their",
                   one ? "the pod is" : "the pods are", one ? "it" : "them")});
}

}  // namespace

void FindUnreached(Draft& draft) {
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  if (coordinator == nullptr || !coordinator->main.running || draft.finalizing) return;
  // One that has only been started reads its ledger. Of one whose host is silent, Kubernetes says
  // that it is not ready.
  if (!coordinator->ready && !coordinator->host_silent) return;
  AddSilentCoordinator(draft, *coordinator);
  const CoordinatorView& view = draft.seen.coordinator;
  const bool answers = view.pod_uid == coordinator->uid && view.report && view.error.empty() &&
                       view.pulled + kReportIsNews >= draft.now;
  if (!answers) return;
  std::map<int32_t, const ReportNode*> known;
  for (const ReportNode& node : view.report->nodes) known.emplace(node.index, &node);
  Pods away;
  Pods silent;
  for (const auto& [index, group] : draft.groups.nodes) {
    const PodDigest* const pod = group.Live();
    if (index >= draft.spec.node_count) break;
    // That a host does not answer has its own word.
    if (pod == nullptr || !pod->main.running || pod->host_silent) continue;
    const auto found = known.find(index);
    const ReportNode* const node = found == known.end() ? nullptr : found->second;
    if (node != nullptr && (node->pod == 0 || node->pod >= pod->incarnation)) {
      if (node->silent && !node->registered) silent.push_back(pod);
      continue;
    }
    if (pod->main.started == WallTime{}) continue;
    const WallTime late = std::max(pod->main.started, coordinator->ready_since) + kTimeToCome;
    if (draft.now >= late) {
      away.push_back(pod);
    } else {
      draft.Wake(late);
    }
  }
  AddUnreachable(draft, *coordinator, away);
  AddSilentNodes(draft, silent);
}

}  // namespace parallelrun::operators
