#include "output/own_places.h"

#include <algorithm>

#include "output/output_claim.h"

namespace parallelrun::output {
namespace {

constexpr char kOfTheFileSystem[] = "lost+found";  // at the top of a volume

}  // namespace

bool IsOwn(const OwnPlaces& own, const std::string& output_folder, const std::string& name) {
  const std::string top = name.substr(0, name.find('/'));
  if (top == kOfTheFileSystem || IsClaimFile(top, "")) return true;
  const std::string below = output_folder == "/" ? "/" : output_folder + "/";
  const std::string path = below + name;
  return std::any_of(own.folders.begin(), own.folders.end(), [&](const std::string& folder) {
    // One that holds the output folder says nothing of what is in that.
    if (!folder.starts_with(below)) return false;
    return path == folder || path.starts_with(folder + "/");
  });
}

}  // namespace parallelrun::output
