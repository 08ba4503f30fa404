#include "output/own_places.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "output/output_claim.h"

namespace parallelrun::output {
namespace {

constexpr char kOfTheFileSystem[] = "lost+found";  // at the top of a volume

constexpr char kOfTheList[] = "._files.jsonl.";  // its tokens
constexpr std::string_view kStagingPrefix = ".parallelrun-staged-";

}  // namespace

std::string StagingNameOf(uint64_t run_id) {
  return fmt::format("{}{:016x}", kStagingPrefix, run_id);
}

bool IsStagingName(std::string_view name) { return name.starts_with(kStagingPrefix); }

bool IsOwn(const OwnPlaces& own, const std::string& output_folder, const std::string& name) {
  const std::string top = name.substr(0, name.find('/'));
  const bool token = top.starts_with(kOfTheList);
  if (token || top == kOfTheFileSystem || IsClaimFile(top, "") || IsStagingName(top)) return true;
  const std::string below = output_folder == "/" ? "/" : output_folder + "/";
  const std::string path = below + name;
  return std::any_of(own.folders.begin(), own.folders.end(), [&](const std::string& folder) {
    // One that holds the output folder says nothing of what is in that.
    if (!folder.starts_with(below)) return false;
    return path == folder || path.starts_with(folder + "/");
  });
}

}  // namespace parallelrun::output
