#include "store/folder/folder_listing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/escape.h"

namespace parallelrun::store {
namespace {

// A path or a part of one, for messages.
std::string Shown(std::string_view path) { return Printable(path, 4096); }

// Nothing where nothing is, and for what nobody may look at, who could not list it either. An error
// is not taken for one of these: a folder of the job's own could be met without being known.
Result<std::optional<FileId>> IdOf(const Files& files, const std::string& path) {
  const Result<FileFacts> found = files.Stat(path);
  if (found.ok()) return std::optional(found->id);
  const Code why = found.error().code;
  if (why == Code::kNotFound || why == Code::kPermission) return std::optional<FileId>();
  return found.error();
}

// Of an absolute path; empty above "/".
std::string FolderAbove(std::string path) {
  path.resize(path.size() > 1 ? std::max<size_t>(path.rfind('/'), 1) : 0);
  return path;
}

uint64_t BigEndianKey(std::string_view text) {
  // Names hold no NUL, so padding with zeros keeps a shorter name first.
  uint64_t key = 0;
  std::memcpy(&key, text.data(), std::min<size_t>(text.size(), sizeof(key)));
  return __builtin_bswap64(key);
}

}  // namespace

Result<std::unique_ptr<OpenRoot>> OpenFolderRoot(const Files& files, const std::string& path) {
  const Result<FileFacts> facts = files.Stat(path);
  if (!facts.ok() && facts.error().code == Code::kNotFound) {
    return Error{Code::kNotFound,
                 fmt::format("{} does not exist; correct where the input lies", path)};
  }
  if (!facts.ok()) return facts.error();
  auto root = std::make_unique<OpenRoot>();
  root->path = path;
  if (facts->kind != EntryKind::kFolder) {
    if (facts->kind != EntryKind::kFile) {
      return Error{Code::kInvalid, fmt::format("{} is neither a folder nor a file", path)};
    }
    const size_t slash = path.rfind('/');
    root->file = path.substr(slash + 1);
    root->path.resize(std::max<size_t>(slash, 1));
  }
  Result<std::unique_ptr<Folder>> folder = files.OpenFolder(root->path, Links::kFollow);
  if (!folder.ok()) return folder.error();
  root->folder = std::move(*folder);
  return root;
}

Status CheckGoesOn(const std::stop_token& stop, const std::string& root) {
  if (!stop.stop_requested()) return {};
  return Error{Code::kUnavailable, Shown(root) + " is not listed to its end: the job ended"};
}

FolderListing::FolderListing(const Files& files, const FolderRoot& settings, const OpenRoot& root,
                             Wanted wanted, std::string after)
    : files_(files),
      settings_(settings),
      root_(root),
      wanted_(std::move(wanted)),
      after_(std::move(after)) {}

Status FolderListing::Begin() {
  if (!root_.file.empty()) {
    path_ = root_.file;
    single_file_ = path_ != after_ && wanted_.name(path_);
    return {};
  }
  Result<std::string> real = files_.RealPath(root_.path);
  if (!real.ok()) return real.error();
  real_root_ = std::move(*real);
  for (const std::string& path : settings_.forbidden) {
    const Result<std::optional<FileId>> found = IdOf(files_, path);
    if (!found.ok()) return found.error();
    if (*found) forbidden_.insert(**found);
  }
  const Status allowed = CheckRootNotForbidden();
  return allowed.ok() ? Enter(Kind::kFolder) : allowed;
}

Result<std::optional<Listed>> FolderListing::Next() {
  const Result<bool> found = Step();
  if (found.ok()) return *found ? std::optional(Listed{path_, {}}) : std::optional<Listed>();
  frames_.clear();
  single_file_ = false;
  return found.error();
}

// The next file is path_; false at the end.
Result<bool> FolderListing::Step() {
  if (std::exchange(single_file_, false)) return true;
  while (!frames_.empty()) {
    if (Status going = CheckGoesOn(settings_.stop, root_.path); !going.ok()) return going.error();
    Frame& frame = frames_.back();
    path_.resize(frame.prefix);
    if (frame.next == frame.entries.size()) {
      Leave();
      continue;
    }
    const Entry& entry = frame.entries[frame.next++];
    path_.append(frame.names, entry.offset, entry.length);
    if (entry.kind == Kind::kFile) {
      frame.listed = true;
      return true;
    }
    const Status entered = Enter(entry.kind);
    if (!entered.ok()) return entered.error();
  }
  return false;
}

Status FolderListing::CheckRootNotForbidden() const {
  for (std::string above = real_root_; !above.empty(); above = FolderAbove(std::move(above))) {
    const Result<std::optional<FileId>> found = IdOf(files_, above);
    if (!found.ok()) return found.error();
    if (*found && forbidden_.contains(**found)) {
      return Error{Code::kInvalid,
                   fmt::format("the input folder {} lies in {}, where the job writes its output, "
                               "state or logs; give the output another path",
                               Shown(root_.path), Shown(above))};
    }
  }
  return {};
}

// Enters the folder of path_, which is empty (the root) or ends with '/'.
Status FolderListing::Enter(Kind kind) {
  Frame frame;
  frame.prefix = path_.size();
  frame.linked = kind == Kind::kFolderLink || (!frames_.empty() && frames_.back().linked);
  const bool holds_after = after_.starts_with(path_);
  frame.listed = !after_.empty() && holds_after;
  if (frame.linked && !after_.empty() && !holds_after && !replayed_) {
    const Status replayed = Replay();
    if (!replayed.ok()) return replayed;
  }

  const auto opened =
      root_.folder->OpenFolder(path_.empty() ? "." : path_.substr(0, path_.size() - 1));
  if (!opened.ok() && opened.error().code == Code::kNotFound) return {};  // since it was listed
  if (!opened.ok()) return opened.error();
  const Folder& folder = **opened;
  const Result<FileFacts> facts = folder.Stat(".", Links::kFollow);
  if (!facts.ok()) return facts.error();
  frame.id = facts->id;
  if (frame.linked) {
    const bool inside_itself = std::any_of(
        frames_.begin(), frames_.end(), [&](const Frame& above) { return above.id == frame.id; });
    if (inside_itself || (!holds_after && taken_.contains(frame.id))) return {};
  }
  if (forbidden_.contains(frame.id)) return Forbidden(Absolute(path_));
  if (kind == Kind::kFolderLink) {
    Result<std::string> real_path = RealPathInRoot();
    if (!real_path.ok()) return real_path.error();
    frame.real_path = std::move(*real_path);
  } else if (frame.linked && !frames_.back().real_path.empty()) {
    frame.real_path = frames_.back().real_path + path_.substr(frames_.back().prefix);
  }

  const Status read = folder.Entries([&](const std::string& name, EntryKind entry) {
    const Status going = CheckGoesOn(settings_.stop, root_.path);
    return going.ok() ? AddEntry(folder, name, entry, frame) : going;
  });
  path_.resize(frame.prefix);
  if (!read.ok()) return read;
  Sort(frame);
  frames_.push_back(std::move(frame));
  return {};
}

Status FolderListing::AddEntry(const Folder& folder, const std::string& name, EntryKind entry,
                               Frame& frame) {
  path_.resize(frame.prefix);
  path_ += name;
  // What is asked for neither way is not looked at: a link to nowhere may be left out by its name.
  const bool file_wanted = entry != EntryKind::kFolder && wanted_.name(path_);
  if (!file_wanted && (entry == EntryKind::kFile || !wanted_.below(path_))) return {};
  const auto kind = KindOf(folder, name, entry);
  if (!kind.ok()) return kind.error();
  if (!*kind) return {};
  if (**kind == Kind::kFile) {
    if (!file_wanted) return {};
    if (!after_.empty() && path_ <= after_) return {};
    if (!frame.real_path.empty() && ListedByRealName(frame.real_path + name)) {
      return {};
    }
  } else {
    if (file_wanted && !wanted_.below(path_)) return {};
    path_ += '/';
    // All below sorts as the folder does, unless `after_` itself is below.
    if (path_ < after_ && !after_.starts_with(path_)) return {};
  }
  const uint64_t offset = frame.names.size();
  const size_t length = path_.size() - frame.prefix;
  frame.names.append(path_, frame.prefix);
  frame.entries.push_back({0, offset, static_cast<uint32_t>(length), **kind});
  return {};
}

// What an entry is, links followed; nullopt: neither file nor folder, or gone by now.
Result<std::optional<FolderListing::Kind>> FolderListing::KindOf(const Folder& folder,
                                                                 const std::string& name,
                                                                 EntryKind entry) const {
  using MaybeKind = std::optional<Kind>;
  if (entry == EntryKind::kUnknown) {
    const Result<FileFacts> found = folder.Stat(name, Links::kRefuse);
    if (!found.ok() && found.error().code == Code::kNotFound) return MaybeKind();
    if (!found.ok()) return found.error();
    entry = found->kind;
  }
  const bool link = entry == EntryKind::kLink;
  if (link) {
    const Result<FileFacts> found = folder.Stat(name, Links::kFollow);
    if (!found.ok()) {
      // Between the two looks it may have been removed: then nothing is there to follow.
      const Result<FileFacts> itself = folder.Stat(name, Links::kRefuse);
      if (!itself.ok() && itself.error().code == Code::kNotFound) return MaybeKind();
      return LeadsNowhere(found.error());
    }
    entry = found->kind;
  }
  if (entry == EntryKind::kFile) return MaybeKind(Kind::kFile);
  if (entry == EntryKind::kFolder) return MaybeKind(link ? Kind::kFolderLink : Kind::kFolder);
  return MaybeKind();
}

// path_ is a link that `why` cannot be followed. One that is not wanted as a file is not.
Result<std::optional<FolderListing::Kind>> FolderListing::LeadsNowhere(const Error& why) const {
  if (!wanted_.name(path_)) return std::optional<Kind>();
  return Error{why.code == Code::kPermission ? why.code : Code::kInvalid,
               fmt::format("{} is a symbolic link that leads nowhere ({}); mount what it points "
                           "to, remove it, or name it in inputs[].exclude",
                           Shown(Absolute(path_)), why.message)};
}

void FolderListing::Sort(Frame& frame) {
  if (frame.entries.empty()) return;
  const auto name = [&](const Entry& entry) {
    return std::string_view(frame.names).substr(entry.offset, entry.length);
  };
  const std::string_view first = name(frame.entries.front());
  size_t common = first.size();
  for (const Entry& entry : frame.entries) {
    const std::string_view other = name(entry);
    const size_t most = std::min(common, other.size());
    common = static_cast<size_t>(
        std::mismatch(first.begin(), first.begin() + static_cast<ptrdiff_t>(most), other.begin())
            .first -
        first.begin());
  }
  for (Entry& entry : frame.entries) entry.key = BigEndianKey(name(entry).substr(common));
  std::sort(frame.entries.begin(), frame.entries.end(), [&](const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : name(a) < name(b);
  });
}

void FolderListing::Leave() {
  const Frame& done = frames_.back();
  if (done.linked && done.listed) taken_.insert(done.id);
  const bool listed = done.listed;
  frames_.pop_back();
  if (listed && !frames_.empty()) frames_.back().listed = true;
}

// Finds out which folders the part before `after_` reached through links. Only a listing that goes
// on behind a name and then meets a link needs to know.
Status FolderListing::Replay() {
  replayed_ = true;
  FolderListing before(files_, settings_, root_, wanted_, "");
  if (const Status begun = before.Begin(); !begun.ok()) return begun;
  while (true) {
    const Result<bool> found = before.Step();
    if (!found.ok()) return found.error();
    if (!*found || before.path_ > after_) break;
  }
  taken_.merge(before.taken_);
  return {};
}

// Whether this listing gives the file `path`, which has no link on its way.
bool FolderListing::ListedByRealName(const std::string& path) const {
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    if (!wanted_.below(std::string_view(path).substr(0, slash))) return false;
  }
  return wanted_.name(path);
}

// Where path_, a link to a folder, leads: "a/b/" when that is a/b below the root, else empty.
Result<std::string> FolderListing::RealPathInRoot() const {
  const Result<std::string> real = files_.RealPath(Absolute(path_));
  if (!real.ok() && real.error().code == Code::kNotFound) return std::string();  // it is gone
  // Not knowing where it leads, one would list what it holds under two names.
  if (!real.ok()) return real.error();
  std::string path = *real + "/";
  const std::string root = real_root_ == "/" ? "/" : real_root_ + "/";
  if (!path.starts_with(root)) return std::string();
  path.erase(0, root.size());
  return path;
}

Error FolderListing::Forbidden(const std::string& folder) const {
  return {Code::kInvalid,
          fmt::format("the folder {}, where the job writes its output, state or logs, lies in the "
                      "input folder {}; give the output a path outside of it, or name the folder "
                      "in inputs[].exclude",
                      Shown(folder), Shown(root_.path))};
}

std::string FolderListing::Absolute(std::string_view relative) const {
  std::string path = root_.path == "/" ? root_.path : root_.path + "/";
  path += relative;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace parallelrun::store
