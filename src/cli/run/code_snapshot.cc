#include "cli/run/code_snapshot.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxFiles = 20'000;
constexpr uint64_t kRoomOfNode = uint64_t{1} << 20;  // logs, before they are uploaded

// What a link says in the copy: a relative way out of the code would lead elsewhere from there.
// `link` is its path below `code`.
fs::path Target(const fs::path& text, const fs::path& code, const fs::path& link) {
  if (text.is_absolute()) return text;
  const fs::path root = fs::canonical(code);  // a link to it has another parent
  const fs::path target = (root / link.parent_path() / text).lexically_normal();
  const fs::path inside = target.lexically_relative(root);
  const bool leaves = inside.empty() || *inside.begin() == "..";
  return leaves ? target : text;
}

struct Snapshot {
  std::string code;
  std::vector<std::string> leave_out;
  XXH3_state_t* digest;
  uint64_t bytes = 0;
  uint64_t files = 0;

  void Add(std::string_view text) {
    const uint64_t size = text.size();
    XXH3_64bits_update(digest, &size, sizeof size);
    XXH3_64bits_update(digest, text.data(), text.size());
  }

  Status Count(const fs::path& path) {
    ++files;
    bytes += fs::is_symlink(path) ? 0 : fs::file_size(path);
    if (bytes <= kMaxBytes && files <= kMaxFiles) return {};
    return Error{
        Code::kInvalid,
        fmt::format("the code folder {} holds more than {} files or {} MiB: give the folder "
                    "that holds only the script and what it imports with --code",
                    code, kMaxFiles, kMaxBytes >> 20)};
  }

  Status CopyFile(const fs::path& from, const fs::path& to, const std::string& relative) {
    if (Status counted = Count(from); !counted.ok()) return counted;
    Add(relative);
    if (fs::is_symlink(from)) {
      const fs::path text = fs::read_symlink(from);
      Add("link");
      Add(text.string());  // not where that is: the code may have moved
      fs::create_symlink(Target(text, code, relative), to);
      return {};
    }
    fs::copy_file(from, to);
    std::ifstream in(from, std::ios::binary);
    std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (!in.good() && !in.eof()) return Error{Code::kPermission, "read " + from.string()};
    Add(content);
    return {};
  }

  Status CopyFolder(const fs::path& from, const fs::path& to, const std::string& prefix) {
    fs::create_directories(to);
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(from)) entries.push_back(entry.path());
    std::sort(entries.begin(), entries.end());
    for (const fs::path& entry : entries) {
      if (LeftOutOfCode(entry, leave_out)) continue;
      const std::string relative = prefix + entry.filename().string();
      const bool link = fs::is_symlink(entry);
      Status copied;
      if (!link && fs::is_directory(entry)) {
        copied = CopyFolder(entry, to / entry.filename(), relative + "/");
      } else if (link || fs::is_regular_file(entry)) {
        copied = CopyFile(entry, to / entry.filename(), relative);
      }
      if (!copied.ok()) return copied;
    }
    return {};
  }
};

}  // namespace

bool LeftOutOfCode(const fs::path& path, const std::vector<std::string>& leave_out) {
  const std::string name = path.filename();
  if (name == ".git" || name == "__pycache__") return true;
  std::error_code ignored;  // what is not there is no folder of the code
  const bool folder = fs::symlink_status(path, ignored).type() == fs::file_type::directory;
  return std::any_of(leave_out.begin(), leave_out.end(), [&](const std::string& other) {
    return path == other || (folder && fs::equivalent(path, other, ignored));
  });
}

Result<uint64_t> SnapshotCode(const std::string& code, const std::string& target,
                              const std::vector<std::string>& leave_out) {
  XXH3_state_t* digest = XXH3_createState();
  XXH3_64bits_reset(digest);
  Snapshot snapshot{code, leave_out, digest};
  Status copied;
  try {
    copied = snapshot.CopyFolder(code, target, "");
  } catch (const fs::filesystem_error& e) {
    copied = Error{Code::kPermission,
                   fmt::format("copy the code folder {} to {}: {}: {}; make room or correct the "
                               "permissions there, or choose another temporary folder with TMPDIR",
                               code, target, e.path1().string(), e.code().message())};
  }
  const uint64_t value = XXH3_64bits_digest(digest);
  XXH3_freeState(digest);
  if (!copied.ok()) return copied.error();
  return value;
}

Status CheckRoom(const std::string& snapshot, size_t copies) {
  uint64_t taken = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator it(snapshot, error), end; !error && it != end;
       it.increment(error)) {
    struct stat facts {};
    if (lstat(it->path().c_str(), &facts) == 0) taken += uint64_t{512} * facts.st_blocks;
  }
  struct statvfs facts {};
  if (statvfs(snapshot.c_str(), &facts) != 0 || facts.f_blocks == 0) return {};  // it does not tell
  const uint64_t free = uint64_t{geteuid() == 0 ? facts.f_bfree : facts.f_bavail} * facts.f_frsize;
  const uint64_t needed = copies * (taken + kRoomOfNode);
  if (free >= needed) return {};
  const auto megabytes = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  return Error{
      Code::kNoSpace,
      fmt::format("{} has {:.1f} MB free, and code and logs of {} node{} take {:.1f} MB there: "
                  "make room, or choose another temporary folder with TMPDIR",
                  fs::path(snapshot).parent_path().parent_path().string(), megabytes(free), copies,
                  copies == 1 ? "" : "s", megabytes(needed))};
}

}  // namespace parallelrun
