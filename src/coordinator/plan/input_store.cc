#include "coordinator/plan/input_store.h"

#include <utility>

#include "store/folder/folder_store.h"

namespace parallelrun {

OpenStore FolderStores(const Files& files, std::vector<std::string> forbidden) {
  return [&files, forbidden = std::move(forbidden)](const PlanInput& input) {
    return store::MakeFolderStore(files, {input.root, forbidden, input.stop});
  };
}

}  // namespace parallelrun
