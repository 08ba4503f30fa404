#include "agent/folder_tree.h"

#include <vector>

namespace parallelrun::agent {
namespace {

Status EntriesOf(const Folder& folder, std::vector<std::string>& entries) {
  return folder.Entries([&entries](const std::string& entry, EntryKind) {
    entries.push_back(entry);
    return Status();
  });
}

}  // namespace

Result<std::unique_ptr<Folder>> MakeTree(const Files& files, const std::string& path, Links links) {
  if (path.size() > 1 && path.back() == '/') {
    return MakeTree(files, path.substr(0, path.size() - 1), links);
  }
  Result<std::unique_ptr<Folder>> there = files.OpenFolder(path, links);
  if (there.ok() || there.error().code != Code::kNotFound) return there;
  const std::string parent = FolderOf(path);
  if (parent == path) return there;
  const Result<std::unique_ptr<Folder>> above = MakeTree(files, parent, Links::kFollow);
  if (!above.ok()) return above.error();
  const Status made = (*above)->MakeFolder(path.substr(path.rfind('/') + 1));
  if (!made.ok() && made.error().code != Code::kExists) return made.error();
  return files.OpenFolder(path, links);
}

Status RemoveTree(Folder& in, const std::string& name) {
  const Result<std::unique_ptr<Folder>> folder = in.OpenFolder(name);
  if (folder.ok()) {
    std::vector<std::string> entries;
    if (const Status listed = EntriesOf(**folder, entries); !listed.ok()) return listed;
    for (const std::string& entry : entries) {
      // What is no folder cannot be opened as one, and is removed by its name.
      if (const Status gone = RemoveTree(**folder, entry); !gone.ok()) return gone;
    }
  }
  const Status removed = in.Remove(name);
  return removed.ok() || removed.error().code == Code::kNotFound ? Status() : removed;
}

Status RemoveAllBelow(const Files& files, const std::string& path) {
  const Result<std::unique_ptr<Folder>> folder = files.OpenFolder(path, Links::kRefuse);
  if (!folder.ok()) return folder.error();
  std::vector<std::string> entries;
  Status first = EntriesOf(**folder, entries);
  for (const std::string& entry : entries) {
    const Status gone = RemoveTree(**folder, entry);
    if (first.ok()) first = gone;
  }
  return first;
}

}  // namespace parallelrun::agent
