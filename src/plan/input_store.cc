#include "plan/input_store.h"

#include <cassert>
#include <string>
#include <string_view>
#include <utility>

#include "plan/manifest_store.h"
#include "plan/object_or_prefix.h"
#include "store/folder/folder_store.h"
#include "store/object_stores.h"

namespace parallelrun::plan {
namespace {

// What cannot be opened, as a store: each call tells why.
class NoStore final : public store::Store {
 public:
  NoStore(Error why, std::string place) : why_(std::move(why)), place_(std::move(place)) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted, const std::string&) override {
    return why_;
  }
  Result<bool> IsThere() override { return why_; }
  Result<std::optional<store::Found>> Stat(const std::string&) override { return why_; }
  Result<std::unique_ptr<store::Object>> Open(const std::string&) override { return why_; }
  std::string Location(std::string_view name) const override {
    return name.empty() ? place_ : place_ + "/" + std::string(name);
  }
  Result<std::string> RealRoot() override { return why_; }
  std::string Difference(const store::Version&, const store::Version&) const override { return ""; }
  store::Version AsBefore(const store::Version& version) const override { return version; }

 private:
  const Error why_;
  const std::string place_;
};

std::unique_ptr<store::Store> OpenAt(store::Wished wished, const std::string& url,
                                     const PlanInput& input) {
  wished.url = url;
  auto made = store::OpenObjectStore(wished, input.stop);
  if (!made.ok()) return std::make_unique<NoStore>(made.error(), url);
  return std::move(*made);
}

// The URL of a store itself is a prefix: only what is below it is found by nodes.
bool MayBeOneObject(const store::Wished& wished, const PlanInput& input) {
  const Result<std::string> whole = store::StoreUrl(wished.url, "");
  return !input.is_prefix && input.pattern.empty() && whole.ok() &&
         input.root.size() > whole->size();
}

std::unique_ptr<store::Store> OpenObjects(const std::map<std::string, store::Wished>& stores,
                                          const PlanInput& input) {
  const auto found = stores.find(input.store);
  assert(found != stores.end());
  const store::Wished& wished = found->second;
  auto below = OpenAt(wished, input.root, input);
  if (!input.manifest.path.empty()) {
    const std::string beside = input.manifest.path.substr(0, input.manifest.path.rfind('/'));
    return MakeManifestStore(input, {std::move(below), OpenAt(wished, beside, input)});
  }
  if (!MayBeOneObject(wished, input)) return below;
  const size_t slash = input.root.rfind('/');
  return ObjectOrPrefix(std::move(below), OpenAt(wished, input.root.substr(0, slash), input),
                        input.root.substr(slash + 1));
}

}  // namespace

OpenStore FolderStores(const Files& files, std::vector<std::string> forbidden) {
  return [&files, forbidden = std::move(forbidden)](const PlanInput& input) {
    auto folder = store::MakeFolderStore(
        files, {.path = input.root, .forbidden = forbidden, .stop = input.stop});
    if (input.manifest.path.empty()) return folder;
    return MakeManifestStore(
        input, {std::move(folder),
                store::MakeFolderStore(
                    files, {.path = input.manifest.path, .forbidden = {}, .stop = input.stop}),
                forbidden, &files});
  };
}

OpenStore InputStores(const Files& files, std::vector<std::string> forbidden,
                      std::map<std::string, store::Wished> stores) {
  return [folders = FolderStores(files, std::move(forbidden)),
          stores = std::move(stores)](const PlanInput& input) {
    return input.store.empty() ? folders(input) : OpenObjects(stores, input);
  };
}

}  // namespace parallelrun::plan
