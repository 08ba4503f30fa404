#include "store/folder/folder_store.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/escape.h"
#include "base/time.h"
#include "store/folder/folder_listing.h"
#include "store/folder/folder_version.h"

namespace parallelrun::store {
namespace {

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string ModifiedAt(const FileStamp& stamp) {
  const std::chrono::nanoseconds since_1970(stamp.mtime_ns);
  return Rfc3339(WallTime(std::chrono::floor<Duration>(since_1970)));
}

// What was opened stays this file, but may be written to: its bytes are those of the version only
// while nobody does.
class OpenFile final : public Object {
 public:
  OpenFile(std::unique_ptr<File> file, Found found)
      : file_(std::move(file)), found_(std::move(found)) {}

  const Found& found() const override { return found_; }
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    const uint64_t left = found_.size - std::min(offset, found_.size);
    return file_->ReadInto(offset, to.first(std::min<uint64_t>(to.size(), left)));
  }

 private:
  const std::unique_ptr<File> file_;
  const Found found_;
};

class FolderStore final : public Store {
 public:
  FolderStore(const Files& files, FolderRoot root) : files_(files), root_(std::move(root)) {
    root_.path = WithoutSlashes(std::move(root_.path));
  }

  Result<std::unique_ptr<Listing>> List(Wanted wanted, const std::string& after) override {
    const Result<const OpenRoot*> root = Root();
    if (!root.ok()) return root.error();
    auto listing = std::make_unique<FolderListing>(files_, root_, **root, std::move(wanted), after);
    if (const Status begun = listing->Begin(); !begun.ok()) return begun.error();
    return std::unique_ptr<Listing>(std::move(listing));
  }

  Result<bool> IsThere() override {
    const Result<const OpenRoot*> root = Root();
    if (!root.ok() && root.error().code == Code::kNotFound) return false;
    if (!root.ok()) return root.error();
    return true;
  }

  Result<std::optional<Found>> Stat(const std::string& name) override {
    const Result<const OpenRoot*> root = Root();
    if (!root.ok()) return root.error();
    if (const Status going = CheckGoesOn(root_.stop, (*root)->path); !going.ok()) {
      return going.error();
    }
    const Result<FileFacts> facts = (*root)->folder->Stat(name, Links::kFollow);
    // A listing has no such names, and whoever names one of his own accord means a file.
    const bool other =
        facts.ok() && (facts->kind == EntryKind::kFolder || facts->kind == EntryKind::kOther);
    if (other) return std::optional<Found>();
    if (facts.ok()) return std::optional(FoundAs(*facts));
    if (facts.error().code == Code::kNotFound) return std::optional<Found>();
    return facts.error();
  }

  Result<std::unique_ptr<Object>> Open(const std::string& name) override {
    const Result<const OpenRoot*> root = Root();
    if (!root.ok()) return root.error();
    Result<std::unique_ptr<File>> file = (*root)->folder->OpenRead(name);
    if (!file.ok()) return file.error();
    const Result<FileFacts> facts = (*file)->Stat();
    if (!facts.ok()) return facts.error();
    (*file)->ExpectSequentialReads();
    return std::unique_ptr<Object>(std::make_unique<OpenFile>(std::move(*file), FoundAs(*facts)));
  }

  std::string Location(std::string_view name) const override {
    std::string location = root_.path;
    {
      const std::lock_guard lock(mutex_);
      if (open_) location = open_->path;
    }
    if (name.empty()) return location;
    if (location != "/") location += '/';
    return location.append(name);
  }

  Result<std::string> RealRoot() override {
    const Result<const OpenRoot*> root = Root();
    if (!root.ok()) return root.error();
    return files_.RealPath((*root)->path);
  }

  // Files have no ETag.
  std::optional<Found> Pinned(const Pin& pin, const std::optional<Found>& now) const override {
    if (!now || !pin.size) return now;
    return Found{*pin.size, VersionOf({*pin.size, StampIn(now->version).mtime_ns})};
  }

  std::string Difference(const Version& was, const Version& is) const override {
    const FileStamp before = StampIn(was);
    const FileStamp now = StampIn(is);
    if (now.size != before.size) {
      return fmt::format("had {} bytes, has {}", before.size, now.size);
    }
    return fmt::format("was modified at {}, and again at {}", ModifiedAt(before), ModifiedAt(now));
  }

  // It has always been written as it is.
  Version AsBefore(const Version& version) const override { return version; }

 private:
  // The root, opened where it is not yet. What failed is tried again by the next call.
  Result<const OpenRoot*> Root() {
    const std::lock_guard lock(mutex_);
    if (!open_) {
      Result<std::unique_ptr<OpenRoot>> opened = OpenFolderRoot(files_, root_.path);
      if (!opened.ok()) return opened.error();
      open_ = std::move(*opened);
    }
    return open_.get();
  }

  const Files& files_;
  FolderRoot root_;
  mutable std::mutex mutex_;
  std::unique_ptr<const OpenRoot> open_;  // once it is there it stays
};

}  // namespace

std::unique_ptr<Store> MakeFolderStore(const Files& files, FolderRoot root) {
  return std::make_unique<FolderStore>(files, std::move(root));
}

}  // namespace parallelrun::store
