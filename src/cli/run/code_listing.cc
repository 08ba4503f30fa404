#include "cli/run/code_listing.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/small_file.h"
#include "cli/run/ignore_file.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostEntries = 200'000;
constexpr size_t kMostNamed = 5;
constexpr uint64_t kMaxIgnoreFile = 1 << 20;

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
    for (const fs::path& path : found) {
      if (listing_.entries.size() >= kMostEntries) {
        listing_.more = true;
        break;
      }
      Add(path, prefix + path.filename().string());
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
    const bool needed = folder_.script == relative || folder_.script.starts_with(relative + "/");
    if (!needed && Ignored(relative, folder)) return ignored_.Add(relative);
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

  bool NeverCode(const fs::path& path, const std::string& relative, bool folder) const {
    const std::string name = path.filename();
    if (name == ".git" || name == "__pycache__" || name == ".venv") return true;
    const bool needed = folder_.script.starts_with(relative + "/");
    std::error_code ignored;  // what is not there is no folder of the code
    if (folder && !needed) {
      if (relative == "logs" || relative == "outputs") return true;
      if (fs::exists(path / "pyvenv.cfg", ignored)) return true;
    }
    return std::any_of(folder_.leave_out.begin(), folder_.leave_out.end(),
                       [&](const std::string& other) {
                         return path == other || (folder && fs::equivalent(path, other, ignored));
                       });
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

std::string Biggest(const CodeListing& listing) {
  struct Part {
    uint64_t bytes = 0;
    uint64_t files = 0;
    bool folder = false;
  };
  std::map<std::string, Part> parts;
  for (const CodeEntry& entry : listing.entries) {
    Part& part = parts[entry.path.substr(0, entry.path.find('/'))];
    if (entry.kind == CodeEntry::Kind::kFolder) {
      part.folder = true;
      continue;
    }
    part.bytes += entry.size;
    ++part.files;
  }
  std::vector<std::pair<std::string, Part>> sorted(parts.begin(), parts.end());
  // What has few bytes may have many files: both are limited, and 256 MiB weigh as 20,000 files.
  const auto weight = [](const Part& part) { return part.bytes + part.files * 13'000; };
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
    return weight(a.second) > weight(b.second);
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
