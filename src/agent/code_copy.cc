#include "agent/code_copy.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "agent/code_archive.h"
#include "base/escape.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;

std::string Shown(const fs::path& path) { return Printable(path.native(), kShownLong); }

Error FsError(const std::error_code& error, const std::string& what) {
  return ErrnoError(error.value(), what);
}

bool LeftOut(const fs::path& relative, const fs::path& absolute, const fs::path& work) {
  const fs::path name = relative.filename();
  if (name == ".git" || name == "__pycache__") return true;
  return relative == "logs" || relative == "outputs" || absolute == work;
}

// Where a link of the original leads, as the copy should say it.
fs::path Target(const fs::path& link, const fs::path& text, const fs::path& root) {
  if (text.is_absolute()) return text;
  const fs::path target = (link.parent_path() / text).lexically_normal();
  const fs::path inside = target.lexically_relative(root);
  const bool leaves = inside.empty() || *inside.begin() == "..";
  return leaves ? target : text;
}

Status CopyFile(const fs::path& from, const fs::path& to) {
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (in < 0) return ErrnoError(errno, "open " + Shown(from));
  struct stat info {};
  fstat(in, &info);
  const mode_t mode = (info.st_mode & 0777) | S_IRUSR | S_IWUSR;
  const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (out < 0) {
    const int error = errno;
    close(in);
    return ErrnoError(error, "create " + Shown(to));
  }
  bool by_range = true;  // shares blocks where the file system can
  std::vector<char> buffer;
  int error = 0;
  for (;;) {
    ssize_t n = 0;
    if (by_range) {
      n = copy_file_range(in, nullptr, out, nullptr, size_t{1} << 30, 0);
      // It gives 0 or refuses for file systems that it does not know: read tells the truth.
      if (n <= 0) by_range = false;
      continue;
    }
    buffer.resize(size_t{1} << 18);
    n = read(in, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    for (ssize_t done = 0; done < n && error == 0;) {
      const ssize_t w = write(out, buffer.data() + done, static_cast<size_t>(n - done));
      if (w >= 0) {
        done += w;
      } else if (errno != EINTR) {
        error = errno;
      }
    }
    if (error != 0) break;
  }
  close(in);
  if (close(out) != 0 && error == 0) error = errno;
  if (error != 0) return ErrnoError(error, "copy " + Shown(from) + " to " + Shown(to));
  return {};
}

Status TooBig(const fs::path& root, const CodeCopyLimits& limits, const std::string& what) {
  return Error{Code::kInvalid,
               fmt::format("the code folder {} has {}; at most {} MiB in {} files are copied to "
                           "each node. Keep data and models out of it, in an input or a side "
                           "input, or name a smaller folder as the code",
                           Shown(root), what, limits.bytes >> 20, limits.files)};
}

// Where the keys of a mounted ConfigMap or Secret are as plain files; what users see in it are
// links there, so that an update is one rename.
fs::path DataFolder(const fs::path& root) {
  std::error_code error;
  if (!fs::is_symlink(root / "..data", error)) return root;
  const fs::path data = fs::canonical(root / "..data", error);
  return error ? root : data;
}

struct Entry {
  fs::path relative;
  fs::file_type type;
};

Result<std::vector<Entry>> Scan(const fs::path& root, const fs::path& work,
                                const CodeCopyLimits& limits) {
  std::vector<Entry> entries;
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(root, error);
  if (error) return FsError(error, "read the code folder " + Shown(root));
  for (; it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (error) return FsError(error, "read the code folder " + Shown(root));
    fs::path relative = it->path().lexically_relative(root);
    const fs::file_type type = it->symlink_status(error).type();
    // A copy that lacks a file would fail in the script, far from the cause.
    if (error) return FsError(error, "look at " + Shown(it->path()));
    if (LeftOut(relative, it->path(), work)) {
      if (type == fs::file_type::directory) it.disable_recursion_pending();
      continue;
    }
    if (type == fs::file_type::regular) {
      const uint64_t size = it->file_size(error);
      if (error) return FsError(error, "look at " + Shown(it->path()));
      bytes += size;
    }
    entries.push_back({std::move(relative), type});
    if (entries.size() > limits.files) {
      return TooBig(root, limits, fmt::format("more than {} files", limits.files)).error();
    }
  }
  if (error) return FsError(error, "read the code folder " + Shown(root));
  if (bytes > limits.bytes) {
    return TooBig(root, limits, fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576))
        .error();
  }
  return entries;
}

}  // namespace

Status CopyCode(const std::string& code_folder, const std::string& work_folder,
                const CodeCopyLimits& limits) {
  std::error_code error;
  const fs::path folder = fs::canonical(code_folder, error);
  if (error) return FsError(error, "find the code folder " + Shown(code_folder));
  const fs::path root = DataFolder(folder);
  fs::create_directories(work_folder, error);
  if (error) return FsError(error, "make the working directory " + Shown(work_folder));
  const fs::path work = fs::canonical(work_folder, error);
  if (error) return FsError(error, "find the working directory " + Shown(work_folder));
  if (!fs::is_empty(work, error) || error) {
    return Error{Code::kExists, "the working directory " + Shown(work) +
                                    " is not empty: remove it, or name another one"};
  }
  Result<std::vector<Entry>> entries = Scan(root, work, limits);
  if (!entries) return entries.error();
  if (entries->size() == 1 && entries->front().relative == kCodeArchive) {
    const Status unpacked = UnpackCode(root / kCodeArchive, work);
    if (!unpacked.ok()) return unpacked;
    entries->clear();
  }
  for (const Entry& entry : *entries) {
    const fs::path from = root / entry.relative;
    const fs::path to = work / entry.relative;
    if (entry.type == fs::file_type::directory) {
      fs::create_directory(to, error);
    } else if (entry.type == fs::file_type::symlink) {
      const fs::path text = fs::read_symlink(from, error);
      if (!error) fs::create_symlink(Target(from, text, root), to, error);
    } else if (entry.type == fs::file_type::regular) {
      if (Status s = CopyFile(from, to); !s.ok()) return s;
    }
    if (error) return FsError(error, "copy " + Shown(from));
  }
  fs::create_directory(work / "logs", error);
  if (error) return FsError(error, "make " + Shown(work / "logs"));
  return {};
}

Status LinkOutputs(const std::string& work_folder, const std::string& output_folder) {
  std::error_code error;
  const fs::path link = fs::path(work_folder) / "outputs";
  // A node that registers again has processes at work, whose limits are kept by the thread that
  // calls this: it must not wait for a volume that hangs.
  if (fs::read_symlink(link, error) == output_folder) return {};
  fs::create_directories(output_folder, error);
  if (error) return FsError(error, "make the output folder " + Shown(output_folder));
  fs::remove(link, error);
  fs::create_symlink(output_folder, link, error);
  if (error) return FsError(error, "link " + Shown(link));
  return {};
}

}  // namespace parallelrun::agent
