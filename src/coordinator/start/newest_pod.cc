#include "coordinator/start/newest_pod.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "base/small_file.h"
#include "job/pod_name.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kMaxNote = 4096;

}  // namespace

std::string HostName() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return host.data();
}

Status EnterAsNewestPod(Files& files, const std::string& state_folder,
                        const std::string& resource_uid, const std::string& host) {
  const uint64_t own = job::PodNumber(host, "coordinator");
  if (own == 0) return {};
  const std::string path = state_folder + "/pod.json";
  // What is not there, damaged, or of another job stands in nobody's way.
  const json note = ParseJson(OrEmpty(ReadBegin(files, path, kMaxNote))).value_or(nullptr);
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
  return PublishFile(files, path, json{{"uid", resource_uid}, {"pod", own}}.dump() + "\n");
}

}  // namespace parallelrun::coordinator
