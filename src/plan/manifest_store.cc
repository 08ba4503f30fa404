#include "plan/manifest_store.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/in_order.h"
#include "job/plan_chunk.h"
#include "plan/manifest_reader.h"
#include "plan/source.h"
#include "store/objects/object_version.h"

namespace parallelrun::plan {
namespace {

std::string ShownPath(std::string_view path) { return Printable(path, 4096); }

// The digests of the names that were read: 8 bytes each, in a table that is at most three quarters
// full.
class SeenNames {
 public:
  // False: it was there.
  bool Add(std::string_view name) {
    if ((count_ + 1) * 4 > slots_.size() * 3) Grow();
    const uint64_t digest = XXH3_64bits(name.data(), name.size());
    if (!Put(digest == kFree ? 1 : digest)) return false;
    ++count_;
    return true;
  }

 private:
  static constexpr uint64_t kFree = 0;

  bool Put(uint64_t digest) {
    const size_t last = slots_.size() - 1;  // their number is a power of two
    for (size_t at = digest & last;; at = (at + 1) & last) {
      if (slots_[at] == digest) return false;
      if (slots_[at] != kFree) continue;
      slots_[at] = digest;
      return true;
    }
  }

  void Grow() {
    std::vector<uint64_t> before(slots_.size() * 2, kFree);
    before.swap(slots_);
    for (const uint64_t digest : before) {
      if (digest != kFree) Put(digest);
    }
  }

  std::vector<uint64_t> slots_ = std::vector<uint64_t>(1024, kFree);
  size_t count_ = 0;
};

// Which folders must not be met, by the places that they are after all links.
class ForbiddenFolders {
 public:
  ForbiddenFolders(const Files* files, const std::vector<std::string>& folders) : files_(files) {
    for (const std::string& folder : folders) {
      if (const Result<std::string> real = files_->RealPath(folder); real.ok()) {
        real_.push_back(*real);
      }
    }
  }

  // Whether a folder is one of them, or lies in one. Where nothing is, nothing is met.
  bool Has(const std::string& folder) {
    if (real_.empty() || folder == last_) return last_is_;
    const Result<std::string> real = files_->RealPath(folder);
    last_ = folder;
    last_is_ = false;
    for (const std::string& one : real_) {
      if (real.ok() && (*real + "/").starts_with(one + "/")) last_is_ = true;
    }
    return last_is_;
  }

 private:
  const Files* files_;
  std::vector<std::string> real_;
  std::string last_;  // names of one folder mostly stand together
  bool last_is_ = false;
};

// The manifest as a file of its own, and what is said of it.
class ManifestFile {
 public:
  ManifestFile(const PlanInput& input, std::unique_ptr<store::Store> place)
      : manifest_(input.manifest),
        in_store_(!input.store.empty()),
        stop_(input.stop),
        place_(std::move(place)) {}

  // Nothing where it is not there, or is no file.
  Result<std::optional<store::Found>> Stat() {
    auto found = place_->Stat(std::string(LastPart(manifest_.path)));
    if (!found.ok() && found.error().code == Code::kNotFound) return std::optional<store::Found>();
    return found;
  }

  Result<std::unique_ptr<ManifestReader>> Open() {
    const Result<std::optional<store::Found>> found = Stat();
    if (!found.ok()) return found.error();
    if (!*found) {
      if (const Status place = CheckPlace(); !place.ok()) return place.error();
      return Error{Code::kNotFound, ShownPath(manifest_.path) +
                                        ": the manifest is not there, or is no file; correct "
                                        "manifest.path"};
    }
    auto reader =
        ManifestReader::Open(*place_, std::string(LastPart(manifest_.path)), manifest_, stop_);
    if (!reader.ok()) return reader.error();
    if (Status same = CheckIs((*reader)->found(), manifest_.planned); !same.ok())
      return same.error();
    return reader;
  }

  // Whether it is still the one that was opened.
  Status CheckUnchanged(const ManifestReader& reader) {
    const Result<std::optional<store::Found>> now = Stat();
    if (!now.ok()) return now.error();
    return CheckIs(now->value_or(store::Found()), reader.found().version);
  }

 private:
  // A look at an object does not tell one that is not there from a bucket that is not, and that is
  // no empty day, whatever allowEmpty says.
  Status CheckPlace() {
    if (!in_store_) return {};
    const Result<bool> there = place_->IsThere();
    if (there.ok() || there.error().code != Code::kNotFound) return {};
    return Error{Code::kInvalid, there.error().message};
  }

  Status CheckIs(const store::Found& found, const store::Version& wanted) const {
    if (wanted.bytes().empty() || place_->IsStill(wanted, found.version)) return {};
    return Error{Code::kInvalid,
                 fmt::format("{}: the manifest has changed since items of it were planned, and "
                             "which of them were could not be told: put back what it was, or "
                             "start over (--overwrite, or output.ifExists: Overwrite)",
                             ShownPath(manifest_.path))};
  }

  const PlanManifest manifest_;
  const bool in_store_;
  const std::stop_token stop_;
  const std::unique_ptr<store::Store> place_;
};

// What a line names, on its way to whoever asked.
struct NamedItem {
  std::string name;
  std::string metadata;
  store::Pin pin;
  std::optional<store::Found> found;
};

// Where a listing goes on: behind a name, or behind so many items where names may come again.
struct Behind {
  std::string name;  // empty: from the first on
  bool counts = false;
  uint64_t items = 0;
};

class ManifestListing final : public store::Listing {
 public:
  // Each name is looked at in `looks_at`, where that is one, by several threads at once.
  ManifestListing(ManifestFile& file, std::unique_ptr<ManifestReader> reader, std::string root,
                  ForbiddenFolders forbidden, store::Store* looks_at, store::Wanted wanted,
                  Behind behind)
      : file_(file),
        reader_(std::move(reader)),
        root_(std::move(root)),
        forbidden_(std::move(forbidden)),
        looks_at_(looks_at),
        wanted_(std::move(wanted)),
        behind_(std::move(behind)),
        found_begin_(behind_.name.empty()) {}

  Result<std::optional<store::Listed>> Next() override {
    if (next_ == ahead_.size() && !ended_) {
      if (const Status read = ReadAhead(); !read.ok()) return read.error();
    }
    if (next_ == ahead_.size()) return std::optional<store::Listed>();
    NamedItem& item = ahead_[next_++];
    return std::optional(store::Listed{item.name, std::move(item.found), item.metadata});
  }

 private:
  static constexpr size_t kLooks = 16;  // at once

  // The next items, and what is there of them. One where that costs nothing to ask for later.
  Status ReadAhead() {
    ahead_.clear();
    next_ = 0;
    const size_t wanted = looks_at_ != nullptr ? 4 * kLooks : 1;
    while (ahead_.size() < wanted && !ended_) {
      const Result<std::optional<ManifestItem>> item = reader_->Next();
      if (!item.ok()) return item.error();
      if (!*item) {
        ended_ = true;
        if (const Status end = CheckEnd(); !end.ok()) return end;
        break;
      }
      if (const Status once = CheckOnce(**item); !once.ok()) return once;
      if (!found_begin_ && !behind_.counts) {
        found_begin_ = (*item)->name == behind_.name;
        continue;
      }
      if (!wanted_.name((*item)->name)) continue;
      if (!found_begin_) {
        found_begin_ = ++passed_ == behind_.items;
        continue;
      }
      if (const Status allowed = CheckFolder(**item); !allowed.ok()) return allowed;
      ahead_.push_back(
          {std::string((*item)->name), std::string((*item)->metadata), (*item)->pin, {}});
    }
    return looks_at_ != nullptr ? LookAtThem() : Status();
  }

  // One that its line tells whole costs no request. Another one than is there fails its own
  // mini-batch: whoever reads it says how it differs.
  Status LookAtThem() {
    std::vector<NamedItem*> unseen;
    for (NamedItem& item : ahead_) {
      item.found = looks_at_->Pinned(item.pin, std::nullopt);
      if (!item.found) unseen.push_back(&item);
    }
    if (unseen.empty()) return {};
    Status status;
    MakeInOrder(
        Makers{"looks", kLooks}, unseen.size(),
        [&](size_t i) { return looks_at_->Stat(unseen[i]->name); },
        [&](size_t i, const Result<std::optional<store::Found>>& found) {
          if (!found.ok()) {
            status = found.error();
            return false;
          }
          unseen[i]->found = looks_at_->Pinned(unseen[i]->pin, *found);
          return true;
        });
    return status;
  }

  Status CheckEnd() {
    if (found_begin_) return file_.CheckUnchanged(*reader_);
    return Error{Code::kInvalid, "the manifest no longer names " + ShownPath(behind_.name) +
                                     ", up to which it was planned: put back what it was, or "
                                     "start over"};
  }

  Status CheckOnce(const ManifestItem& item) {
    if (behind_.counts || seen_.Add(item.name)) return {};
    auto again = file_.Open();
    if (!again.ok()) return again.error();
    while (true) {
      const Result<std::optional<ManifestItem>> earlier = (*again)->Next();
      if (!earlier.ok()) return earlier.error();
      // Two names with one digest.
      if (!*earlier || (*earlier)->line >= item.line) return {};
      if ((*earlier)->name != item.name) continue;
      return reader_->Wrong(item.line,
                            fmt::format("\"{}\" stands in line {} too, and would be run twice: "
                                        "leave one of them out, or write duplicates: Keep",
                                        Printable(item.name, kShownLong), (*earlier)->line));
    }
  }

  Status CheckFolder(const ManifestItem& item) {
    const size_t slash = item.name.rfind('/');
    const std::string_view below = slash == item.name.npos ? "" : item.name.substr(0, slash);
    if (!forbidden_.Has(below.empty() ? root_ : JoinPath(root_, below))) return {};
    return reader_->Wrong(item.line, fmt::format("\"{}\" lies where the job writes its output, "
                                                 "state or logs: give the output another path, or "
                                                 "leave it out",
                                                 Printable(item.name, kShownLong)));
  }

  ManifestFile& file_;
  const std::unique_ptr<ManifestReader> reader_;
  const std::string root_;
  ForbiddenFolders forbidden_;
  store::Store* const looks_at_;
  const store::Wanted wanted_;
  const Behind behind_;
  bool found_begin_;
  uint64_t passed_ = 0;
  SeenNames seen_;
  std::vector<NamedItem> ahead_;
  size_t next_ = 0;  // of these
  bool ended_ = false;
};

class ManifestStore final : public store::Store {
 public:
  ManifestStore(const PlanInput& input, ManifestParts parts)
      : root_(WithoutSlash(input.root)),
        in_store_(!input.store.empty()),
        urls_(input.urls),
        keeps_twice_(input.manifest.keeps_twice),
        items_planned_(input.manifest.items_planned),
        looks_((in_store_ && !urls_) || !input.manifest.size_column.empty()),
        nothing_(in_store_ && !urls_ ? store::Version(std::string(store::kNoObject))
                                     : store::Version(std::string(job::kNoVersion))),
        items_(std::move(parts.items)),
        forbidden_(std::move(parts.forbidden)),
        files_(parts.files),
        file_(input, std::move(parts.place)) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    const Result<std::string> real = items_->RealRoot();
    if (!real.ok()) return real.error();
    if (items_->Location("") != root_) {
      return Error{Code::kInvalid, ShownPath(root_) +
                                       " is a file, and a manifest names files below a folder: "
                                       "give the folder as path"};
    }
    auto reader = file_.Open();
    if (!reader.ok()) return reader.error();
    return std::unique_ptr<store::Listing>(std::make_unique<ManifestListing>(
        file_, std::move(*reader), root_, ForbiddenFolders(files_, forbidden_),
        looks_ ? this : nullptr, std::move(wanted), Behind{after, keeps_twice_, items_planned_}));
  }
  // One that names nothing is there.
  Result<bool> IsThere() override {
    const Result<std::optional<store::Found>> found = file_.Stat();
    if (!found.ok()) return found.error();
    return found->has_value();
  }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    if (name == kManifestItself) return file_.Stat();
    if (urls_) return std::optional(store::Found{0, nothing_});
    auto found = items_->Stat(name);
    if (!found.ok() || *found) return found;
    return std::optional(store::Found{0, nothing_});
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    return items_->Open(name);
  }
  std::string Location(std::string_view name) const override { return items_->Location(name); }
  Result<std::string> RealRoot() override { return items_->RealRoot(); }
  std::optional<store::Found> Pinned(const store::Pin& pin,
                                     const std::optional<store::Found>& now) const override {
    return now && now->version == nothing_ ? now : items_->Pinned(pin, now);
  }
  std::string Difference(const store::Version& was, const store::Version& is) const override {
    if (is == nothing_) return "is gone";
    return items_->Difference(was, is);
  }
  store::Version AsBefore(const store::Version& version) const override {
    return items_->AsBefore(version);
  }

 private:
  const std::string root_;
  const bool in_store_;
  const bool urls_;
  const bool keeps_twice_;
  const uint64_t items_planned_;
  const bool looks_;  // while it lists
  const store::Version nothing_;
  const std::unique_ptr<store::Store> items_;
  const std::vector<std::string> forbidden_;
  const Files* const files_;
  ManifestFile file_;
};

}  // namespace

std::unique_ptr<store::Store> MakeManifestStore(const PlanInput& input, ManifestParts parts) {
  return std::make_unique<ManifestStore>(input, std::move(parts));
}

}  // namespace parallelrun::plan
