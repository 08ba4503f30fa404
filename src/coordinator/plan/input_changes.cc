#include "coordinator/plan/input_changes.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/escape.h"
#include "base/time.h"
#include "coordinator/plan/listing.h"
#include "coordinator/plan/row_files.h"
#include "coordinator/plan/source.h"

namespace parallelrun {
namespace {

constexpr size_t kShownPath = 4096;

uint64_t DigestOf(uint32_t input, std::string_view path) {
  return XXH3_64bits_withSeed(path.data(), path.size(), input);
}

uint64_t DigestOf(const FileStamp& stamp) {
  return XXH3_64bits_withSeed(&stamp.size, sizeof stamp.size,
                              static_cast<uint64_t>(stamp.mtime_ns));
}

// A planned file in 12 bytes, since there may be tens of millions: its digests, of the stamp as
// many bits as are left. Two paths with one digest would make one of them a file that is gone, so
// that all 64 bits of the path's stay; what a file is now is compared with its own stamp only.
class Planned {
 public:
  enum Found : uint32_t { kGone, kChanged, kSame };

  Planned(uint64_t path, uint64_t stamp)
      : path_low_(static_cast<uint32_t>(path)),
        path_high_(static_cast<uint32_t>(path >> 32)),
        stamp_(ShortOf(stamp)) {}

  uint64_t path() const { return uint64_t{path_high_} << 32 | path_low_; }
  Found found() const { return static_cast<Found>(stamp_ & 3); }
  void set_found(Found found) { stamp_ = (stamp_ & ~uint32_t{3}) | found; }
  bool HasStamp(uint64_t stamp) const { return (stamp_ & ~uint32_t{3}) == ShortOf(stamp); }

 private:
  static uint32_t ShortOf(uint64_t stamp) { return static_cast<uint32_t>(stamp) & ~uint32_t{3}; }

  uint32_t path_low_;
  uint32_t path_high_;
  uint32_t stamp_;  // and in its two lowest bits what was found
};
static_assert(sizeof(Planned) == 12);

// Calls `visit(path, stamp)` for each file of a chunk; for a table once in each chunk.
template <typename Visit>
void EachFile(const PlanChunkRecord& chunk, Visit visit) {
  const auto each_name = [&visit](std::string_view root, std::string_view names,
                                  const std::vector<FileStamp>& stamps) {
    const std::string folder(root);
    for (const FileStamp& stamp : stamps) {
      const size_t end = std::min(names.find('\0'), names.size());
      visit(JoinPath(folder, names.substr(0, end)), stamp);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  };
  if (const auto* files = std::get_if<FilesChunk>(&chunk.content)) {
    each_name(files->root, files->names, files->stamps);
  } else if (const auto* groups = std::get_if<FileGroupsChunk>(&chunk.content)) {
    for (const FileGroup& group : groups->groups) {
      each_name(groups->root, group.names, group.stamps);
    }
  } else if (const auto* table = std::get_if<TabularChunk>(&chunk.content)) {
    visit(table->path, table->stamp);
  } else if (const auto* tables = std::get_if<TableGroupsChunk>(&chunk.content)) {
    for (const TableGroup& group : tables->groups) {
      for (const TableSlice& slice : group.slices) visit(slice.path, slice.stamp);
    }
  }
}

std::string ModifiedAt(const FileStamp& stamp) {
  const std::chrono::nanoseconds since_1970(stamp.mtime_ns);
  return Rfc3339(WallTime(std::chrono::floor<Duration>(since_1970)));
}

void Add(InputChanges::Files& to, const PlanInput& input, std::string_view path,
         std::string_view what) {
  if (to.count++ >= InputChanges::kMostNamed) return;
  to.named.push_back(fmt::format("{}: {}{}{}", PlaceOf(input), Printable(path, kShownPath),
                                 what.empty() ? "" : " ", what));
}

class Comparison {
 public:
  Comparison(const ReadPlan& read, bool plan_ended, const std::vector<PlanInput>& inputs,
             const PlanDisk& disk, const std::function<void()>& step)
      : read_(read), plan_ended_(plan_ended), inputs_(inputs), disk_(disk), step_(step) {}

  Result<InputChanges> Run() {
    const Status planned = ReadPlanned();
    if (!planned.ok()) return planned.error();
    if (planned_.empty()) return InputChanges();
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
  Status ReadPlanned() {
    const Status read = read_([this](const PlanChunkRecord& chunk) {
      EachFile(chunk, [&](std::string_view path, const FileStamp& stamp) {
        const uint64_t digest = DigestOf(chunk.input, path);
        if (planned_.empty() || planned_.back().path() != digest) {
          planned_.emplace_back(digest, DigestOf(stamp));
        }
      });
      end_ = CursorAfter(chunk, inputs_);
    });
    std::sort(planned_.begin(), planned_.end(),
              [](const Planned& a, const Planned& b) { return a.path() < b.path(); });
    return read;
  }

  Planned* Find(uint64_t path) {
    const auto found =
        std::lower_bound(planned_.begin(), planned_.end(), path,
                         [](const Planned& file, uint64_t wanted) { return file.path() < wanted; });
    return found == planned_.end() || found->path() != path ? nullptr : &*found;
  }

  Status List(uint32_t number) {
    const PlanInput& input = inputs_[number];
    if (input.kind == PlanKind::kRanks) return {};
    const bool to_the_end = plan_ended_ || number < end_.input;
    // Groups are not planned in the order of the names: the planner itself refuses to go on when
    // other files are there than it grouped.
    const bool in_order = input.partition_keys.empty();
    Listing listing(disk_.files, ListingOf(input, disk_));
    std::optional<RowFiles> rows;
    while (true) {
      const auto next = listing.Next();
      if (!next.ok()) return next.error();
      if (!*next) return {};
      step_();
      const std::string name(**next);
      if (!to_the_end && in_order && name > end_.last_name) return {};
      const std::string path = JoinPath(listing.folder(), name);
      const auto stamp = listing.Stamp(name);
      if (!stamp.ok()) return stamp.error();
      if (!*stamp) continue;
      if (Planned* planned = Find(DigestOf(number, path)); planned != nullptr) {
        Compare(*planned, **stamp);
      } else if (to_the_end || in_order) {
        if (!rows) {
          const Status prepared = rows.emplace(input, disk_).Prepare("");
          if (!prepared.ok()) return prepared;
        }
        if (HasItems(input, *rows, listing.folder(), name)) Add(changes_.added, input, path, "");
      }
    }
  }

  void Compare(Planned& planned, const FileStamp& now) {
    planned.set_found(planned.HasStamp(DigestOf(now)) ? Planned::kSame : Planned::kChanged);
    if (planned.found() == Planned::kChanged && now_.size() < InputChanges::kMostNamed) {
      now_[planned.path()] = now;
    }
  }

  // A file without a row is never planned. One that cannot be read is told of.
  static bool HasItems(const PlanInput& input, RowFiles& rows, const std::string& folder,
                       const std::string& name) {
    if (input.kind == PlanKind::kFiles) return true;
    const auto file = rows.Open(folder, name);
    if (!file.ok()) return true;
    if (!file->splitter) return false;
    const auto row = file->splitter->Next(1);
    return !row.ok() || *row;
  }

  // Reads the plan again, for the names and for what the files were.
  Status NameDifferences() {
    return read_([this](const PlanChunkRecord& chunk) {
      EachFile(chunk, [&](std::string_view path, const FileStamp& before) {
        Planned* planned = Find(DigestOf(chunk.input, path));
        if (planned == nullptr || planned->found() == Planned::kSame) return;
        const auto now = now_.find(planned->path());
        const std::string what = planned->found() == Planned::kGone ? "is gone"
                                 : now == now_.end()                ? "has changed"
                                                     : DescribeChange(before, now->second);
        planned->set_found(Planned::kSame);  // told
        Add(changes_.differ, inputs_[chunk.input], path, what);
      });
    });
  }

  const ReadPlan& read_;
  const bool plan_ended_;
  const std::vector<PlanInput>& inputs_;
  const PlanDisk& disk_;
  const std::function<void()>& step_;
  PlanCursor end_;  // of the plan
  // In blocks: an array that grows is there twice while it is copied.
  std::deque<Planned> planned_;
  std::map<uint64_t, FileStamp> now_;  // of the first changed files
  InputChanges changes_;
};

}  // namespace

std::string DescribeChange(const FileStamp& before, const FileStamp& now) {
  if (now.size != before.size) return fmt::format("had {} bytes, has {}", before.size, now.size);
  return fmt::format("was modified at {}, and again at {}", ModifiedAt(before), ModifiedAt(now));
}

Result<InputChanges> FindInputChanges(const ReadPlan& read, bool plan_ended,
                                      const std::vector<PlanInput>& inputs, const PlanDisk& disk,
                                      const std::function<void()>& step) {
  return Comparison(read, plan_ended, inputs, disk, step).Run();
}

}  // namespace parallelrun
