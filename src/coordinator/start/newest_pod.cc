#include "coordinator/start/newest_pod.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "job/pod_name.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr char kPodNote[] = "pod.json";
constexpr size_t kMaxNote = 4096;

}  // namespace

std::string HostName() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

Status EnterAsNewestPod(ledger::StateNotes& notes, const std::string& resource_uid,
                        const std::string& host) {
  const uint64_t own = job::PodNumber(host, "coordinator");
  if (own == 0) return {};
  // What is not there, damaged, or of another job stands in nobody's way.
  const auto text = notes.Read(kPodNote, kMaxNote);
  const json note = ParseJson(text.ok() ? text->value_or("") : "").value_or(nullptr);
  const uint64_t newest = lenient::Unsigned(note, "pod");
  if (lenient::At(note, "uid") == resource_uid && newest != 0) {
    if (newest == own) return {};
    if (newest > own) {
      return Error{Code::kStale,
                   fmt::format("superseded: pod {} of this job's coordinator has taken the place "
                               "of {}",
                               newest, Printable(host, 100))};
    }
  }
  return notes.Write(kPodNote, json{{"uid", resource_uid}, {"pod", own}}.dump() + "\n");
}

}  // namespace parallelrun::coordinator
