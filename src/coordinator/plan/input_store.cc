#include "coordinator/plan/input_store.h"

#include <algorithm>
#include <cassert>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/plan/glob.h"
#include "coordinator/plan/left_out.h"
#include "coordinator/plan/source.h"
#include "store/folder/folder_store.h"
#include "store/s3/s3_store.h"

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

// What cannot be opened, as a store: each call tells why.
class NoStore final : public store::Store {
 public:
  NoStore(Error why, std::string place) : why_(std::move(why)), place_(std::move(place)) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted, const std::string&) override {
    return why_;
  }
  Result<std::optional<store::Found>> Stat(const std::string&) override { return why_; }
  Result<std::unique_ptr<store::Object>> Open(const std::string&) override { return why_; }
  std::string Location(std::string_view name) const override {
    return name.empty() ? place_ : place_ + "/" + std::string(name);
  }
  std::string Difference(const store::Version&, const store::Version&) const override { return ""; }

 private:
  const Error why_;
  const std::string place_;
};

std::unique_ptr<store::Store> OpenObjects(const std::vector<ObjectStore>& stores,
                                          const PlanInput& input) {
  const auto found = std::find_if(stores.begin(), stores.end(),
                                  [&](const ObjectStore& one) { return one.name == input.store; });
  assert(found != stores.end());
  auto made =
      s3::OpenStore({input.root, found->region, found->endpoint, found->path_style}, input.stop);
  if (!made.ok()) return std::make_unique<NoStore>(made.error(), input.root);
  return std::move(*made);
}

}  // namespace

OpenStore FolderStores(const Files& files, std::vector<std::string> forbidden) {
  return [&files, forbidden = std::move(forbidden)](const PlanInput& input) {
    store::FolderRoot root{.path = input.root, .forbidden = forbidden, .stop = input.stop};
    if (DataNamesOf(input.kind) != DataNames::kAll) RefuseTableLogs(files, input, root);
    return store::MakeFolderStore(files, std::move(root));
  };
}

OpenStore InputStores(const Files& files, std::vector<std::string> forbidden,
                      std::vector<ObjectStore> stores) {
  return [folders = FolderStores(files, std::move(forbidden)),
          stores = std::move(stores)](const PlanInput& input) {
    return input.store.empty() ? folders(input) : OpenObjects(stores, input);
  };
}

}  // namespace parallelrun
