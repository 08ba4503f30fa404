#include "cli/run/code_snapshot.h"

#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/small_file.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxFiles = 20'000;
constexpr size_t kMostLeftOut = 10;                  // folders of data; each costs a listing
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

// Adds the entries to the copy, and to what is told of it.
struct Copy {
  const std::string& code;
  const fs::path target;
  coordinator::CodeFiles files = {};

  // `what` it is: the same text in a link is another thing.
  void Note(const CodeEntry& entry, std::string_view what, std::string_view text) {
    if (IsLog(entry.path)) return;
    files[entry.path] = fmt::format("{}{:016x}", what, XXH3_64bits(text.data(), text.size()));
  }

  Status CopyEntry(const CodeEntry& entry) {
    const fs::path from = fs::path(code) / entry.path;
    const fs::path to = target / entry.path;
    if (entry.kind == CodeEntry::Kind::kFolder) {
      fs::create_directories(to);
      return {};
    }
    if (entry.kind == CodeEntry::Kind::kLink) {
      const fs::path text = fs::read_symlink(from);
      Note(entry, "link ", text.string());  // not where that is: the code may have moved
      fs::create_symlink(Target(text, code, entry.path), to);
      return {};
    }
    fs::copy_file(from, to);
    // Of the copy: the file may change meanwhile.
    const Result<std::string> content = ReadSmallFile(to, kMaxBytes);
    if (!content.ok()) return content.error();
    Note(entry, "", *content);
    return {};
  }
};

CodeSnapshot Told(coordinator::CodeFiles files, std::vector<std::string> notes) {
  std::string all;
  for (const auto& [path, digest] : files) {
    all += path;
    all += '\0';
    all += digest;
    all += '\0';
  }
  if (all.size() > coordinator::kMostCodeFileBytes) files.clear();
  return {XXH3_64bits(all.data(), all.size()), std::move(files), std::move(notes)};
}

bool Fits(const CodeListing& listing) {
  return listing.bytes <= kMaxBytes && listing.files <= kMaxFiles && !listing.more;
}

Error TooBig(const std::string& code, const CodeListing& listing) {
  return Error{
      Code::kInvalid,
      fmt::format("the code folder {} holds {}{:.1f} MB in {} files, and the most is {} MiB in {}; "
                  "what takes most: {}. Name what is no code in .amlignore, or give the folder "
                  "that holds only the script and what it imports with --code",
                  code, listing.more ? "at least " : "", static_cast<double>(listing.bytes) / 1e6,
                  listing.files, kMaxBytes >> 20, kMaxFiles, Biggest(listing))};
}

// Of what is too much, folders of data stay out, the biggest first: beside many a script lies what
// it was tried on.
Result<CodeListing> ListWhatFits(CodeFolder code) {
  std::string left_out;
  std::optional<CodeListing> whole;  // of which is told, where leaving out does not help
  for (size_t tries = 0;;) {
    Result<CodeListing> listing = ListCode(code);
    if (!listing.ok()) return listing.error();
    if (Fits(*listing)) {
      if (!left_out.empty()) {
        listing->notes.push_back(fmt::format(
            "left out of the code, of which at most {} MiB in {} files are copied: {} (no Python "
            "file there). The script does not find what it reads from there by a relative path: "
            "name it as an input or a side input, or by its whole path",
            kMaxBytes >> 20, kMaxFiles, left_out));
      }
      return listing;
    }
    const std::string data = ++tries > kMostLeftOut ? "" : BiggestOfData(*listing, code.script);
    if (!whole) whole = std::move(*listing);
    if (data.empty()) return TooBig(code.path, *whole);
    left_out += (left_out.empty() ? "" : ", ") + Printable(data, kShownShort);
    code.leave_out.push_back(code.path + "/" + data);
  }
}

}  // namespace

Result<CodeSnapshot> SnapshotCode(const CodeFolder& code, const std::string& target) {
  Result<CodeListing> listing = ListWhatFits(code);
  if (!listing.ok()) return listing.error();
  Copy copy{code.path, target};
  Status copied;
  try {
    fs::create_directories(target);
    for (const CodeEntry& entry : listing->entries) {
      copied = copy.CopyEntry(entry);
      if (!copied.ok()) break;
    }
  } catch (const fs::filesystem_error& e) {
    copied = Error{Code::kPermission,
                   fmt::format("copy the code folder {} to {}: {}: {}; make room or correct the "
                               "permissions there, or choose another temporary folder with TMPDIR",
                               code.path, target, e.path1().string(), e.code().message())};
  }
  if (!copied.ok()) return copied.error();
  return Told(std::move(copy.files), std::move(listing->notes));
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
  return Error{Code::kNoSpace,
               fmt::format("{} has {:.1f} MB free, and code and logs of {} take {:.1f} MB there: "
                           "make room, or choose another temporary folder with TMPDIR",
                           fs::path(snapshot).parent_path().parent_path().string(), megabytes(free),
                           CountOf(copies, "node"), megabytes(needed))};
}

}  // namespace parallelrun::cli
