#include "plan/input_changes.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "plan/chunk_files.h"
#include "plan/listing.h"
#include "plan/manifest_store.h"
#include "plan/row_files.h"
#include "plan/source.h"
#include "store/objects/object_version.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kShownPath = 4096;

uint64_t DigestOf(uint32_t input, std::string_view path) {
  return XXH3_64bits_withSeed(path.data(), path.size(), input);
}

uint64_t DigestOf(std::string_view version) { return XXH3_64bits(version.data(), version.size()); }

// A planned file in 12 bytes, since there may be tens of millions: its digests, of the version as
// many bits as are left. Two paths with one digest would make one of them a file that is gone, so
// that all 64 bits of the path's stay; what a file is now is compared with its own version only.
class Planned {
 public:
  enum Found : uint32_t { kGone, kChanged, kSame };

  Planned(uint64_t path, uint64_t version)
      : path_low_(static_cast<uint32_t>(path)),
        path_high_(static_cast<uint32_t>(path >> 32)),
        version_(ShortOf(version)) {}

  uint64_t path() const { return uint64_t{path_high_} << 32 | path_low_; }
  Found found() const { return static_cast<Found>(version_ & 3); }
  void set_found(Found found) { version_ = (version_ & ~uint32_t{3}) | found; }
  bool HasVersion(uint64_t version) const { return (version_ & ~uint32_t{3}) == ShortOf(version); }
  bool operator==(const Planned&) const = default;
  bool operator<(const Planned& other) const {
    return path() == other.path() ? version_ < other.version_ : path() < other.path();
  }

 private:
  static uint32_t ShortOf(uint64_t version) {
    return static_cast<uint32_t>(version) & ~uint32_t{3};
  }

  uint32_t path_low_;
  uint32_t path_high_;
  uint32_t version_;  // and in its two lowest bits what was found
};
static_assert(sizeof(Planned) == 12);

void Add(InputChanges::Files& to, const PlanInput& input, std::string_view path,
         std::string_view what) {
  if (to.count++ >= InputChanges::kMostNamed) return;
  to.named.push_back(fmt::format("{}: {}{}{}", PlaceOf(input), Printable(path, kShownPath),
                                 what.empty() ? "" : " ", what));
}

class Comparison {
 public:
  Comparison(const ReadPlan& read, bool plan_ended, const std::vector<PlanInput>& inputs,
             const OpenStore& open, const std::function<void()>& step)
      : read_(read), plan_ended_(plan_ended && !Limited(inputs)), inputs_(inputs), step_(step) {
    for (const PlanInput& input : inputs) stores_.push_back(open(input));
  }

  Result<InputChanges> Run() {
    const Status planned = ReadPlanned();
    if (!planned.ok()) return planned.error();
    // Of an input that was empty, all that is there by now was added.
    if (planned_.empty() && !plan_ended_) return InputChanges();
    for (uint32_t input = 0; input < inputs_.size(); ++input) {
      if (!plan_ended_ && input > end_.input) break;
      const Status listed = List(input);
      if (!listed.ok()) return listed.error();
    }
    const auto same = [](const Planned& file) { return file.found() == Planned::kSame; };
    if (!std::all_of(planned_.begin(), planned_.end(), same)) {
      const Status named = NameDifferences();
      if (!named.ok()) return named.error();
    }
    return std::move(changes_);
  }

 private:
  // What lies behind the last item that was to be taken is no file that was added.
  static bool Limited(const std::vector<PlanInput>& inputs) {
    return std::any_of(inputs.begin(), inputs.end(),
                       [](const PlanInput& input) { return input.most_items != kAllItems; });
  }

  Status ReadPlanned() {
    const Status read = read_([this](const job::PlanChunkRecord& chunk) {
      EachPlannedFile(chunk, [&](std::string_view path, std::string_view version) {
        const Planned file(DigestOf(chunk.input, path), DigestOf(version));
        if (planned_.empty() || planned_.back() != file) planned_.push_back(file);
      });
      if (chunk.input != end_.input) items_of_last_ = 0;
      items_of_last_ += chunk.Items();
      end_ = CursorAfter(chunk, inputs_);
    });
    std::sort(planned_.begin(), planned_.end());
    // A manifest may name a file in several lines, as several versions even.
    planned_.erase(std::unique(planned_.begin(), planned_.end()), planned_.end());
    return read;
  }

  // Of one path, once for each version that was planned.
  std::vector<Planned*> Find(uint64_t path) {
    std::vector<Planned*> found;
    const auto first =
        std::lower_bound(planned_.begin(), planned_.end(), path,
                         [](const Planned& file, uint64_t wanted) { return file.path() < wanted; });
    for (auto file = first; file != planned_.end() && file->path() == path; ++file) {
      found.push_back(&*file);
    }
    return found;
  }

  Status List(uint32_t number) {
    const PlanInput& input = inputs_[number];
    if (input.kind == PlanKind::kRanks) return {};
    const bool by_manifest = !input.manifest.path.empty();
    const bool to_the_end = plan_ended_ || number < end_.input;
    // Groups are not planned in the order of the names: the planner itself refuses to go on when
    // other files are there than it grouped. A manifest has an order of its own.
    const bool in_order = input.partition_keys.empty() && !by_manifest;
    store::Store& store = *stores_[number];
    if (by_manifest) {
      const Result<bool> same = IsSameManifest(number);
      if (!same.ok()) return same.error();
      if (!*same) return {};
    }
    Listing listing(input, store);
    std::optional<RowFiles> rows;
    uint64_t listed = 0;
    while (true) {
      const auto next = listing.Next();
      if (!next.ok()) return next.error();
      if (!*next) return {};
      step_();
      const std::string name((*next)->name);
      if (!to_the_end && in_order && name > end_.last_name) return {};
      const std::string path = store.Location(name);
      Result<std::optional<store::Found>> found = (*next)->found;
      if (!*found) found = Look(input, store, name);
      if (!found.ok()) return found.error();
      if (!*found) continue;
      ++listed;
      const std::vector<Planned*> planned = Find(DigestOf(number, path));
      for (Planned* const file : planned) Compare(*file, store, (*found)->version);
      if (planned.empty() && (to_the_end || in_order)) {
        if (!rows) {
          const Status prepared = rows.emplace(input, store).Prepare("");
          if (!prepared.ok()) return prepared;
        }
        if (HasItems(input, *rows, name)) Add(changes_.added, input, path, "");
      }
      const bool last =
          input.manifest.keeps_twice ? listed == items_of_last_ : name == end_.last_name;
      if (by_manifest && !to_the_end && last) return {};
    }
  }

  // Of another one nobody could tell what its files have to do with those that were planned: it is
  // one difference in place of theirs.
  Result<bool> IsSameManifest(uint32_t number) {
    const PlanInput& input = inputs_[number];
    store::Store& store = *stores_[number];
    const store::Version& planned = input.manifest.planned;
    const auto now = store.Stat(kManifestItself);
    if (!now.ok()) return now.error().With(PlaceOf(input));
    if (planned.bytes().empty() || (*now && store.IsStill(planned, (*now)->version))) return true;
    Add(changes_.differ, input, input.manifest.path,
        *now ? store.Difference(planned, (*now)->version) : "is gone");
    other_manifest_.insert(number);
    return false;
  }

  // Of what was not there when a manifest named it no mini-batch has read anything.
  void Compare(Planned& planned, const store::Store& store, const store::Version& now) {
    if (planned.found() == Planned::kSame) return;  // in another line of its manifest
    const bool same = planned.HasVersion(DigestOf(now.bytes())) ||
                      planned.HasVersion(DigestOf(job::kNoVersion)) ||
                      planned.HasVersion(DigestOf(store::kNoObject)) ||
                      planned.HasVersion(DigestOf(store.AsBefore(now).bytes()));
    planned.set_found(same ? Planned::kSame : Planned::kChanged);
    if (planned.found() == Planned::kChanged && now_.size() < InputChanges::kMostNamed) {
      now_[planned.path()] = now;
    }
  }

  // A file without a row is never planned. One that cannot be read is told of.
  static bool HasItems(const PlanInput& input, RowFiles& rows, const std::string& name) {
    if (input.kind == PlanKind::kFiles) return true;
    const auto file = rows.Open(name);
    if (!file.ok()) return true;
    if (!file->splitter) return false;
    const auto row = file->splitter->Next(1);
    return !row.ok() || *row;
  }

  // Reads the plan again, for the names and for what the files were.
  Status NameDifferences() {
    return read_([this](const job::PlanChunkRecord& chunk) {
      if (other_manifest_.contains(chunk.input)) return;
      EachPlannedFile(chunk, [&](std::string_view path, std::string_view before) {
        const std::vector<Planned*> versions = Find(DigestOf(chunk.input, path));
        const auto found = std::find_if(
            versions.begin(), versions.end(),
            [&](const Planned* version) { return version->HasVersion(DigestOf(before)); });
        if (found == versions.end() || (*found)->found() == Planned::kSame) return;
        Planned* const planned = *found;
        const auto now = now_.find(planned->path());
        const std::string what = planned->found() == Planned::kGone ? "is gone"
                                 : now == now_.end()
                                     ? "has changed"
                                     : stores_[chunk.input]->Difference(
                                           store::Version(std::string(before)), now->second);
        planned->set_found(Planned::kSame);  // told
        Add(changes_.differ, inputs_[chunk.input], path, what);
      });
    });
  }

  const ReadPlan& read_;
  const bool plan_ended_;
  const std::vector<PlanInput>& inputs_;
  const std::function<void()>& step_;
  std::vector<std::unique_ptr<store::Store>> stores_;  // one an input
  PlanCursor end_;                                     // of the plan
  uint64_t items_of_last_ = 0;                         // that are planned of the input there
  // In blocks: an array that grows is there twice while it is copied.
  std::deque<Planned> planned_;
  std::map<uint64_t, store::Version> now_;  // of the first changed files
  std::set<uint32_t> other_manifest_;       // inputs that have another one by now
  InputChanges changes_;
};

}  // namespace

Result<InputChanges> FindInputChanges(const ReadPlan& read, bool plan_ended,
                                      const std::vector<PlanInput>& inputs, const OpenStore& open,
                                      const std::function<void()>& step) {
  return Comparison(read, plan_ended, inputs, open, step).Run();
}

}  // namespace parallelrun::plan
