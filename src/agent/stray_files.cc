#include "agent/stray_files.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <utility>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxLooked = 100'000;  // of all entries

// What we make there, and what Python does. The link `outputs` is no file; a folder of that name,
// which a script makes where there is no such link, is its own.
bool IsOurs(const std::string& name, bool top) {
  return name == "__pycache__" || (top && name == "logs");
}

bool MayBeLeftOut(const Error& error) {
  return error.code == Code::kPermission || error.code == Code::kNotFound;
}

using CallWithName = std::function<void(std::string)>;

// Looks into one folder after the other, by their paths: a script may nest more of them than there
// are descriptors, or room on a stack.
class FilesBelow {
 public:
  FilesBelow(const Folder& top, const CallWithName& call) : top_(top), call_(call) {}

  // False: not all could be looked at.
  bool Each() {
    bool all = true;
    while (!left_.empty()) {
      const std::string folder = std::move(left_.back());
      left_.pop_back();
      const Status looked = Look(folder);
      if (looked.ok() || MayBeLeftOut(looked.error())) continue;
      all = false;
      if (looked_ > kMaxLooked) break;
    }
    return all;
  }

 private:
  Status Look(const std::string& folder) {
    const Result<std::unique_ptr<Folder>> opened = top_.OpenFolder(folder);
    if (!opened.ok()) return opened.error();
    return (*opened)->Entries([&](const std::string& name, EntryKind kind) -> Status {
      if (++looked_ > kMaxLooked) return Error{Code::kInvalid, "too many files"};
      const bool top = folder == ".";
      if (IsOurs(name, top)) return {};
      if (kind == EntryKind::kUnknown) {
        const Result<FileFacts> facts = (*opened)->Stat(name, Links::kRefuse);
        if (!facts.ok()) return MayBeLeftOut(facts.error()) ? Status() : facts.error();
        kind = facts->kind;
      }
      std::string path = top ? name : folder + "/" + name;
      if (kind == EntryKind::kFolder) {
        left_.push_back(std::move(path));
      } else if (kind == EntryKind::kFile) {
        call_(std::move(path));
      }
      return {};
    });
  }

  const Folder& top_;
  const CallWithName& call_;
  std::vector<std::string> left_{"."};
  size_t looked_ = 0;
};

// Calls with the name of each file, relative to the folder. False: not all could be looked at.
bool EachFile(const Files& files, const std::string& folder, const CallWithName& call) {
  const Result<std::unique_ptr<Folder>> top = files.OpenFolder(folder, Links::kRefuse);
  return top.ok() && FilesBelow(**top, call).Each();
}

}  // namespace

StrayFiles::StrayFiles(const Files& files, std::string folder)
    : files_(files), folder_(std::move(folder)) {
  all_ = EachFile(files_, folder_, [this](const std::string& name) {
    known_.push_back(std::hash<std::string>()(name));
  });
  std::sort(known_.begin(), known_.end());
}

StrayFiles::Found StrayFiles::Look() const {
  Found found;
  if (!all_) return found;  // what is new could not be told from what was there
  std::set<std::string> first;
  EachFile(files_, folder_, [&](std::string name) {
    const size_t hash = std::hash<std::string>()(name);
    if (std::binary_search(known_.begin(), known_.end(), hash)) return;
    ++found.count;
    first.insert(std::move(name));
    if (first.size() > kMostNamed) first.erase(std::prev(first.end()));
  });
  for (const std::string& name : first) found.first.push_back(Printable(name, kShownShort));
  return found;
}

}  // namespace parallelrun::agent
