#include "cli/run/code_listing.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/small_file.h"
#include "cli/run/earlier_runs.h"
#include "cli/run/ignore_file.h"
#include "output/own_places.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 200'000;
constexpr size_t kMostNamed = 5;
constexpr uint64_t kMaxIgnoreFile = 1 << 20;

// Whether `path` is one of what is to be left out, by its name or, in a folder of another name, by
// what it is.
bool IsLeftOut(const fs::path& path, bool folder, const CodeFolder& code) {
  std::error_code ignored;  // what is not there is none of the code
  return std::any_of(code.leave_out.begin(), code.leave_out.end(), [&](const fs::path& other) {
    if (path == other) return true;
    // Of a file the name is the same, or each of many thousands would be looked at.
    return (folder || path.filename() == other.filename()) && fs::equivalent(path, other, ignored);
  });
}

// Names in a line, the first few of them.
struct FirstNames {
  std::vector<std::string> first;
  size_t count = 0;

  void Add(const std::string& name) {
    if (++count <= kMostNamed) first.push_back(Printable(name, 200));
  }
  std::string Text() const {
    const size_t others = count - first.size();
    return fmt::format("{}{}", fmt::join(first, ", "),
                       others == 0 ? "" : fmt::format(" and {} more", others));
  }
};

struct CodePart {
  uint64_t bytes = 0;
  uint64_t files = 0;
  bool folder = false;

  void Add(const CodeEntry& entry) {
    const bool is_folder = entry.kind == CodeEntry::Kind::kFolder;
    folder |= is_folder;
    bytes += is_folder ? 0 : entry.size;
    files += is_folder ? 0 : 1;
  }
  // What has few bytes may have many files: both are limited, and 256 MiB weigh as 20,000 files.
  uint64_t Weight() const { return bytes + files * 13'000; }
};

class Lister {
 public:
  explicit Lister(const CodeFolder& folder) : folder_(folder) {}

  Result<CodeListing> List() {
    std::error_code error;
    const fs::directory_iterator there(folder_.path, error);
    if (error) {
      return Error{Code::kPermission,
                   fmt::format("read the code folder {}: {}", folder_.path, error.message())};
    }
    Enter(folder_.path, "");
    if (std::string own = OwnFolders(folder_); !own.empty()) {
      listing_.notes.push_back(std::move(own));
    }
    if (unreadable_.count > 0) {
      listing_.notes.push_back("left out of the code, since it cannot be read: " +
                               unreadable_.Text());
    }
    if (ignored_.count > 0) {
      listing_.notes.push_back("left out of the code by .gitignore or .amlignore: " +
                               ignored_.Text());
    }
    return std::move(listing_);
  }

 private:
  // With the length of the path of its folder.
  using Rules = std::vector<std::pair<size_t, IgnoreFile>>;

  void Enter(const fs::path& folder, const std::string& prefix) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      found.push_back(it->path());
    }
    if (error) return unreadable_.Add(prefix);
    std::sort(found.begin(), found.end());
    const bool more_rules = ReadRules(folder, prefix);
    const std::set<std::string> left = LeftByRuns(folder, found);
    for (const fs::path& path : found) {
      const std::string name = path.filename();
      if (left.contains(name) && !Needed(prefix + name)) continue;
      if (listing_.entries.size() >= kMostEntries) {
        listing_.more = true;
        break;
      }
      Add(path, prefix + name);
    }
    if (more_rules) rules_.pop_back();
  }

  bool ReadRules(const fs::path& folder, const std::string& prefix) {
    for (const char* name : {".amlignore", ".gitignore"}) {
      std::error_code error;
      if (!fs::is_regular_file(folder / name, error)) continue;
      const Result<std::string> text = ReadSmallFile(folder / name, kMaxIgnoreFile);
      if (!text.ok()) continue;
      rules_.emplace_back(prefix.size(), IgnoreFile(*text));
      return true;
    }
    return false;
  }

  void Add(const fs::path& path, const std::string& relative) {
    std::error_code error;
    const fs::file_type type = fs::symlink_status(path, error).type();
    const bool folder = type == fs::file_type::directory;
    if (NeverCode(path, relative, folder)) return;
    if (!Needed(relative) && Ignored(relative, folder)) return ignored_.Add(relative);
    if (type == fs::file_type::symlink) {
      ++listing_.files;
      listing_.entries.push_back({relative, CodeEntry::Kind::kLink});
    } else if (folder) {
      if (eaccess(path.c_str(), R_OK | X_OK) != 0) return unreadable_.Add(relative);
      listing_.entries.push_back({relative, CodeEntry::Kind::kFolder});
      Enter(path, relative + "/");
    } else if (type == fs::file_type::regular) {
      if (eaccess(path.c_str(), R_OK) != 0) return unreadable_.Add(relative);
      const uint64_t size = fs::file_size(path, error);
      ++listing_.files;
      listing_.bytes += error ? 0 : size;
      listing_.entries.push_back({relative, CodeEntry::Kind::kFile, error ? 0 : size});
    }
  }

  // The entry script, or a folder on the way to it.
  bool Needed(const std::string& relative) const {
    return folder_.script == relative || folder_.script.starts_with(relative + "/");
  }

  bool NeverCode(const fs::path& path, const std::string& relative, bool folder) const {
    const std::string name = path.filename();
    if (name == ".git" || name == "__pycache__" || name == ".venv") return true;
    if (output::IsStagingName(name)) return true;  // of a run that writes into this very folder
    std::error_code ignored;
    if (folder && !Needed(relative)) {
      if (relative == "logs" || relative == "outputs") return true;
      if (fs::exists(path / "pyvenv.cfg", ignored)) return true;
    }
    return IsLeftOut(path, folder, folder_);
  }

  // The deepest file that says something decides.
  bool Ignored(const std::string& relative, bool folder) const {
    for (auto rules = rules_.rbegin(); rules != rules_.rend(); ++rules) {
      const std::optional<bool> out =
          rules->second.LeavesOut(std::string_view(relative).substr(rules->first), folder);
      if (out) return *out;
    }
    return false;
  }

  const CodeFolder& folder_;
  Rules rules_;  // of the folders on the way
  CodeListing listing_;
  FirstNames unreadable_;
  FirstNames ignored_;
};

}  // namespace

Result<CodeListing> ListCode(const CodeFolder& folder) { return Lister(folder).List(); }

bool IsLog(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "nohup.out" || name.ends_with(".log");
}

std::string OwnFolders(const CodeFolder& folder) {
  std::vector<std::string> there;
  const fs::path root = folder.path;
  if (IsState(root / "state")) return "";  // of a run that has written its rows here
  for (const char* name : {"outputs", "logs"}) {
    std::error_code error;
    const bool used = fs::is_directory(root / name, error) && !fs::is_empty(root / name, error);
    const bool needed = folder.script.starts_with(std::string(name) + "/");
    if (used && !error && !needed && !IsLeftOut(root / name, true, folder))
      there.emplace_back(name);
  }
  if (there.empty()) return "";
  return fmt::format(
      "left out of the code: {}. While a job runs, ./outputs and ./logs are its own; "
      "what the script reads belongs into another folder, as ./model",
      fmt::join(there, ", "));
}

std::string BiggestOfData(const CodeListing& listing, const std::string& script) {
  std::set<std::string> with_code;
  const auto add_folders_of = [&](const std::string& path) {
    for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
      with_code.insert(path.substr(0, at));
    }
  };
  add_folders_of(script);
  for (const CodeEntry& entry : listing.entries) {
    const fs::path suffix = fs::path(entry.path).extension();
    const bool module = suffix == ".py" || suffix == ".so";
    if (entry.kind != CodeEntry::Kind::kFolder && module) add_folders_of(entry.path);
  }
  std::map<std::string, CodePart> parts;
  std::string data;  // the folder of this kind that the entry lies in
  for (const CodeEntry& entry : listing.entries) {
    const bool within = !data.empty() && entry.path.starts_with(data + "/");
    if (!within) {
      const bool folder = entry.kind == CodeEntry::Kind::kFolder;
      data = folder && !with_code.contains(entry.path) ? entry.path : "";
    }
    if (!data.empty()) parts[data].Add(entry);
  }
  const auto most = std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.second.Weight() < b.second.Weight();
  });
  return most == parts.end() || most->second.files == 0 ? "" : most->first;
}

std::string Biggest(const CodeListing& listing) {
  std::map<std::string, CodePart> parts;
  for (const CodeEntry& entry : listing.entries) {
    parts[entry.path.substr(0, entry.path.find('/'))].Add(entry);
  }
  std::vector<std::pair<std::string, CodePart>> sorted(parts.begin(), parts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.Weight() > b.second.Weight();
  });
  std::string text;
  for (size_t i = 0; i < std::min(sorted.size(), kMostNamed); ++i) {
    const auto& [name, part] = sorted[i];
    text += fmt::format("{}{} ({:.1f} MB{})", i == 0 ? "" : ", ", Printable(name, 200),
                        static_cast<double>(part.bytes) / 1e6,
                        part.folder ? ", " + CountOf(part.files, "file") : "");
  }
  return text;
}

}  // namespace parallelrun::cli
