// read_bucket URL ENDPOINT REGION: one store of S3 or Azure, asked by lines of JSON and answering
// so, a line for a line. Credentials are those of its environment. ENDPOINT and REGION may be "".
//   {"do": "list", "after": "a/b", "without": ".git"}
//       {"names": […], "sizes": […]}; the folders called so are left out
//   {"do": "stat", "name": "a"}       {"size": 3, "version": "ETag"}, or {} where it is not there
//   {"do": "open", "name": "a"}       the same; what is read next is of this object
//   {"do": "read", "offset": 0, "size": 10}      {"size": 3, "sha256": "…"}
// An error is {"error": message, "code": name}.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/log.h"
#include "base/mac.h"
#include "base/time.h"
#include "store/azure_blob/azure_blob_store.h"
#include "store/objects/object_version.h"
#include "store/s3/s3_store.h"

namespace parallelrun {
namespace {

using nlohmann::json;

json Told(const Error& error) { return {{"error", error.message}, {"code", CodeName(error.code)}}; }

json Told(const store::Found& found) {
  return {{"size", found.size}, {"version", std::string(store::EtagOf(found.version))}};
}

json List(store::Store& store, const std::string& after, const std::string& without) {
  store::Wanted wanted;
  wanted.name = [](std::string_view) { return true; };
  wanted.below = [&](std::string_view folder) {
    return folder.substr(folder.rfind('/') + 1) != without;
  };
  Result<std::unique_ptr<store::Listing>> listing = store.List(std::move(wanted), after);
  if (!listing.ok()) return Told(listing.error());
  json all{{"names", json::array()}, {"sizes", json::array()}};
  while (true) {
    const Result<std::optional<store::Listed>> next = (*listing)->Next();
    if (!next.ok()) return Told(next.error());
    if (!*next) return all;
    all["names"].push_back(std::string((*next)->name));
    all["sizes"].push_back((*next)->found ? (*next)->found->size : 0);
  }
}

class Asked {
 public:
  explicit Asked(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

  json Answer(const json& question) {
    const std::string what = question.at("do");
    if (what == "list") {
      return List(*store_, question.value("after", ""), question.value("without", "/"));
    }
    if (what == "read") return Read(question.at("offset"), question.at("size"));
    const std::string name = question.at("name");
    if (what == "open") {
      Result<std::unique_ptr<store::Object>> object = store_->Open(name);
      if (!object.ok()) return Told(object.error());
      object_ = std::move(*object);
      return Told(object_->found());
    }
    const Result<std::optional<store::Found>> found = store_->Stat(name);
    if (!found.ok()) return Told(found.error());
    return *found ? Told(**found) : json::object();
  }

 private:
  json Read(uint64_t offset, size_t size) const {
    std::string bytes(size, '\0');
    const Result<size_t> read = object_->ReadAt(offset, bytes);
    if (!read.ok()) return Told(read.error());
    bytes.resize(*read);
    return {{"size", *read}, {"sha256", Sha256Hex(bytes)}};
  }

  const std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Object> object_;
};

constexpr int kMostRepeated = 3;
constexpr size_t kPage = 100;  // of Azure, whose own would take a test a long time to fill

Result<std::unique_ptr<store::Store>> InS3(const std::string& url, const std::string& endpoint,
                                           const std::string& region) {
  const Result<store::s3::Surroundings> around = store::s3::ReadSurroundings();
  if (!around.ok()) return around.error();
  store::s3::StoreOptions options;
  options.url = url;
  options.endpoint = endpoint;
  options.region = region;
  options.limits.most = kMostRepeated;
  return store::s3::MakeStore(options, *around, std::make_shared<SystemClock>());
}

Result<std::unique_ptr<store::Store>> InAzure(const std::string& url, const std::string& endpoint) {
  store::azure_blob::StoreOptions options;
  options.url = url;
  options.endpoint = endpoint;
  options.page = kPage;
  options.limits.most = kMostRepeated;
  return store::azure_blob::MakeStore(options, store::azure_blob::ReadSurroundings(),
                                      std::make_shared<SystemClock>());
}

int Main(int argc, char** argv) {
  if (argc != 4) return 2;
  SetUpLogging(LogFormat::kTerminal, LogLevel::kInfo);
  const std::string url = argv[1];
  auto store = url.starts_with("s3://") ? InS3(url, argv[2], argv[3]) : InAzure(url, argv[2]);
  if (!store.ok()) {
    std::cout << Told(store.error()).dump() << std::endl;
    return 1;
  }
  Asked asked(std::move(*store));
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << asked.Answer(json::parse(line)).dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
