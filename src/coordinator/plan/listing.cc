#include "coordinator/plan/listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/escape.h"
#include "coordinator/plan/utf8.h"

namespace parallelrun {
namespace {

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

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

uint64_t BigEndianKey(std::string_view text) {
  // Names hold no NUL, so padding with zeros keeps a shorter name first.
  uint64_t key = 0;
  std::memcpy(&key, text.data(), std::min<size_t>(text.size(), sizeof(key)));
  return __builtin_bswap64(key);
}

}  // namespace

Listing::Listing(ListingSettings settings, std::string after)
    : settings_(std::move(settings)),
      pattern_(settings_.pattern),
      exclude_(settings_.exclude.begin(), settings_.exclude.end()),
      after_(std::move(after)) {}

Listing::~Listing() {
  if (root_fd_ >= 0) close(root_fd_);
}

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
  struct stat root {};
  if (stat(folder_.c_str(), &root) != 0) {
    const int number = errno;
    if (number == ENOENT || number == ENOTDIR) {
      return Error{
          Code::kNotFound,
          fmt::format("{} does not exist; check the volume and path of the input", folder_)};
    }
    return ErrnoError(number, "read " + folder_);
  }
  single_file_ = !S_ISDIR(root.st_mode);
  if (single_file_) {
    const size_t slash = folder_.rfind('/');
    path_ = folder_.substr(slash + 1);
    folder_.resize(std::max<size_t>(slash, 1));
    if (!S_ISREG(root.st_mode)) {
      return Error{Code::kInvalid,
                   fmt::format("{} is neither a folder nor a file", Absolute(path_))};
    }
    if (!GoodName(path_)) return BadName();
  }
  root_fd_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root_fd_ < 0) return ErrnoError(errno, "open folder " + folder_);
  if (single_file_) return {};
  const std::unique_ptr<char, decltype(&free)> real(realpath(folder_.c_str(), nullptr), &free);
  if (!real) return ErrnoError(errno, "resolve " + folder_);
  real_root_ = real.get();
  for (const std::string& path : settings_.forbidden) {
    struct stat found {};
    if (stat(path.c_str(), &found) == 0) forbidden_.emplace(found.st_dev, found.st_ino);
  }
  const Status allowed = CheckRootNotForbidden();
  return allowed.ok() ? Enter(Kind::kFolder) : allowed;
}

Status Listing::CheckRootNotForbidden() const {
  for (std::string above = real_root_; !above.empty();
       above.resize(above.size() > 1 ? std::max<size_t>(above.rfind('/'), 1) : 0)) {
    struct stat found {};
    if (stat(above.c_str(), &found) == 0 && forbidden_.contains({found.st_dev, found.st_ino})) {
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

  const int fd =
      openat(root_fd_, path_.empty() ? "." : path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return {};  // removed since its parent was read
    return ErrnoError(errno, "open folder " + Shown(Absolute(path_)));
  }
  const std::unique_ptr<DIR, CloseFolder> folder(fdopendir(fd));
  struct stat found {};
  if (!folder || fstat(fd, &found) != 0) return ErrnoError(errno, "open folder " + Absolute(path_));
  frame.id = {found.st_dev, found.st_ino};
  if (frame.linked) {
    const bool inside_itself = std::any_of(
        frames_.begin(), frames_.end(), [&](const Frame& above) { return above.id == frame.id; });
    if (inside_itself || (!holds_after && taken_.contains(frame.id))) return {};
  }
  if (forbidden_.contains(frame.id)) return Forbidden(Absolute(path_));
  if (kind == Kind::kFolderLink) {
    frame.real_path = RealPathInRoot();
  } else if (frame.linked && !frames_.back().real_path.empty()) {
    frame.real_path = frames_.back().real_path + path_.substr(frames_.back().prefix);
  }

  errno = 0;
  while (const dirent* entry = readdir(folder.get())) {
    if (Status going = CheckGoesOn(); !going.ok()) return going;
    const Status added = AddEntry(fd, entry->d_name, entry->d_type, frame);
    if (!added.ok()) return added;
    errno = 0;
  }
  path_.resize(frame.prefix);
  if (errno != 0) return ErrnoError(errno, "read folder " + Shown(Absolute(path_)));
  Sort(frame);
  frames_.push_back(std::move(frame));
  return {};
}

Status Listing::AddEntry(int fd, std::string_view name, unsigned char type, Frame& frame) {
  if (Hidden(name, type == DT_DIR)) return {};
  path_.resize(frame.prefix);
  path_ += name;
  if (type == DT_REG && !pattern_.Matches(path_)) return {};
  if (Excluded(path_)) return {};
  const auto kind = KindOf(fd, name.data(), type);
  if (!kind.ok()) return kind.error();
  if (!*kind) return {};
  if (**kind == Kind::kFile) {
    if (!pattern_.Matches(path_)) return {};
    if (!after_.empty() && path_ <= after_) return {};
    if (!frame.real_path.empty() && ListedByRealName(frame.real_path + std::string(name))) {
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
Result<std::optional<Listing::Kind>> Listing::KindOf(int fd, const char* name,
                                                     unsigned char type) const {
  using Found = std::optional<Kind>;
  if (type == DT_REG) return Found(Kind::kFile);
  if (type == DT_DIR) return Found(Kind::kFolder);
  if (type != DT_LNK && type != DT_UNKNOWN) return Found();
  struct stat found {};
  if (fstatat(fd, name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Found();
    return ErrnoError(errno, "read " + Shown(Absolute(path_)));
  }
  const bool link = S_ISLNK(found.st_mode);
  if (link && fstatat(fd, name, &found, 0) != 0) {
    if (!pattern_.Matches(path_)) return Found();
    const Error why = ErrnoError(errno, "follow it");
    return Error{why.code == Code::kPermission ? why.code : Code::kInvalid,
                 fmt::format("{} is a symbolic link that leads nowhere ({}); mount what it points "
                             "to, remove it, or name it in inputs[].exclude",
                             Shown(Absolute(path_)), why.message)};
  }
  if (S_ISREG(found.st_mode)) return Found(Kind::kFile);
  if (S_ISDIR(found.st_mode)) return Found(link ? Kind::kFolderLink : Kind::kFolder);
  return Found();
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
  Listing before(settings_);
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
std::string Listing::RealPathInRoot() const {
  const std::unique_ptr<char, decltype(&free)> real(realpath(Absolute(path_).c_str(), nullptr),
                                                    &free);
  if (!real) return "";
  std::string path = std::string(real.get()) + "/";
  const std::string root = real_root_ == "/" ? "/" : real_root_ + "/";
  if (!path.starts_with(root)) return "";
  path.erase(0, root.size());
  for (size_t begin = 0; begin < path.size();) {
    const size_t slash = path.find('/', begin);
    if (Hidden(std::string_view(path).substr(begin, slash - begin), true)) return "";
    begin = slash + 1;
  }
  return path;
}

Result<std::optional<FileStamp>> Listing::Stamp(const std::string& name) const {
  if (const Status going = CheckGoesOn(); !going.ok()) {
    return going.error().With(fmt::format("inputs[{}]", settings_.input));
  }
  struct statx found {};
  if (statx(root_fd_, name.c_str(), AT_STATX_DONT_SYNC, STATX_SIZE | STATX_MTIME, &found) != 0) {
    if (errno == ENOENT) return std::optional<FileStamp>();
    return ErrnoError(errno, "read size of " + Absolute(name))
        .With(fmt::format("inputs[{}]", settings_.input));
  }
  constexpr int64_t kNanoseconds = 1'000'000'000;
  return std::optional<FileStamp>(
      FileStamp{found.stx_size, found.stx_mtime.tv_sec * kNanoseconds + found.stx_mtime.tv_nsec});
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
