#include "coordinator/log_tree/log_folder.h"

#include <algorithm>

#include "base/random.h"

namespace parallelrun::coordinator {
namespace {

// Of what RemoveAll enters: whoever writes there cannot make the stack overflow.
constexpr int kMostLevels = 100;

void AddFilesBelow(const LogFolder& folder, const std::string& name, int levels,
                   const std::set<std::string>& leave_out, std::vector<std::string>& files) {
  const std::vector<std::string> entries = folder.List(name);
  if (entries.empty() && !name.empty()) return files.push_back(name);
  if (levels == 0) return;
  for (const std::string& entry : entries) {
    if (name.empty() && leave_out.contains(entry)) continue;
    AddFilesBelow(folder, name.empty() ? entry : name + "/" + entry, levels - 1, leave_out, files);
  }
}

// Folders that are there already are most often all of them; what fails shows in the call that
// follows.
void MakeFoldersOf(Folder& root, const std::string& name) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    (void)root.MakeFolder(name.substr(0, slash));
  }
}

// `make` makes a file; it is asked again once its folders are there.
template <typename Make>
auto WithFolders(Folder& root, const std::string& name, Make make) -> decltype(make()) {
  auto made = make();
  if (made.ok() || made.error().code != Code::kNotFound) return made;
  MakeFoldersOf(root, name);
  return make();
}

std::vector<std::string> NamesIn(const Folder& root, const std::string& name) {
  std::vector<std::string> names;
  const Result<std::unique_ptr<Folder>> folder = root.OpenFolder(name);
  if (!folder.ok()) return names;
  (void)(*folder)->Entries([&](const std::string& entry, EntryKind) {
    names.push_back(entry);
    return Status();
  });
  std::sort(names.begin(), names.end());
  return names;
}

void RemoveBelow(Folder& root, const std::string& name, int levels) {
  const Status removed = root.Remove(name);
  if (removed.ok() || removed.error().code == Code::kNotFound || levels == 0) return;
  for (const std::string& entry : NamesIn(root, name)) {
    RemoveBelow(root, name + "/" + entry, levels - 1);
  }
  (void)root.Remove(name);
}

}  // namespace

Result<LogFolder> LogFolder::Open(Files& files, const std::string& path) {
  (void)files.MakeFolders(path);  // the open tells
  Result<std::unique_ptr<Folder>> root = files.OpenFolder(path, Links::kRefuse);
  if (!root.ok()) return root.error().With("the log folder");
  return LogFolder(std::move(*root), path);
}

Result<std::unique_ptr<File>> LogFolder::OpenRead(const std::string& name) const {
  return root_->OpenRead(name);
}

Result<std::unique_ptr<File>> LogFolder::OpenOrCreate(const std::string& name) const {
  return WithFolders(*root_, name, [&] { return root_->OpenOrCreate(name); });
}

Result<std::unique_ptr<File>> LogFolder::CreateExclusive(const std::string& name) const {
  return WithFolders(*root_, name, [&] { return root_->CreateExclusive(name); });
}

Status LogFolder::Append(const std::string& name, std::string_view text) const {
  return WithFolders(*root_, name, [&] { return root_->Append(name, text); });
}

Status LogFolder::Publish(const std::string& name, std::string_view text) const {
  NewLogFile file(*this, name);
  file.Add(text);
  return file.Publish();
}

Status LogFolder::Rename(const std::string& from, const std::string& to) const {
  const Status renamed = root_->Rename(from, to);
  return renamed.ok() ? root_->SyncFolderOf(to) : renamed;
}

Status LogFolder::MakeFolders(const std::string& name) const {
  for (size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    const std::string part = name.substr(0, end);
    const Status made = root_->MakeFolder(part);
    if (!made.ok() && made.error().code != Code::kExists) return made;
    if (Status synced = root_->SyncFolderOf(part); !synced.ok()) return synced;
  }
  return {};
}

Status LogFolder::Move(const std::string& from, const std::vector<std::string>& names,
                       const std::string& to) const {
  const std::string source = from.empty() ? "" : from + "/";
  for (const std::string& name : names) {
    Status moved = root_->Rename(source + name, to + "/" + name);
    if (!moved.ok()) return moved;
  }
  if (names.empty()) return {};
  // The new names first: whatever a crash keeps, nothing has none.
  if (Status synced = root_->SyncFolderOf(to + "/" + names[0]); !synced.ok()) return synced;
  return root_->SyncFolderOf(source + names[0]);
}

Status LogFolder::Remove(const std::string& name) const { return root_->Remove(name); }

void LogFolder::RemoveAll(const std::string& name) const { RemoveBelow(*root_, name, kMostLevels); }

std::vector<std::string> LogFolder::List(const std::string& name) const {
  return NamesIn(*root_, name.empty() ? "." : name);
}

std::vector<std::string> LogFolder::FilesBelow(const std::string& name,
                                               const std::set<std::string>& leave_out) const {
  std::vector<std::string> files;
  AddFilesBelow(*this, name, kMostLevels, leave_out, files);
  return files;
}

void LogFolder::Link(const std::string& target, const std::string& name) const {
  (void)root_->Link(target, name);
}

NewLogFile::NewLogFile(LogFolder folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), beside_(name_ + ".tmp-" + RandomHex(8)) {
  Result<std::unique_ptr<File>> file = folder_.CreateExclusive(beside_);
  if (file.ok()) {
    file_ = std::move(*file);
  } else {
    status_ = file.error();
  }
}

NewLogFile::~NewLogFile() {
  // Even one that could not be made may be there: the answer may have been lost.
  if (!published_) (void)folder_.Remove(beside_);
}

void NewLogFile::Add(std::string_view text) {
  waiting_.append(text);
  if (waiting_.size() >= kLogBlock) Write();
}

void NewLogFile::Write() {
  if (status_.ok()) status_ = file_->WriteAt(size_, waiting_);
  size_ += waiting_.size();
  waiting_.clear();
}

Status NewLogFile::Publish() {
  Write();
  if (status_.ok()) status_ = file_->Sync();
  if (status_.ok()) status_ = folder_.Rename(beside_, name_);
  published_ = status_.ok();
  if (!status_.ok()) return status_.error().With(folder_.path() + "/" + name_);
  return {};
}

}  // namespace parallelrun::coordinator
