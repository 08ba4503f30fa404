#include "coordinator/plan/input_store.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/plan/glob.h"
#include "coordinator/plan/left_out.h"
#include "coordinator/plan/source.h"
#include "store/folder/folder_store.h"

namespace parallelrun {
namespace {

// Refuses tables with a log of their own, and parts of them: a part is as wrong as the whole. Above
// the root `exclude` is asked for the bare name, which is how people say that they mean it.
void RefuseTableLogs(const Files& files, const PlanInput& input, store::FolderRoot& root) {
  const std::vector<Glob> exclude(input.exclude.begin(), input.exclude.end());
  const auto excluded = [exclude](std::string_view path) {
    return std::any_of(exclude.begin(), exclude.end(),
                       [&](const Glob& glob) { return glob.Matches(path); });
  };
  root.check_above = [&files, excluded](const std::string& folder) {
    for (const std::string_view log : kTableLogs) {
      Status plain = excluded(log) ? Status() : RefuseTableLog(files, folder, log);
      if (!plain.ok()) return plain;
    }
    return Status();
  };
  root.check_met = [&files, excluded,
                    path = std::string(WithoutSlash(root.path))](std::string_view met) {
    const size_t name = met.rfind('/') + 1;
    if (!IsTableLog(met.substr(name)) || excluded(met)) return Status();
    const std::string folder = name == 0 ? path : JoinPath(path, met.substr(0, name - 1));
    return RefuseTableLog(files, folder, met.substr(name));
  };
}

}  // namespace

OpenStore FolderStores(const Files& files, std::vector<std::string> forbidden) {
  return [&files, forbidden = std::move(forbidden)](const PlanInput& input) {
    store::FolderRoot root{.path = input.root, .forbidden = forbidden, .stop = input.stop};
    if (DataNamesOf(input.kind) != DataNames::kAll) RefuseTableLogs(files, input, root);
    return store::MakeFolderStore(files, std::move(root));
  };
}

}  // namespace parallelrun
