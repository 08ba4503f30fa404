#include "output/result_manifest.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/file_lines.h"
#include "base/hex.h"
#include "base/http/target.h"
#include "base/json.h"
#include "base/random.h"

namespace parallelrun::output {
namespace {

constexpr char kName[] = "manifest.jsonl";
constexpr int kFormat = 1;
constexpr size_t kManifestBlock = size_t{1} << 20;  // written at once
constexpr size_t kMostLine = size_t{64}
                             << 10;  // a path has at most 4 KiB, three times that encoded

uint64_t HashOf(const std::string& path) { return XXH3_64bits(path.data(), path.size()); }

}  // namespace

// Makes a new manifest beside the one in force, and puts it in its place.
class ResultManifest::Writer {
 public:
  Writer(Files& files, std::string path, const Head& head)
      : files_(files), path_(std::move(path)), temporary_(path_ + ".tmp-" + RandomHex(8)) {
    Result<std::unique_ptr<File>> file = files_.CreateExclusive(temporary_);
    if (file.ok()) file_ = std::move(*file);
    if (!file.ok()) status_ = file.error();
    text_ = fmt::format("{{\"manifest\":{},\"run\":\"{:016x}\",\"over\":{}}}\n", kFormat,
                        head.run_id, head.over);
  }
  ~Writer() {
    if (file_) (void)files_.Remove(temporary_);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void Add(const Entry& entry) {
    ++names_;
    // A path is bytes, and JSON is text.
    text_ += fmt::format("{{\"path\":\"{}\"", PercentEncode(entry.path));
    if (entry.before) {
      text_ += ",\"before\":true";
    } else if (!entry.path.ends_with('/')) {
      text_ += fmt::format(",\"bytes\":{},\"modifiedNs\":{}", entry.bytes, entry.modified_ns);
    }
    text_ += "}\n";
    if (text_.size() >= kManifestBlock) Write();
  }
  size_t names() const { return names_; }

  Status Publish() {
    Write();
    if (status_.ok()) status_ = file_->Sync();
    if (status_.ok()) status_ = files_.Rename(temporary_, path_);
    if (!status_.ok()) return status_;
    file_.reset();
    return files_.SyncFolder(FolderOf(path_));
  }

 private:
  void Write() {
    if (status_.ok()) status_ = file_->WriteAt(written_, text_);
    written_ += text_.size();
    text_.clear();
  }

  Files& files_;
  const std::string path_;
  const std::string temporary_;
  std::unique_ptr<File> file_;
  std::string text_;
  uint64_t written_ = 0;
  size_t names_ = 0;
  Status status_;
};

ResultManifest::ResultManifest(Files& files, Places places, uint64_t run_id, size_t most_names)
    : files_(files),
      places_(std::move(places)),
      run_id_(run_id),
      most_names_(most_names),
      path_(places_.state_folder + "/" + kName) {}

Result<uint64_t> ResultManifest::Begin() {
  const uint64_t removed = RemoveWhatWasLeft();
  Writer writer(files_, path_, {run_id_, false});
  Status noted = Walk([&](Entry entry) -> Status {
    if (writer.names() == most_names_) {
      return Error{Code::kInvalid, fmt::format("more than {} files lie there", most_names_)};
    }
    entry.before = true;
    writer.Add(entry);
    return {};
  });
  if (noted.ok()) noted = writer.Publish();
  if (noted.ok()) return removed;
  (void)Forget();  // the error to report is the first one
  return noted.error();
}

bool ResultManifest::IsOfAnotherRun() const {
  const std::optional<Head> head = Read([](const Entry&) {});
  return head && head->run_id != run_id_;
}

Status ResultManifest::GoOn() {
  Names known;
  const std::optional<Head> head = Read([&known](const Entry& e) { known.insert(HashOf(e.path)); });
  // While it was at work, nobody can tell what has come from where.
  if (!head || head->run_id != run_id_ || !head->over) return {};
  Writer writer(files_, path_, {run_id_, false});
  (void)Read([&writer](const Entry& entry) { writer.Add(entry); });
  Status noted = Walk([&](Entry entry) -> Status {
    if (known.contains(HashOf(entry.path))) return {};
    if (writer.names() >= 2 * most_names_) {
      return Error{Code::kInvalid, fmt::format("more than {} files lie there", most_names_)};
    }
    entry.before = true;
    writer.Add(entry);
    return {};
  });
  if (noted.ok()) noted = writer.Publish();
  if (!noted.ok()) (void)Forget();
  return noted;
}

Status ResultManifest::End() {
  Names before;
  const std::optional<Head> head = Read([&](const Entry& entry) {
    if (entry.before) before.insert(HashOf(entry.path));
  });
  // Of a run that an older release began, or whose beginning could not be noted.
  if (!head || head->run_id != run_id_) return {};
  Writer writer(files_, path_, {run_id_, true});
  (void)Read([&writer](const Entry& entry) {
    if (entry.before) writer.Add(entry);
  });
  const size_t most = writer.names() + most_names_;
  const Status walked = Walk([&](const Entry& entry) -> Status {
    if (before.contains(HashOf(entry.path))) return {};
    if (writer.names() == most) return Error{Code::kExists, ""};  // enough
    writer.Add(entry);
    return {};
  });
  if (!walked.ok() && writer.names() < most) return walked;
  return writer.Publish();
}

std::optional<ResultManifest::Head> ResultManifest::Read(
    const std::function<void(const Entry&)>& each) const {
  const Result<std::unique_ptr<File>> file = files_.OpenRead(path_);
  if (!file.ok()) return std::nullopt;
  std::optional<Head> head;
  const Result<uint64_t> read = EachLine(**file, kMostLine, [&](std::string_view line) {
    const std::optional<nlohmann::json> parsed = ParseJson(line);
    if (!parsed) return false;
    if (!head) {
      if (lenient::Integer(*parsed, "manifest") != kFormat) return false;
      head.emplace();
      head->run_id = ParseHex(lenient::Text(*parsed, "run")).value_or(0);
      head->over = lenient::Boolean(*parsed, "over");
      return true;
    }
    const std::optional<std::string> path = PercentDecode(lenient::Text(*parsed, "path"));
    if (!path || path->empty() || path->starts_with('/')) return false;
    each({*path, lenient::Unsigned(*parsed, "bytes"), lenient::Integer(*parsed, "modifiedNs"),
          lenient::Boolean(*parsed, "before")});
    return true;
  });
  return read.ok() ? head : std::nullopt;
}

Status ResultManifest::Walk(const std::function<Status(const Entry&)>& each) const {
  const Result<std::unique_ptr<Folder>> folder =
      files_.OpenFolder(places_.output_folder, Links::kRefuse);
  if (!folder.ok()) return folder.error();
  const Result<FileFacts> facts = (*folder)->Stat(".", Links::kRefuse);
  if (!facts.ok()) return facts.error();
  return WalkFolder(**folder, "", facts->id.device, each);
}

Status ResultManifest::WalkFolder(const Folder& folder, const std::string& below, uint64_t device,
                                  const std::function<Status(const Entry&)>& each) const {
  std::vector<std::string> inner;
  const Status listed = folder.Entries([&](const std::string& name, EntryKind kind) -> Status {
    if (kind == EntryKind::kLink || kind == EntryKind::kOther) return {};
    if (IsOwn(places_.own, places_.output_folder, below + name)) return {};
    const Result<FileFacts> facts = folder.Stat(name, Links::kRefuse);
    if (!facts.ok() && facts.error().code == Code::kNotFound) return {};
    if (!facts.ok()) return facts.error();
    if (facts->id.device != device) return {};  // another volume, with files of its own
    if (facts->kind == EntryKind::kFolder) inner.push_back(name);
    if (facts->kind != EntryKind::kFile) return {};
    return each({below + name, facts->size, facts->modified_ns, false});
  });
  if (!listed.ok()) return listed;
  for (const std::string& name : inner) {
    const Result<std::unique_ptr<Folder>> opened = folder.OpenFolder(name);
    if (!opened.ok() && opened.error().code == Code::kNotFound) continue;
    if (!opened.ok()) return opened.error();
    Status walked = WalkFolder(**opened, below + name + "/", device, each);
    if (walked.ok()) walked = each({below + name + "/", 0, 0, false});
    if (!walked.ok()) return walked;
  }
  return {};
}

uint64_t ResultManifest::RemoveWhatWasLeft() const {
  Result<std::unique_ptr<Folder>> folder = files_.OpenFolder(places_.output_folder, Links::kRefuse);
  if (!folder.ok()) return 0;
  uint64_t removed = 0;
  (void)Read([&](const Entry& entry) {
    if (entry.before || IsOwn(places_.own, places_.output_folder, entry.path)) return;
    const bool is_folder = entry.path.ends_with('/');
    const std::string name = is_folder ? entry.path.substr(0, entry.path.size() - 1) : entry.path;
    const Result<FileFacts> facts = (*folder)->Stat(name, Links::kRefuse);
    if (!facts.ok()) return;
    if (is_folder) {
      // One in which something is left stays.
      if (facts->kind == EntryKind::kFolder) (void)(*folder)->Remove(name);
      return;
    }
    if (facts->kind != EntryKind::kFile || facts->size != entry.bytes ||
        facts->modified_ns != entry.modified_ns) {
      return;
    }
    const Status gone = (*folder)->Remove(name);
    if (gone.ok()) ++removed;
    if (!gone.ok()) spdlog::warn("{}", Printable(gone.error().message, 1000));
  });
  return removed;
}

Status ResultManifest::Forget() {
  Status removed = files_.Remove(path_);
  if (!removed.ok() && removed.error().code == Code::kNotFound) return {};
  return removed;
}

}  // namespace parallelrun::output
