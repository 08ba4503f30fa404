#include "output/store/stored_side_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/escape.h"
#include "base/hex.h"
#include "base/in_order.h"
#include "output/result_rows.h"
#include "output/side_files.h"
#include "output/store/side_upload_notes.h"

namespace parallelrun::output {
namespace {

constexpr char kSha256Mark[] = "parallelrun-sha256";
constexpr int kPlaceTries = 10;        // each of which found another object in the file's place
constexpr size_t kSideAtOnce = 16;     // requests
constexpr size_t kSideTogether = 512;  // files, between two looks for a newer epoch

struct SideItem {
  job::BatchId id = 0;
  job::SideFile file;
};

std::string ShownName(const job::SideFile& file) { return Printable(file.name, kShown); }

Error LostUpload(const SideItem& item) {
  return {Code::kInvalid,
          fmt::format("the side file {} of mini-batch {} is not in the store any more: its upload "
                      "was ended, by somebody or by a rule of the bucket, before the job was over. "
                      "Continue the run, which runs that mini-batch again",
                      ShownName(item.file), job::MiniBatchText(item.id))};
}

// Of side files, by some requests at once.
class Placer {
 public:
  Placer(const StoredSidePlaces& places, bool may_replace)
      : places_(places), store_(*places.store), may_replace_(may_replace) {}

  // Nothing is changed.
  Status Check(const SideItem& item) const {
    if (IsNameOfTheJob(places_.reserved, item.file.name)) {
      return Error{Code::kInvalid,
                   fmt::format("the side file {} has a name that the job itself uses: choose "
                               "another one, and start over with --overwrite",
                               ShownName(item.file))};
    }
    if (item.file.upload.empty()) {
      return Error{Code::kInvalid,
                   fmt::format("the side file {} of mini-batch {} is not in a store: start over "
                               "with --overwrite",
                               ShownName(item.file), job::MiniBatchText(item.id))};
    }
    const Result<StoreStep> step = Judge(item.file);
    if (!step.ok()) return step.error();
    return step->kind == StoreStep::Kind::kForeign ? Foreign(item.file, *step) : Status();
  }

  Status Place(const SideItem& item) const {
    const job::SideFile& file = item.file;
    store::Expected expected;
    for (int i = 0; i < kPlaceTries; ++i) {
      const Status completed =
          store_.CompleteUpload(NameOf(file), file.upload, file.etags, expected);
      if (completed.ok()) return {};
      const Code code = completed.error().code;
      // What is there tells, where the answer does not.
      if (code != Code::kStale && code != Code::kNotFound && code != Code::kUnavailable) {
        return completed;
      }
      const Result<StoreStep> step = Judge(file);
      if (!step.ok()) return step.error();
      if (step->kind == StoreStep::Kind::kIsThere) return {};
      if (step->kind == StoreStep::Kind::kForeign) return Foreign(file, *step);
      if (code == Code::kUnavailable) return completed;
      // What was to be replaced is another by now, or gone.
      if (step->expected != expected) {
        expected = step->expected;
        continue;
      }
      if (code == Code::kNotFound) return LostUpload(item);
    }
    return Error{Code::kExists,
                 store_.Location(NameOf(file)) + " appears again and again: end what writes it"};
  }

  // By its marks alone: a person is asked for nothing that is there.
  Result<bool> Has(const job::SideFile& file) const {
    if (file.upload.empty()) return false;
    const Result<std::optional<store::Stored>> there = store_.Look(NameOf(file));
    if (!there.ok()) return there.error();
    if (NextSideStep(*there, places_.run_id, file, may_replace_).kind ==
        StoreStep::Kind::kIsThere) {
      return true;
    }
    return store_.HasUpload(NameOf(file), file.upload);
  }

 private:
  std::string NameOf(const job::SideFile& file) const { return places_.folder + file.name; }

  Result<StoreStep> Judge(const job::SideFile& file) const {
    const std::string name = NameOf(file);
    const Result<std::optional<store::Stored>> there = store_.Look(name);
    if (!there.ok()) return there.error();
    StoreStep step = NextSideStep(*there, places_.run_id, file, may_replace_);
    if (!step.bytes) return step;
    const std::unique_ptr<store::Object> object = store_.Open(name, (*there)->found);
    const Result<std::string> damage = DamageOf(
        (*there)->found.size,
        [&object](uint64_t offset, std::span<char> to) { return object->ReadAt(offset, to); },
        *step.bytes);
    if (!damage.ok()) return damage.error();
    if (damage->empty()) return step;
    step.kind = StoreStep::Kind::kForeign;
    return step;
  }

  Status Foreign(const job::SideFile& file, const StoreStep& step) const {
    return Error{Code::kExists, store_.Location(NameOf(file)) + " " + step.why};
  }

  const StoredSidePlaces& places_;
  store::WriteStore& store_;
  const bool may_replace_;
};

// The first error, of those that were begun.
Status ForAll(const std::vector<SideItem>& items,
              const std::function<Status(const SideItem&)>& each) {
  Status first;
  MakeInOrder(
      Makers{"side files", kSideAtOnce}, items.size(), [&](size_t i) { return each(items[i]); },
      [&](size_t, Status one) {
        first = std::move(one);
        return first.ok();
      });
  return first;
}

// All side files that count, some at a time.
Status EachFew(const ledger::Ledger& ledger, const job::JobState& state,
               const std::function<Status(const std::vector<SideItem>&)>& take) {
  std::vector<SideItem> items;
  const Status read =
      EachSideList(ledger, state, [&](job::BatchId id, const job::SideList& list) -> Status {
        for (const job::SideFile& file : list.files) items.push_back({id, file});
        if (items.size() < kSideTogether) return {};
        return take(std::exchange(items, {}));
      });
  if (!read.ok()) return read;
  return items.empty() ? Status() : take(items);
}

}  // namespace

store::Marks MarksOfSideFile(const OutputMark& mark, const Sha256::Digest& sha256) {
  store::Marks marks = MarksOf(mark);
  marks[kSha256Mark] = Hex(sha256);
  return marks;
}

StoreStep NextSideStep(const std::optional<store::Stored>& there, uint64_t run_id,
                       const job::SideFile& file, bool may_replace) {
  StoreStep step;
  if (!there) return step;
  step.why = "is there, and is not this run's, which has a side file of that name: move it away";
  const std::optional<OutputMark> mark = MarkOf(there->marks);
  const bool of_this_run = mark && mark->run_id == run_id;
  const auto digest = there->marks.find(kSha256Mark);
  if (of_this_run && digest != there->marks.end() && digest->second == Hex(file.sha256) &&
      there->found.size == file.bytes) {
    step.kind = StoreStep::Kind::kIsThere;
    step.bytes = job::Published{file.name, file.bytes, 0, file.sha256};
    return step;
  }
  // One of this run that is another is of a result that was void later.
  step.kind = may_replace || (of_this_run && digest != there->marks.end())
                  ? StoreStep::Kind::kComplete
                  : StoreStep::Kind::kForeign;
  if (step.kind == StoreStep::Kind::kComplete) step.expected = there->found.version;
  return step;
}

Status PublishSideFiles(const StoredSidePlaces& places, const ledger::Ledger& ledger,
                        const job::JobState& state, const Replaceable& replaceable,
                        const std::function<Status()>& newest) {
  const Placer placer(places, replaceable.whatever || replaceable.last);
  const auto still_ours = [&]() -> Status {
    if (Status still = newest(); !still.ok()) return still;
    return places.held();
  };
  const std::hash<std::string> hash;
  std::unordered_set<size_t> named;  // uploads
  if (!state.side_names().empty()) {
    const Status checked = EachFew(ledger, state, [&](const std::vector<SideItem>& items) {
      for (const SideItem& item : items) named.insert(hash(item.file.upload));
      return ForAll(items, [&placer](const SideItem& item) { return placer.Check(item); });
    });
    if (!checked.ok()) return checked;
    const Status placed = EachFew(ledger, state, [&](const std::vector<SideItem>& items) -> Status {
      if (Status still = still_ours(); !still.ok()) return still;
      return ForAll(items, [&placer](const SideItem& item) { return placer.Place(item); });
    });
    if (!placed.ok()) return placed;
  }
  if (Status still = still_ours(); !still.ok()) return still;
  return EndSideUploads(
      *places.notes, *places.store, [&places](uint64_t run) { return run == places.run_id; },
      [&](const std::string& id) { return named.contains(hash(id)); });
}

Result<std::vector<bool>> HaveSideFiles(const StoredSidePlaces& places,
                                        const std::vector<job::SideList>& lists) {
  const Placer placer(places, false);
  std::vector<std::pair<size_t, const job::SideFile*>> files;
  for (size_t i = 0; i < lists.size(); ++i) {
    for (const job::SideFile& file : lists[i].files) files.emplace_back(i, &file);
  }
  std::vector<bool> have(lists.size(), true);
  Status failed;
  MakeInOrder(
      Makers{"side files", kSideAtOnce}, files.size(),
      [&](size_t i) { return placer.Has(*files[i].second); },
      [&](size_t i, const Result<bool>& has) {
        if (!has.ok()) failed = has.error();
        if (has.ok() && !*has) have[files[i].first] = false;
        return has.ok();
      });
  if (!failed.ok()) return failed.error();
  return have;
}

}  // namespace parallelrun::output
