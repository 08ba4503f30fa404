#include "coordinator/start/object_mount.h"

#include <spdlog/fmt/fmt.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/small_file.h"

namespace parallelrun::coordinator {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostMountinfo = size_t{16} << 20;  // a busy host has some thousand mounts

struct Program {
  std::string_view word;  // the type behind "fuse.", or the source
  std::string_view name;
};
constexpr std::array kPrograms{
    Program{"mountpoint-s3", "Mountpoint for S3"},
    Program{"mount-s3", "Mountpoint for S3"},
    Program{"s3fs", "s3fs"},
    Program{"goofys", "goofys"},
    Program{"geesefs", "geesefs"},
    Program{"blobfuse", "blobfuse"},
    Program{"blobfuse2", "blobfuse"},
    Program{"gcsfuse", "gcsfuse"},
};

std::vector<std::string_view> FieldsOf(std::string_view line) {
  std::vector<std::string_view> fields;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end > 0) fields.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

// Blanks and the like stand as "\040" there.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) {
      return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
    };
    const bool escape =
        text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0;
    if (!escape) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
    i += 3;
  }
  return out;
}

bool LiesIn(std::string_view path, const std::string& folder) {
  if (folder == "/") return path.starts_with('/');
  return path == folder || path.starts_with(folder + "/");
}

// The size that goofys makes up, whose type is "fuse" and whose source is the bucket's name: a
// pebibyte for a billion files, all of it free.
bool IsMadeUpByGoofys(const MountSize& size) {
  return size.bytes == uint64_t{1} << 50 && size.free == size.bytes && size.files == 1'000'000'000;
}

}  // namespace

Mount MountOf(std::string_view mountinfo, std::string_view path) {
  Mount found;
  size_t longest = 0;
  while (!mountinfo.empty()) {
    const size_t end = std::min(mountinfo.find('\n'), mountinfo.size());
    const std::vector<std::string_view> fields = FieldsOf(mountinfo.substr(0, end));
    mountinfo.remove_prefix(std::min(end + 1, mountinfo.size()));
    // Optional fields end with a dash, behind which stand the type and the source.
    size_t dash = 6;
    while (dash < fields.size() && fields[dash] != "-") ++dash;
    if (dash + 1 >= fields.size()) continue;
    const std::string folder = Unescaped(fields[4]);
    if (folder.size() < longest || !LiesIn(path, folder)) continue;
    longest = folder.size();
    found.type = fields[dash + 1];
    found.source = dash + 2 < fields.size() ? Unescaped(fields[dash + 2]) : "";
  }
  return found;
}

std::string_view ObjectMountName(const Mount& mount, const MountSize& size) {
  constexpr std::string_view kFuse = "fuse";
  const std::string_view type = mount.type;
  // "fuseblk" is of disks.
  if (type != kFuse && !type.starts_with("fuse.")) return "";
  const std::string_view subtype = type == kFuse ? "" : type.substr(kFuse.size() + 1);
  for (const Program& program : kPrograms) {
    // Where a type says what it is, a source may be anything: the name of a bucket, say.
    if (subtype.empty() ? mount.source == program.word : subtype == program.word) {
      return program.name;
    }
  }
  return subtype.empty() && IsMadeUpByGoofys(size) ? "goofys" : "";
}

std::string ObjectMountAt(const std::string& folder) {
  fs::path there = folder;
  std::error_code error;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  const fs::path real = fs::canonical(there, error);
  if (error) return "";
  const std::string mountinfo = OrEmpty(ReadSmallFile("/proc/self/mountinfo", kMostMountinfo));
  const Mount mount = MountOf(mountinfo, real.string());
  MountSize size;
  struct statvfs facts {};
  if (mount.type == "fuse" && statvfs(real.c_str(), &facts) == 0) {
    size = {uint64_t{facts.f_blocks} * facts.f_frsize, uint64_t{facts.f_bfree} * facts.f_frsize,
            uint64_t{facts.f_files}};
  }
  return std::string(ObjectMountName(mount, size));
}

std::string ObjectMountRefusal(std::string_view what, const std::string& folder,
                               std::string_view name) {
  return fmt::format(
      "{} ({}) lies on {}, which shows objects as files: it can neither append to them nor rename "
      "them in one step, so that nothing written there is safe. Inputs may lie there; write to the "
      "bucket itself, if it is one of S3 (output.store, or --output s3://BUCKET/PREFIX/), or to a "
      "volume of a disk or of NFS",
      what, Printable(folder, kShownLong), name);
}

Status CheckMounts(const JobLayout& layout) {
  for (const auto& [what, folder] : {std::pair{"the output", layout.output_folder},
                                     std::pair{"the log folder", layout.log_folder},
                                     std::pair{"the state", layout.state_folder}}) {
    if (folder.empty()) continue;
    const std::string name = ObjectMountAt(folder);
    if (!name.empty()) return Error{Code::kInvalid, ObjectMountRefusal(what, folder, name)};
  }
  return {};
}

}  // namespace parallelrun::coordinator
