#include "operator/plan/cures.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "api/devices.h"
#include "api/object_names.h"
#include "base/json.h"
#include "operator/builders/object_room.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

enum class Sized { kCoordinator, kNode, kClaim, kNothing };

Sized SizedBy(const JobIdentity& job, const std::string& object) {
  const std::string base = "pods/" + api::ObjectBase(job.name, job.uid);
  if (object.starts_with(base + "-coordinator-")) return Sized::kCoordinator;
  if (object.starts_with("pods/")) return Sized::kNode;
  return object.starts_with("persistentvolumeclaims/") ? Sized::kClaim : Sized::kNothing;
}

// The field that says how much an object gets.
const char* FieldOf(Sized sized) {
  if (sized == Sized::kCoordinator) return "spec.coordinator.resources";
  return sized == Sized::kNode ? "spec.resources" : "spec.state.volumeClaimTemplate.spec.resources";
}

// When it may change: a manifest that is just applied again would be refused.
const char* WhenOf(Sized sized) {
  return sized == Sized::kNode ? "while the job is suspended" : "in a new job";
}

std::vector<std::string> Split(std::string_view text, std::string_view by) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(by, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + by.size();
  }
  return parts;
}

// "a", "a and b", "a, b and c".
std::string Listed(const std::vector<std::string>& words, const char* last = " and ") {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  }
  return text;
}

bool HasAny(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

void AddOnce(std::vector<std::string>& list, std::string word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) list.push_back(std::move(word));
}

// "limits.cpu for: runtime,worker; limits.memory for: proxy,runtime,worker": a quota on an amount
// wants each container to name it. Those that are not ours are of the template.
std::string CureOfUnnamed(Sized sized, std::string_view wanted) {
  static constexpr std::array kOurs = {"worker", "coordinator", "runtime"};
  std::vector<std::string> fields, others;
  for (const std::string& item : Split(wanted, "; ")) {
    const std::vector<std::string> halves = Split(item, " for: ");
    // A quota on "cpu" is one on requests.cpu.
    const bool bare = halves[0].find('.') == std::string::npos;
    const std::string amount = (bare ? "requests." : "") + halves[0];
    bool ours = halves.size() < 2;
    for (const std::string& name : Split(halves.size() < 2 ? "" : halves[1], ",")) {
      const bool own = std::find(kOurs.begin(), kOurs.end(), name) != kOurs.end();
      ours |= own;
      if (!own && !name.empty()) AddOnce(others, name);
    }
    if (ours) AddOnce(fields, std::string(FieldOf(sized)) + "." + amount);
  }
  if (!others.empty()) {
    fields.push_back("the resources of container " + Listed(others) + " in podTemplate");
  }
  return fmt::format("; write {}, {}", Listed(fields), WhenOf(sized));
}

// What stands between `before` and the first of `ends`, from `at` on, which moves behind it.
std::string Between(const std::string& text, std::string_view before,
                    std::initializer_list<std::string_view> ends, size_t& at) {
  const size_t found = text.find(before, at);
  if (found == std::string::npos) return "";
  const size_t begin = found + before.size();
  size_t end = text.size();
  for (const std::string_view one : ends) end = std::min(end, text.find(one, begin));
  at = end;
  return text.substr(begin, end - begin);
}

// "maximum memory usage per Container is 32Mi, but limit is 512Mi": each bound once.
std::vector<std::string> Bounds(const std::string& text) {
  std::vector<std::string> bounds;
  const auto add = [&](std::string_view word, std::string_view middle, const char* as) {
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
      const std::string amount = Between(text, word, {middle}, at);
      const std::string bound = Between(text, " is ", {", but", ".  No"}, at);
      if (amount.empty() || amount.find(' ') != std::string::npos || bound.empty()) return;
      AddOnce(bounds, fmt::format("{} {} {}", amount, as, bound));
    }
  };
  add("maximum ", " usage per ", "at most");
  add("minimum ", " usage per ", "at least");
  return bounds;
}

// "cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000".
std::string Ratio(const std::string& text) {
  constexpr std::string_view kRatio = " max limit to request ratio per ";
  const size_t found = text.find(kRatio);
  if (found == std::string::npos) return "";
  const size_t begin = text.find_last_of(" [", found - 1);
  const std::string amount = text.substr(begin + 1, found - begin - 1);
  size_t at = found;
  const std::string most = Between(text, " is ", {", but"}, at);
  return fmt::format("a limit of {} of at most {} times its request", amount, most);
}

// A LimitRange gives a limit to a container that names none, and its request may be above it.
std::string CureOfGivenLimit(const api::JobSpec& spec, Sized sized, const std::string& text) {
  // Those of the template come behind ours.
  const bool ours = text.find("spec.containers[0].resources") != std::string::npos ||
                    text.find("spec.initContainers[0].resources") != std::string::npos;
  size_t at = 0;
  const std::string amount = Between(text, "must be less than or equal to ", {" limit of "}, at);
  const std::string limit = Between(text, " limit of ", {",", "]", " "}, at);
  if (!ours || amount.empty() || limit.empty()) return "";
  const bool coordinator = sized == Sized::kCoordinator;
  const json resources = coordinator ? spec.coordinator.resources : api::WorkerResources(spec);
  const bool own = !lenient::At(lenient::At(resources, "limits"), amount.c_str()).is_null();
  const std::string field = FieldOf(sized);
  return fmt::format("; {}lower {}.requests.{} to {}, or {} {}.limits.{}, {}",
                     own ? ""
                         : "the job names no such limit, and a LimitRange of the namespace gives "
                           "it: ",
                     field, amount, limit, own ? "raise" : "write", field, amount, WhenOf(sized));
}

// Where the job says which image a node's worker has.
std::string ImageField(const api::JobSpec& spec) {
  const json& containers = lenient::AtPath(spec.pod_template, "/spec/containers");
  const bool in_template =
      containers.is_array() &&
      std::any_of(containers.begin(), containers.end(), [](const json& container) {
        return lenient::Text(container, "name") == "worker" &&
               !lenient::Text(container, "image").empty();
      });
  return in_template ? "the image of container worker in spec.podTemplate"
                     : "spec.environment.image";
}

// "1 Insufficient cpu, 2 Insufficient nvidia.com/gpu. preemption: …": each amount once.
std::vector<std::string> Insufficient(const std::string& text) {
  constexpr std::string_view kBefore = "Insufficient ";
  std::vector<std::string> amounts;
  for (size_t at = text.find(kBefore); at != std::string::npos; at = text.find(kBefore, at)) {
    std::string amount = Between(text, kBefore, {",", ". ", " "}, at);
    if (amount.ends_with(".")) amount.pop_back();
    if (!amount.empty()) AddOnce(amounts, std::move(amount));
  }
  return amounts;
}

}  // namespace

std::string CureOfQuota(const JobIdentity& job, const ApplyFailure& refused) {
  constexpr std::string_view kMustSpecify = "must specify ";
  const Sized sized = SizedBy(job, refused.object);
  const size_t wanted = refused.message.find(kMustSpecify);
  if (wanted != std::string::npos && sized != Sized::kNothing) {
    // Up to the server's word for it: "(Forbidden)".
    const size_t begin = wanted + kMustSpecify.size();
    const size_t end = refused.message.find(" (", begin);
    return CureOfUnnamed(sized, std::string_view(refused.message).substr(begin, end - begin));
  }
  std::string lower = "lower nodeCount or resources";
  if (sized == Sized::kClaim) lower = "name less storage in state.volumeClaimTemplate of a new job";
  if (sized == Sized::kNothing) {
    const std::string kind = refused.object.substr(0, refused.object.find('/'));
    lower = "delete " + kind + " that nobody needs";
  }
  return "; raise the quota, or " + lower + ", and the job goes on by itself";
}

std::string CureOfLimitRange(const api::JobSpec& spec, const JobIdentity& job,
                             const ApplyFailure& refused) {
  const Sized sized = SizedBy(job, refused.object);
  if (sized == Sized::kNothing) return "";
  if (std::string cure = CureOfGivenLimit(spec, sized, refused.message); !cure.empty()) return cure;
  std::vector<std::string> bounds = Bounds(refused.message);
  if (std::string ratio = Ratio(refused.message); !ratio.empty()) {
    bounds.push_back(std::move(ratio));
  }
  if (bounds.empty()) return "";
  return fmt::format("; a LimitRange of the namespace wants {}: write so in {}, {}", Listed(bounds),
                     FieldOf(sized), WhenOf(sized));
}

std::string CureOfImage(const api::JobSpec& spec, bool runtime, const std::string& message) {
  if (runtime) {
    return "; it is the image of ParallelRun's own programs: whoever installed the chart corrects "
           "its runtimeImage (or runtimeImage.pullSecrets), and a new job has it";
  }
  const std::string field = ImageField(spec);
  if (message.find("pull policy of Never") != std::string::npos) {
    return "; spec.environment.imagePullPolicy is Never: bring the image to that host, and the job "
           "goes on by itself, or write IfNotPresent in a new job";
  }
  if (HasAny(message, {"couldn't parse image", "invalid reference format"})) {
    return "; correct " + field + " in a new job";
  }
  if (HasAny(message, {"no such host", "i/o timeout", "connection refused", "x509:"})) {
    return "; that host does not reach the registry that " + field + " names";
  }
  return "; push that image, and the job goes on by itself, or correct " + field +
         " in a new job; where the registry asks who pulls, name a Secret with its password in "
         "spec.environment.imagePullSecrets";
}

std::string CureOfUnschedulable(const api::JobSpec& spec, PodRole role,
                                const std::string& message) {
  constexpr char kDisk[] = "ephemeral-storage";
  const Sized sized = role == PodRole::kCoordinator ? Sized::kCoordinator : Sized::kNode;
  const bool objects = sized == Sized::kNode && ObjectRoom(spec) > 0;
  const std::string own_template =
      sized == Sized::kCoordinator ? "spec.coordinator.podTemplate" : "spec.podTemplate";
  std::vector<std::string> ways;
  std::vector<std::string> amounts = Insufficient(message);
  std::string cache;
  if (objects && std::erase(amounts, kDisk) > 0) {
    cache = "; its pod asks for the room of spec.cache.size: lower it";
  }
  if (!amounts.empty()) {
    ways.push_back(
        fmt::format("lower {} of {} {}", Listed(amounts), FieldOf(sized), WhenOf(sized)));
  }
  if (HasAny(message, {"node affinity/selector", "pod affinity rules", "anti-affinity rules",
                       "topology spread constraints"})) {
    ways.push_back("correct nodeSelector, affinity and topologySpreadConstraints in " +
                   own_template);
  }
  // Nearly every cluster has hosts that are tainted for its own programs: no cause where there is
  // another.
  if (ways.empty() && message.find("untolerated taint") != std::string::npos) {
    ways.emplace_back("add tolerations to spec.podTemplate");
  }
  if (HasAny(message, {"PersistentVolume's node affinity", "volume node affinity conflict",
                       "no available volume zone"})) {
    ways.emplace_back("make room on the hosts where its volumes can be used");
  }
  if (HasAny(message, {"were unschedulable"})) ways.emplace_back("kubectl uncordon a host");
  if (ways.empty() && cache.empty() && !HasAny(message, {"Too many pods"})) return "";
  ways.emplace_back("add hosts");
  return cache + "; " + Listed(ways, " or ");
}

}  // namespace parallelrun::operators
