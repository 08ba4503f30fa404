#include "cli/logs/stored_logs.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "coordinator/log_tree/log_segment.h"
#include "coordinator/log_tree/stored_logs.h"
#include "store/object_stores.h"

namespace parallelrun::cli {
namespace {

constexpr size_t kBlockOfLog = size_t{1} << 20;
constexpr uint64_t kMostOfSegment = uint64_t{64} << 20;  // bytes; the coordinator's have 10 MiB

// What each run has, from its start or from its end on.
bool MarksRun(std::string_view name) { return name == "readme.txt" || name == "job_result.txt"; }

// "20261123T215747Z-00a1b2c3d4e5f607".
bool IsRunPrefix(std::string_view name) {
  constexpr std::string_view kForm = "ddddddddTddddddZ-xxxxxxxxxxxxxxxx";
  if (name.size() != kForm.size()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool digit = c >= '0' && c <= '9';
    const bool fits = kForm[i] == 'd'   ? digit
                      : kForm[i] == 'x' ? digit || (c >= 'a' && c <= 'f')
                                        : c == kForm[i];
    if (!fits) return false;
  }
  return true;
}

bool IsOf(const LogParts& parts, std::string_view name) {
  return std::any_of(parts.begin(), parts.end(), [name](const std::string& part) {
    return part.ends_with('/') ? name.starts_with(part) : name == part;
  });
}

// `folder` ends with a slash.
bool MayHold(const LogParts& parts, std::string_view folder) {
  return std::any_of(parts.begin(), parts.end(), [folder](const std::string& part) {
    return part.starts_with(folder) || (part.ends_with('/') && folder.starts_with(part));
  });
}

Status BringFile(store::Store& store, const std::string& from, const coordinator::LogFolder& to,
                 const std::string& name) {
  const Result<std::unique_ptr<store::Object>> object = store.Open(from);
  if (!object.ok()) return object.error();
  const Result<std::unique_ptr<File>> file = to.OpenOrCreate(name);
  if (!file.ok()) return file.error();
  const uint64_t size = (*object)->found().size;
  std::string block;
  for (uint64_t at = 0; at < size; at += block.size()) {
    block.resize(std::min<uint64_t>(kBlockOfLog, size - at));
    const Result<size_t> read = (*object)->ReadAt(at, std::span<char>(block));
    if (!read.ok()) return read.error();
    if (*read == 0) break;
    block.resize(*read);
    if (Status written = (*file)->WriteAt(at, block); !written.ok()) return written;
  }
  return {};
}

// Calls `each` for what lies below the root and is `wanted`, with its name.
Status EachListed(store::Store& store, store::Wanted wanted,
                  const std::function<Status(const std::string& name)>& each) {
  const Result<std::unique_ptr<store::Listing>> listing = store.List(std::move(wanted), "");
  if (!listing.ok()) return listing.error();
  for (;;) {
    const Result<std::optional<store::Listed>> next = (*listing)->Next();
    if (!next.ok()) return next.error();
    if (!*next) return {};
    if (Status done = each(std::string((*next)->name)); !done.ok()) return done;
  }
}

// Those of `parts` of a run, which is "" or ends with a slash.
store::Wanted WantedParts(const std::string& run, const LogParts& parts) {
  store::Wanted wanted;
  wanted.name = [&](std::string_view name) {
    return name.starts_with(run) && IsOf(parts, name.substr(run.size()));
  };
  wanted.below = [&](std::string_view folder) {
    const std::string whole = std::string(folder) + "/";
    if (whole.size() <= run.size()) return run.starts_with(whole);
    return whole.starts_with(run) && MayHold(parts, std::string_view(whole).substr(run.size()));
  };
  return wanted;
}

// One that was removed since it was listed is in the files by now.
Status JoinSegment(store::Store& store, const std::string& name, const LogParts& parts,
                   const coordinator::LogFolder& to) {
  const Result<std::unique_ptr<store::Object>> object = store.Open(name);
  if (!object.ok() && object.error().code == Code::kNotFound) return {};
  if (!object.ok()) return object.error();
  if ((*object)->found().size > kMostOfSegment) {
    return Error{Code::kCorrupt, "it is too large for a segment of logs"};
  }
  std::string text((*object)->found().size, '\0');
  const Result<size_t> read = (*object)->ReadAt(0, std::span<char>(text));
  if (!read.ok()) return read.error();
  text.resize(*read);
  const Result<size_t> whole =
      coordinator::ReadLogRecords(text, [&](const coordinator::LogRecord& record) -> Status {
        if (!IsOf(parts, record.name)) return {};
        const Result<std::unique_ptr<File>> file = to.OpenOrCreate(std::string(record.name));
        if (!file.ok()) return file.error();
        if (record.anew) {
          if (Status cut = (*file)->Cut(0); !cut.ok()) return cut;
        }
        return (*file)->WriteAt(record.offset, record.bytes);
      });
  return whole.ok() ? Status() : whole.error();
}

}  // namespace

Result<std::string> NewestStoredRun(store::Store& store) {
  store::Wanted wanted;
  wanted.name = [](std::string_view name) {
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return MarksRun(name);
    return IsRunPrefix(name.substr(0, slash)) && MarksRun(name.substr(slash + 1));
  };
  wanted.below = [](std::string_view folder) { return IsRunPrefix(folder); };
  const Result<std::unique_ptr<store::Listing>> listing = store.List(std::move(wanted), "");
  if (!listing.ok()) return listing.error();
  std::optional<std::string> newest;
  for (;;) {
    const Result<std::optional<store::Listed>> next = (*listing)->Next();
    if (!next.ok()) return next.error();
    if (!*next) break;
    const std::string_view name = (*next)->name;
    const size_t slash = name.find('/');
    // They come in the order of their times.
    if (slash != std::string_view::npos) {
      newest = std::string(name.substr(0, slash + 1));
    } else if (!newest) {
      newest = "";
    }
  }
  if (newest) return *newest;
  return Error{Code::kNotFound,
               fmt::format("there are no logs of a run in {}: give the place that logs.store and "
                           "logs.path of the job name, or that of one of its runs",
                           Printable(store.Location(""), kShownLong))};
}

Status BringLogs(store::Store& store, const std::string& run, const LogParts& parts,
                 const coordinator::LogFolder& to) {
  const auto at = [&store](const std::string& name, const Status& done) -> Status {
    if (done.ok()) return done;
    return done.error().With(Printable(store.Location(name), kShownLong));
  };
  const Status files = EachListed(store, WantedParts(run, parts), [&](const std::string& name) {
    return at(name, BringFile(store, name, to, name.substr(run.size())));
  });
  if (!files.ok()) return files;
  // What nodes write is in segments while the run goes on, and later where it is much.
  const bool of_nodes = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.starts_with("user/") || part.starts_with("sys/node/");
  });
  if (!of_nodes) return {};
  const LogParts segments = {coordinator::kSegments};
  return EachListed(store, WantedParts(run, segments), [&](const std::string& name) {
    return at(name, JoinSegment(store, name, parts, to));
  });
}

Result<std::unique_ptr<StoredLogFolder>> StoredLogFolder::Bring(const store::Wished& wished,
                                                                const LogParts& parts) {
  const Result<std::unique_ptr<store::Store>> store = store::OpenObjectStore(wished, {});
  if (!store.ok()) return store.error();
  const Result<std::string> run = NewestStoredRun(**store);
  if (!run.ok()) return run.error();
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "parallelrun-logs-XXXXXX";
  if (error || mkdtemp(path.data()) == nullptr) {
    return ErrnoError(error ? error.value() : errno, "make a folder like " + path);
  }
  std::unique_ptr<Files> files = MakeSystemFiles();
  Result<coordinator::LogFolder> folder = coordinator::LogFolder::Open(*files, path);
  if (!folder.ok()) return folder.error();
  std::unique_ptr<StoredLogFolder> here(new StoredLogFolder(std::move(files), std::move(*folder)));
  here->url_ =
      (*store)->Location(std::string_view(*run).substr(0, run->empty() ? 0 : run->size() - 1));
  if (Status brought = BringLogs(**store, *run, parts, here->folder_); !brought.ok()) {
    return brought.error();
  }
  return here;
}

StoredLogFolder::~StoredLogFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_.path(), ignored);
}

}  // namespace parallelrun::cli
