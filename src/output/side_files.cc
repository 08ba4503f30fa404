#include "output/side_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/escape.h"
#include "output/output_file.h"
#include "output/output_index.h"

namespace parallelrun::output {
namespace {

constexpr int kMostDepth = 200;    // a folder is open for each
constexpr char kGone[] = ".gone";  // behind the name of one that is being removed

Status RemoveTree(Folder& parent, const std::string& name, int depth = 0) {
  if (depth > kMostDepth) return Error{Code::kInvalid, name + " lies too deep to be removed"};
  {
    const Result<std::unique_ptr<Folder>> folder = parent.OpenFolder(name);
    if (!folder.ok() && folder.error().code == Code::kNotFound) return {};
    if (!folder.ok()) return folder.error();
    std::vector<std::pair<std::string, EntryKind>> entries;
    const Status listed =
        (*folder)->Entries([&](const std::string& entry, EntryKind kind) -> Status {
          entries.emplace_back(entry, kind);
          return {};
        });
    if (!listed.ok()) return listed;
    for (auto& [entry, kind] : entries) {
      if (kind == EntryKind::kUnknown) {
        const Result<FileFacts> facts = (*folder)->Stat(entry, Links::kRefuse);
        if (!facts.ok()) return facts.error();
        kind = facts->kind;
      }
      const Status removed = kind == EntryKind::kFolder ? RemoveTree(**folder, entry, depth + 1)
                                                        : (*folder)->Remove(entry);
      if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
    }
  }
  Status removed = parent.Remove(name);
  return removed.ok() || removed.error().code == Code::kNotFound ? Status() : removed;
}

// "" for one at the top.
std::string ParentOf(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

std::string Shown(const std::string& name) { return Printable(name, kShown); }

}  // namespace

std::vector<std::string> ReservedNames(const std::string& output_file, bool in_store) {
  const std::string name = output_file.empty() ? kSideListName : output_file;
  std::vector<std::string> names = {name, IndexNameOf(name)};
  if (in_store) names.push_back(name + ".run");
  return names;
}

bool IsNameOfTheJob(const std::vector<std::string>& reserved, const std::string& name) {
  const std::string top = name.substr(0, name.find('/'));
  return top.starts_with(".parallelrun") ||
         std::any_of(reserved.begin(), reserved.end(), [&top](const std::string& of) {
           return top == of || top.starts_with("." + of + ".");
         });
}

Result<std::unique_ptr<StagedFiles>> StagedFiles::Open(const Files& files, StagedPlaces places) {
  Result<std::unique_ptr<Folder>> output = files.OpenFolder(places.output_folder, Links::kRefuse);
  if (!output.ok()) return output.error();
  return std::unique_ptr<StagedFiles>(new StagedFiles(std::move(places), std::move(*output)));
}

std::string StagedFiles::StagedName(const job::SideList& list, const job::SideFile& file) const {
  return places_.staging + "/" + list.folder + "/" + file.name;
}

Result<std::optional<FileFacts>> StagedFiles::FactsOf(const std::string& name) const {
  const Result<FileFacts> facts = output_->Stat(name, Links::kRefuse);
  if (!facts.ok() && facts.error().code == Code::kNotFound) return std::optional<FileFacts>();
  if (!facts.ok()) return facts.error();
  return std::optional(*facts);
}

bool StagedFiles::IsOfTheJob(const std::string& name) const {
  return IsNameOfTheJob(places_.reserved, name) || IsOwn(places_.own, places_.output_folder, name);
}

Status StagedFiles::CheckFoldersOf(const std::string& name) {
  const std::string folder = ParentOf(name);
  if (folder.empty() || checked_.contains(folder)) return {};
  if (Status above = CheckFoldersOf(folder); !above.ok()) return above;
  const Result<std::optional<FileFacts>> there = FactsOf(folder);
  if (!there.ok() && there.error().code != Code::kPermission) return there.error();
  if (!there.ok() || (*there && (*there)->kind != EntryKind::kFolder)) {
    return Error{Code::kExists, fmt::format("{}/{} is no folder, and this run has side files below "
                                            "that: move it away",
                                            places_.output_folder, Shown(folder))};
  }
  checked_.insert(folder);
  return {};
}

Status StagedFiles::CheckPlace(const job::SideFile& file, bool may_replace) {
  if (IsOfTheJob(file.name)) {
    return Error{Code::kInvalid,
                 fmt::format("the side file {} has a name that the job itself uses: choose another "
                             "one, and start over with --overwrite",
                             Shown(file.name))};
  }
  if (Status folders = CheckFoldersOf(file.name); !folders.ok()) return folders;
  const Result<std::optional<FileFacts>> there = FactsOf(file.name);
  // A link is somebody's, wherever it leads.
  if (!there.ok() && there.error().code != Code::kPermission) return there.error();
  if (there.ok()) {
    if (!*there || (may_replace && (*there)->kind != EntryKind::kFolder)) return {};
    // After a crash some file systems have a file that was moved under both names.
    const Result<bool> same = IsInPlace(file);
    if (!same.ok()) return same.error();
    if (*same) return {};
  }
  return Error{Code::kExists,
               fmt::format("{}/{} is there, and is not this run's, which has a side file of that "
                           "name: move it away",
                           places_.output_folder, Shown(file.name))};
}

Result<bool> StagedFiles::IsInPlace(const job::SideFile& file) const {
  const Result<std::optional<FileFacts>> there = FactsOf(file.name);
  if (!there.ok()) return there.error();
  if (!*there || (*there)->kind != EntryKind::kFile || (*there)->size != file.bytes) return false;
  const Result<std::unique_ptr<File>> opened = output_->OpenRead(file.name);
  if (!opened.ok()) return opened.error();
  const Result<std::string> damage = DamageOf(
      file.bytes,
      [&opened](uint64_t offset, std::span<char> to) { return (*opened)->ReadInto(offset, to); },
      {file.name, file.bytes, 0, file.sha256});
  if (!damage.ok()) return damage.error();
  return damage->empty();
}

Status StagedFiles::Check(job::BatchId id, const job::SideList& list, bool may_replace) {
  for (const job::SideFile& file : list.files) {
    const Result<std::optional<FileFacts>> staged = FactsOf(StagedName(list, file));
    if (!staged.ok()) return staged.error();
    if (*staged) {
      if ((*staged)->kind != EntryKind::kFile || (*staged)->size != file.bytes) {
        return Error{Code::kInvalid,
                     fmt::format("the side file {} of mini-batch {} is not what that has left: it "
                                 "was changed later. Start over with --overwrite",
                                 Shown(file.name), job::MiniBatchText(id))};
      }
      if (const Status place = CheckPlace(file, may_replace); !place.ok()) return place;
      continue;
    }
    // An epoch before this one, or an earlier generation, has moved it.
    const Result<bool> in_place = IsInPlace(file);
    if (!in_place.ok()) return in_place.error();
    if (*in_place) continue;
    return Error{
        Code::kInvalid,
        fmt::format("the side file {} of mini-batch {} is neither in {}/{} nor, as it was, "
                    "in its place: somebody has removed or changed it. Put it back; or move away "
                    "what is in its place, and continue the run, which runs that mini-batch again",
                    Shown(file.name), job::MiniBatchText(id), places_.output_folder,
                    places_.staging)};
  }
  return {};
}

Result<bool> StagedFiles::Has(const job::SideList& list) const {
  for (const job::SideFile& file : list.files) {
    bool found = false;
    for (const std::string& name : {StagedName(list, file), file.name}) {
      const Result<std::optional<FileFacts>> there = FactsOf(name);
      if (!there.ok() && there.error().code != Code::kPermission) return there.error();
      found = found || (there.ok() && *there && (*there)->kind == EntryKind::kFile &&
                        (*there)->size == file.bytes);
      if (found) break;
    }
    if (!found) return false;
  }
  return true;
}

Status StagedFiles::MakeFoldersOf(const std::string& name) {
  const std::string folder = ParentOf(name);
  if (folder.empty() || made_.contains(folder)) return {};
  if (Status above = MakeFoldersOf(folder); !above.ok()) return above;
  Status made = output_->MakeFolder(folder);
  if (!made.ok() && made.error().code != Code::kExists) return made;
  if (made.ok()) changed_.insert(ParentOf(folder));
  made_.insert(folder);
  return {};
}

Status StagedFiles::Move(const job::SideList& list) {
  for (const job::SideFile& file : list.files) {
    const std::string staged = StagedName(list, file);
    const Result<std::optional<FileFacts>> there = FactsOf(staged);
    if (!there.ok()) return there.error();
    if (!*there) continue;
    if (Status made = MakeFoldersOf(file.name); !made.ok()) return made;
    if (Status moved = output_->Rename(staged, file.name); !moved.ok()) return moved;
    changed_.insert(ParentOf(file.name));
  }
  return {};
}

Status StagedFiles::Sync() {
  for (const std::string& folder : changed_) {
    const std::string inside = folder.empty() ? "x" : folder + "/x";
    if (Status synced = output_->SyncFolderOf(inside); !synced.ok()) return synced;
  }
  changed_.clear();
  return {};
}

Status RemoveStaged(const Files& files, const std::string& output_folder, uint64_t run_id) {
  const Result<std::unique_ptr<Folder>> output = files.OpenFolder(output_folder, Links::kRefuse);
  if (!output.ok()) return output.error().code == Code::kNotFound ? Status() : output.error();
  const std::string name = StagingNameOf(run_id);
  const std::string gone = name + kGone;
  // One that is half removed first: its name must be free.
  if (Status removed = RemoveTree(**output, gone); !removed.ok()) return removed;
  // In one step, so that a coordinator of before that goes on finds nothing to move.
  const Status renamed = (*output)->Rename(name, gone);
  if (!renamed.ok()) return renamed.error().code == Code::kNotFound ? Status() : renamed;
  return RemoveTree(**output, gone);
}

}  // namespace parallelrun::output
