#include "coordinator/log_tree/stored_logs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "base/in_order.h"
#include "coordinator/log_tree/reports.h"

namespace parallelrun::coordinator {
namespace {

constexpr uint64_t kSmallObject = uint64_t{1} << 20;  // of an object in one request
constexpr uint64_t kPartBytes = uint64_t{8} << 20;    // of a larger one
constexpr size_t kSenders = 4;                        // each holds a part
constexpr int kWriteTries = 3;                        // where others write the same object
constexpr char kRunNote[] = "stored_logs.txt";
constexpr size_t kMostOfRunName = 256;  // bytes
constexpr char kResultName[] = "job_result.txt";
constexpr char kReadmeName[] = "readme.txt";
constexpr char kEarlierRuns[] = "previous";

// What would fail in the same way for every other file.
bool IsOfAll(const Error& error) { return error.code != Code::kInvalid; }

}  // namespace

Result<std::string> StoredLogsName(ledger::StateNotes& notes, uint64_t run_id, WallTime now) {
  const std::string run = fmt::format("{:016x}", run_id);
  const Result<std::optional<std::string>> kept = notes.Read(kRunNote, kMostOfRunName);
  if (!kept.ok()) return kept.error();
  if (*kept && (*kept)->ends_with("-" + run)) return **kept;
  std::string time = Rfc3339(now);
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  const std::string name = time + "-" + run;
  if (Status written = notes.Write(kRunNote, name); !written.ok()) return written.error();
  return name;
}

StoredLogs::StoredLogs(std::unique_ptr<store::WriteStore> store,
                       std::unique_ptr<store::Store> listed, std::string run, std::stop_source stop)
    : stop_(std::move(stop)),
      store_(std::move(store)),
      listed_(std::move(listed)),
      run_(std::move(run)) {}

// Whoever wrote it last was this run too.
Status StoredLogs::Write(const std::string& name,
                         const std::function<Status(const store::Expected&)>& write,
                         store::Expected expected) {
  for (int tries = 1;; ++tries) {
    Status written = write(expected);
    if (written.ok() || written.error().code != Code::kStale || tries == kWriteTries)
      return written;
    const Result<std::optional<store::Stored>> there = store_->Look(Named(name));
    if (!there.ok()) return there.error();
    expected = *there ? store::Expected((*there)->found.version) : std::nullopt;
  }
}

Status StoredLogs::Begin() {
  const std::string text = LogReadme();
  return Write(
      kReadmeName,
      [&](const store::Expected& expected) {
        return store_->Put(Named(kReadmeName), text, expected, {});
      },
      std::nullopt);
}

Status StoredLogs::SendSegment(const std::string& name, const std::string& text) {
  Status put = store_->Put(NameOfSegment(name), text, std::nullopt, {});
  // By a request whose answer was lost, or a coordinator that died then: it never changes.
  if (!put.ok() && put.error().code == Code::kStale) return {};
  return put;
}

Status StoredLogs::RemoveSegments(const std::function<bool(const std::string& node)>& of,
                                  size_t most) {
  const std::string below = Named(kSegments);
  store::Wanted wanted;
  wanted.name = [&below](std::string_view name) { return name.starts_with(below); };
  wanted.below = [&below](std::string_view folder) {
    const std::string whole = std::string(folder) + "/";
    return whole.starts_with(below) || below.starts_with(whole);
  };
  const Result<std::unique_ptr<store::Listing>> listing = listed_->List(std::move(wanted), "");
  if (!listing.ok()) return listing.error();
  std::map<std::string, std::vector<std::string>> of_node;
  for (size_t count = 0; count < most;) {
    const Result<std::optional<store::Listed>> next = (*listing)->Next();
    if (!next.ok()) return next.error();
    if (!*next) break;
    const std::string name((*next)->name);
    const std::string node = name.substr(below.size(), name.find('/', below.size()) - below.size());
    if (!of(node)) continue;
    of_node[node].push_back(name);
    ++count;
  }
  std::vector<const std::vector<std::string>*> lists;
  for (const auto& [node, names] : of_node) lists.push_back(&names);
  Status first;
  MakeInOrder(
      Makers{"remove logs", kSenders}, lists.size(),
      [&](size_t i) {
        Status removed;
        for (const std::string& name : *lists[i]) {
          if (removed.ok()) removed = store_->Remove(name);
        }
        return removed;
      },
      [&](size_t, const Status& removed) {
        if (first.ok()) first = removed;
        return removed.ok();
      });
  return first;
}

Status StoredLogs::Upload(const File& file, uint64_t size, const std::string& name,
                          const store::Expected& expected) {
  Result<std::unique_ptr<store::Upload>> upload = store_->Begin(Named(name), {});
  if (!upload.ok()) return upload.error();
  const store::WriteStore::Parts parts = store_->parts();
  const uint64_t part = std::max({kPartBytes, parts.smallest, size / parts.most + 1});
  Status sent;
  for (uint32_t number = 1; sent.ok() && (number - 1) * part < size; ++number) {
    const uint64_t from = (number - 1) * part;
    Result<std::string> bytes = file.ReadAt(from, std::min(part, size - from));
    // One that is shorter by now ends there.
    if (bytes.ok() && bytes->empty() && number > 1) break;
    sent = bytes.ok() ? (*upload)->Send(number, std::move(*bytes)) : Status(bytes.error());
  }
  if (sent.ok()) {
    sent = (*upload)->Complete(expected);
    // Completed by a request whose answer was lost, or ended by a rule of the bucket: sent anew.
    if (!sent.ok() && sent.error().code == Code::kNotFound) {
      return Error{Code::kStale, sent.error().message};
    }
  }
  if (!sent.ok()) (void)store_->EndUpload(Named(name), (*upload)->id());
  return sent;
}

Status StoredLogs::SendFile(const LogFolder& folder, const std::string& name) {
  const Result<std::unique_ptr<File>> file = folder.OpenRead(name);
  // It has gone, or is a link, which nobody follows here.
  const auto passed = [](const Error& error) {
    return error.code == Code::kNotFound || error.code == Code::kPermission;
  };
  if (!file.ok()) return passed(file.error()) ? Status() : file.error();
  const Result<FileFacts> facts = (*file)->Stat();
  if (!facts.ok()) return facts.error();
  if (facts->kind != EntryKind::kFile) return {};
  if (facts->size <= kSmallObject) {
    const Result<std::string> text = (*file)->ReadAt(0, facts->size);
    if (!text.ok()) return text.error();
    return Write(
        name,
        [&](const store::Expected& expected) {
          return store_->Put(Named(name), *text, expected, {});
        },
        std::nullopt);
  }
  // Its bytes are not sent in vain.
  const Result<std::optional<store::Stored>> there = store_->Look(Named(name));
  if (!there.ok()) return there.error();
  return Write(
      name,
      [&](const store::Expected& expected) { return Upload(**file, facts->size, name, expected); },
      *there ? store::Expected((*there)->found.version) : std::nullopt);
}

Status StoredLogs::Send(const LogFolder& folder, const std::function<Status()>& before_result) {
  std::vector<std::string> names = folder.FilesBelow("", {kEarlierRuns});
  const bool result = std::erase(names, kResultName) > 0;
  Status first;
  MakeInOrder(
      Makers{"send logs", kSenders}, names.size(),
      [&](size_t i) { return SendFile(folder, names[i]); },
      [&](size_t, const Status& sent) {
        if (sent.ok()) return true;
        if (first.ok()) first = sent;
        return !IsOfAll(sent.error());
      });
  if (!first.ok() && IsOfAll(first.error())) return first;
  if (Status before = before_result(); !before.ok()) return before;
  if (result) {
    if (Status sent = SendFile(folder, kResultName); !sent.ok()) return sent;
  }
  return first;
}

}  // namespace parallelrun::coordinator
