#include "coordinator/plan/listing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/escape.h"
#include "coordinator/plan/utf8.h"

namespace parallelrun {
namespace {

// A path or a part of one, for messages.
std::string Shown(std::string_view path) { return Printable(path, 4096); }

bool Hidden(std::string_view name, bool folder) {
  return name.front() == '.' || (folder && name == "lost+found");
}

bool GoodName(std::string_view path) {
  for (size_t pos = 0; pos < path.size();) {
    const char32_t character = NextCharacter(path, pos);
    if (character == '\n' || character == '\r' || character >= kBadByte) return false;
  }
  return true;
}

// Nothing where nothing is, and for what nobody may look at, who could not list it either. An error
// is not taken for one of these: a folder of the job's own could be met without being known.
Result<std::optional<FileId>> IdOf(const Files& files, const std::string& path) {
  const Result<FileFacts> found = files.Stat(path);
  if (found.ok()) return std::optional(found->id);
  const Code why = found.error().code;
  if (why == Code::kNotFound || why == Code::kPermission) return std::optional<FileId>();
  return found.error();
}

uint64_t BigEndianKey(std::string_view text) {
  // Names hold no NUL, so padding with zeros keeps a shorter name first.
  uint64_t key = 0;
  std::memcpy(&key, text.data(), std::min<size_t>(text.size(), sizeof(key)));
  return __builtin_bswap64(key);
}

}  // namespace

Listing::Listing(const Files& files, ListingSettings settings, std::string after)
    : files_(files),
      settings_(std::move(settings)),
      pattern_(settings_.pattern),
      exclude_(settings_.exclude.begin(), settings_.exclude.end()),
      after_(std::move(after)) {}

Status Listing::Start() {
  if (started_) return {};
  started_ = true;
  const Status opened = Open();
  if (!opened.ok()) return Over(opened.error());
  return {};
}

Result<std::optional<std::string_view>> Listing::Next() {
  const Status started = Start();
  if (!started.ok()) return started.error();
  auto name = Step();
  if (!name.ok()) return Over(name.error());
  return name;
}

Error Listing::Over(const Error& error) {
  frames_.clear();
  single_file_ = false;
  return error.With(fmt::format("inputs[{}]", settings_.input));
}

// A listing of millions of names must not hold up the end of a job.
Status Listing::CheckGoesOn() const {
  if (!settings_.stop.stop_requested()) return {};
  return Error{Code::kUnavailable, Shown(folder_) + " is not listed to its end: the job ended"};
}

Result<std::optional<std::string_view>> Listing::Step() {
  using Name = std::optional<std::string_view>;
  if (std::exchange(single_file_, false)) {
    const bool wanted = path_ != after_ && pattern_.Matches(path_) && !Excluded(path_);
    return wanted ? Name(path_) : Name();
  }
  while (!frames_.empty()) {
    if (Status going = CheckGoesOn(); !going.ok()) return going.error();
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
      return Name(path_);
    }
    const Status entered = Enter(entry.kind);
    if (!entered.ok()) return entered.error();
  }
  return Name();
}

Status Listing::Open() {
  folder_ = settings_.root;
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  const Result<FileFacts> root = files_.Stat(folder_);
  if (!root.ok() && root.error().code == Code::kNotFound) {
    return Error{Code::kNotFound,
                 fmt::format("{} does not exist; check the volume and path of the input", folder_)};
  }
  if (!root.ok()) return root.error();
  single_file_ = root->kind != EntryKind::kFolder;
  if (single_file_) {
    const size_t slash = folder_.rfind('/');
    path_ = folder_.substr(slash + 1);
    folder_.resize(std::max<size_t>(slash, 1));
    if (root->kind != EntryKind::kFile) {
      return Error{Code::kInvalid,
                   fmt::format("{} is neither a folder nor a file", Absolute(path_))};
    }
    if (!GoodName(path_)) return BadName();
  }
  Result<std::unique_ptr<Folder>> folder = files_.OpenFolder(folder_, Links::kFollow);
  if (!folder.ok()) return folder.error();
  root_ = std::move(*folder);
  if (single_file_) return {};
  Result<std::string> real = files_.RealPath(folder_);
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

Status Listing::CheckRootNotForbidden() const {
  for (std::string above = real_root_; !above.empty();
       above.resize(above.size() > 1 ? std::max<size_t>(above.rfind('/'), 1) : 0)) {
    const Result<std::optional<FileId>> found = IdOf(files_, above);
    if (!found.ok()) return found.error();
    if (*found && forbidden_.contains(**found)) {
      return Error{Code::kInvalid,
                   fmt::format("the input folder {} lies in {}, where the job writes its output, "
                               "state or logs; give the output another path",
                               folder_, above)};
    }
  }
  return {};
}

// Enters the folder of path_, which is empty (the root) or ends with '/'.
Status Listing::Enter(Kind kind) {
  Frame frame;
  frame.prefix = path_.size();
  frame.linked = kind == Kind::kFolderLink || (!frames_.empty() && frames_.back().linked);
  const bool holds_after = after_.starts_with(path_);
  frame.listed = !after_.empty() && holds_after;
  if (frame.linked && !after_.empty() && !holds_after && !replayed_) {
    const Status replayed = Replay();
    if (!replayed.ok()) return replayed;
  }

  const auto opened = root_->OpenFolder(path_.empty() ? "." : path_.substr(0, path_.size() - 1));
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
    const Status going = CheckGoesOn();
    return going.ok() ? AddEntry(folder, name, entry, frame) : going;
  });
  path_.resize(frame.prefix);
  if (!read.ok()) return read;
  Sort(frame);
  frames_.push_back(std::move(frame));
  return {};
}

Status Listing::AddEntry(const Folder& folder, const std::string& name, EntryKind entry,
                         Frame& frame) {
  if (Hidden(name, entry == EntryKind::kFolder)) return {};
  path_.resize(frame.prefix);
  path_ += name;
  if (entry == EntryKind::kFile && !pattern_.Matches(path_)) return {};
  if (Excluded(path_)) return {};
  const auto kind = KindOf(folder, name, entry);
  if (!kind.ok()) return kind.error();
  if (!*kind) return {};
  if (**kind == Kind::kFile) {
    if (!pattern_.Matches(path_)) return {};
    if (!after_.empty() && path_ <= after_) return {};
    if (!frame.real_path.empty() && ListedByRealName(frame.real_path + name)) {
      return {};
    }
    if (!GoodName(path_)) return BadName();
  } else {
    if (Hidden(name, true) || !pattern_.MayMatchBelow(path_)) return {};
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
Result<std::optional<Listing::Kind>> Listing::KindOf(const Folder& folder, const std::string& name,
                                                     EntryKind entry) const {
  using Found = std::optional<Kind>;
  if (entry == EntryKind::kUnknown) {
    const Result<FileFacts> found = folder.Stat(name, Links::kRefuse);
    if (!found.ok() && found.error().code == Code::kNotFound) return Found();
    if (!found.ok()) return found.error();
    entry = found->kind;
  }
  const bool link = entry == EntryKind::kLink;
  if (link) {
    const Result<FileFacts> found = folder.Stat(name, Links::kFollow);
    if (!found.ok()) {
      // Between the two looks it may have been removed: then nothing is there to follow.
      const Result<FileFacts> itself = folder.Stat(name, Links::kRefuse);
      if (!itself.ok() && itself.error().code == Code::kNotFound) return Found();
      return LeadsNowhere(found.error());
    }
    entry = found->kind;
  }
  if (entry == EntryKind::kFile) return Found(Kind::kFile);
  if (entry == EntryKind::kFolder) return Found(link ? Kind::kFolderLink : Kind::kFolder);
  return Found();
}

// path_ is a link that `why` cannot be followed. One that the pattern does not ask for is not.
Result<std::optional<Listing::Kind>> Listing::LeadsNowhere(const Error& why) const {
  if (!pattern_.Matches(path_)) return std::optional<Kind>();
  return Error{why.code == Code::kPermission ? why.code : Code::kInvalid,
               fmt::format("{} is a symbolic link that leads nowhere ({}); mount what it points "
                           "to, remove it, or name it in inputs[].exclude",
                           Shown(Absolute(path_)), why.message)};
}

void Listing::Sort(Frame& frame) {
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

void Listing::Leave() {
  const Frame& done = frames_.back();
  if (done.linked && done.listed) taken_.insert(done.id);
  const bool listed = done.listed;
  frames_.pop_back();
  if (listed && !frames_.empty()) frames_.back().listed = true;
}

// Finds out which folders the part before `after_` reached through links. Only a listing that goes
// on behind a name and then meets a link needs to know.
Status Listing::Replay() {
  replayed_ = true;
  Listing before(files_, settings_);
  const Status opened = before.Open();
  if (!opened.ok()) return opened;
  while (true) {
    const auto name = before.Step();
    if (!name.ok()) return name.error();
    if (!*name || **name > after_) break;
  }
  taken_.merge(before.taken_);
  return {};
}

bool Listing::Excluded(std::string_view path) const {
  return std::any_of(exclude_.begin(), exclude_.end(),
                     [&](const Glob& glob) { return glob.Matches(path); });
}

// Whether this listing gives the file `path`, which has no hidden folder and no link on its way.
bool Listing::ListedByRealName(const std::string& path) const {
  if (!pattern_.Matches(path)) return false;
  for (size_t slash = path.find('/'); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    if (Excluded(std::string_view(path).substr(0, slash))) return false;
  }
  return !Excluded(path);
}

// Where path_, a link to a folder, leads: "a/b/" when that is a/b below the root, else empty.
Result<std::string> Listing::RealPathInRoot() const {
  const Result<std::string> real = files_.RealPath(Absolute(path_));
  if (!real.ok() && real.error().code == Code::kNotFound) return std::string();  // it is gone
  // Not knowing where it leads, one would list what it holds under two names.
  if (!real.ok()) return real.error();
  std::string path = *real + "/";
  const std::string root = real_root_ == "/" ? "/" : real_root_ + "/";
  if (!path.starts_with(root)) return std::string();
  path.erase(0, root.size());
  for (size_t begin = 0; begin < path.size();) {
    const size_t slash = path.find('/', begin);
    if (Hidden(std::string_view(path).substr(begin, slash - begin), true)) return std::string();
    begin = slash + 1;
  }
  return path;
}

Result<std::optional<FileStamp>> Listing::Stamp(const std::string& name) const {
  if (const Status going = CheckGoesOn(); !going.ok()) {
    return going.error().With(fmt::format("inputs[{}]", settings_.input));
  }
  const Result<FileFacts> found = root_->Stat(name, Links::kFollow);
  if (found.ok()) return std::optional(FileStamp{found->size, found->modified_ns});
  if (found.error().code == Code::kNotFound) return std::optional<FileStamp>();
  return found.error().With(fmt::format("inputs[{}]", settings_.input));
}

Error Listing::BadName() const {
  const size_t slash = path_.rfind('/');
  const size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return {
      Code::kInvalid,
      fmt::format("the file \"{}\" in folder {} has a name with a line break or with bytes that "
                  "are not UTF-8; rename it, or name it in inputs[].exclude",
                  Shown(std::string_view(path_).substr(begin)),
                  Shown(Absolute(std::string_view(path_).substr(0, begin))))};
}

Error Listing::Forbidden(const std::string& folder) const {
  return {Code::kInvalid,
          fmt::format("the folder {}, where the job writes its output, state or logs, lies in the "
                      "input folder {}; give the output a path outside of it, or name the folder "
                      "in inputs[].exclude",
                      folder, folder_)};
}

std::string Listing::Absolute(std::string_view relative) const {
  std::string path = folder_ == "/" ? folder_ : folder_ + "/";
  path += relative;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace parallelrun
