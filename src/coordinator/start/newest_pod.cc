#include "coordinator/start/newest_pod.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "job/pod_name.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr size_t kMaxNote = 4096;

}  // namespace

Status EnterAsNewestPod(Files& files, const std::string& state_folder,
                        const std::string& resource_uid, const std::string& host) {
  const uint64_t own = PodNumber(host, "coordinator");
  if (own == 0) return {};
  const std::string path = state_folder + "/pod.json";
  if (const Result<std::unique_ptr<File>> file = files.OpenRead(path); file.ok()) {
    const Result<std::string> text = (*file)->ReadAt(0, kMaxNote);
    const json note = text.ok() ? json::parse(*text, nullptr, false) : json();
    // What is damaged, or of another job, stands in nobody's way.
    if (note.is_object() && note.value("uid", json()) == resource_uid &&
        note.value("pod", json()).is_number_unsigned()) {
      const auto newest = note["pod"].get<uint64_t>();
      if (newest == own) return {};
      if (newest > own) {
        return Error{Code::kStale,
                     fmt::format("superseded: pod {} of this job's coordinator has taken the "
                                 "place of {}",
                                 newest, Printable(host, 100))};
      }
    }
  }
  return PublishFile(files, path, json{{"uid", resource_uid}, {"pod", own}}.dump() + "\n");
}

}  // namespace parallelrun
