#include "tests/support/fault_files.h"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace parallelrun {
namespace {

constexpr uint64_t kSector = 512;

std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

// Of folders there is no more to say than which they are.
uint64_t NumberOfFolder(const std::string& path) {
  return (uint64_t{1} << 63) | std::hash<std::string>{}(path);
}

}  // namespace

uint64_t FaultRng::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace {

// A file's bytes, and how to undo the writes that are not synced.
struct Node {
  struct Write {
    uint64_t offset;
    uint64_t length;
    std::string before;   // the bytes it replaced; shorter than `length` where it extended the file
    bool doomed = false;  // a sync of it failed: the system forgot it, no later sync keeps it
  };
  explicit Node(uint64_t its_number) : number(its_number) {}

  const uint64_t number;  // one for each file that ever was
  std::string bytes;
  uint64_t reserved = 0;
  uint64_t changes = 0;
  std::vector<Write> unsynced;

  FileFacts Facts() const {
    return {EntryKind::kFile, {1, number}, bytes.size(), static_cast<int64_t>(changes)};
  }

  uint64_t allocated() const { return std::max<uint64_t>(bytes.size(), reserved); }

  void Apply(uint64_t offset, std::string_view data) {
    if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size(), '\0');
    bytes.replace(offset, data.size(), data);
    ++changes;
  }

  // At once, as is always allowed: what was cut off does not come back after a crash.
  void Cut(uint64_t size) {
    ++changes;
    bytes.resize(size);
    for (Write& w : unsynced) {
      const uint64_t end = std::min(w.offset + w.length, size);
      w.length = end - std::min(w.offset, end);
      w.before.resize(std::min<uint64_t>(w.before.size(), w.length));
    }
    std::erase_if(unsynced, [](const Write& w) { return w.length == 0; });
  }

  void Crash(CrashMode mode, FaultRng& rng) {
    std::vector<Write> writes = std::exchange(unsynced, {});
    if (mode == CrashMode::kKeepAll || writes.empty()) return;
    std::vector<std::string> data;
    for (const Write& w : writes) data.push_back(bytes.substr(w.offset, w.length));
    for (auto w = writes.rbegin(); w != writes.rend(); ++w) Undo(*w);
    if (mode == CrashMode::kLoseAll) return;
    for (size_t i = 0; i < writes.size(); ++i) KeepSome(writes[i].offset, data[i], rng);
  }

 private:
  void Undo(const Write& w) {
    const uint64_t end = w.offset + w.length;
    bytes.replace(w.offset, w.before.size(), w.before);
    const uint64_t kept = w.offset + w.before.size();
    if (kept == end) return;
    if (bytes.size() == end) {
      bytes.resize(kept);
    } else {
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kept),
                bytes.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    }
  }

  void KeepSome(uint64_t offset, const std::string& data, FaultRng& rng) {
    if (data.empty()) return;
    switch (rng.Below(4)) {
      case 0: return;
      case 1: return Apply(offset, data);
      case 2: return Apply(offset, std::string_view(data).substr(0, rng.Below(data.size() + 1)));
      default:
        for (uint64_t at = offset; at < offset + data.size();) {
          const uint64_t next = std::min((at / kSector + 1) * kSector, offset + data.size());
          if (rng.Below(2) == 0) {
            Apply(at, std::string_view(data).substr(at - offset, next - at));
          }
          at = next;
        }
    }
  }
};

using NodePtr = std::shared_ptr<Node>;

// One change of folder entries: `added` becomes `path`, and `removed` goes away.
struct EntryChange {
  std::string removed;  // empty: nothing
  NodePtr removed_node;
  std::string added;  // empty: nothing
  NodePtr added_node;
  NodePtr replaced_node;  // what `added` was before

  bool Touches(const std::string& folder) const {
    return (!removed.empty() && Parent(removed) == folder) ||
           (!added.empty() && Parent(added) == folder);
  }
};

}  // namespace

struct FaultFiles::Disk {
  explicit Disk(uint64_t seed) : rng(seed) {}

  std::mutex mutex;  // held by each operation
  FaultRng rng;
  uint64_t life = 0;  // raised by each crash
  std::set<std::string> folders{""};
  std::map<std::string, NodePtr> entries;
  std::vector<EntryChange> unsynced;

  uint64_t operations = 0;
  uint64_t reads = 0;
  struct Fault {
    uint64_t operation;
    Error error;
    FaultMoment moment;
  };
  std::optional<Fault> fault;
  uint64_t action_operation = 0;
  std::function<void()> action;
  uint64_t flip_read = 0;
  uint64_t shorten_read = 0;
  std::optional<uint64_t> capacity;
  std::set<std::string> locked;
  std::string hangs;  // a folder; empty: nothing does
  size_t hanging = 0;
  std::condition_variable hanging_changed;
  uint64_t nodes_made = 0;
  bool reserve_works = true;
  bool exclusive_works = true;
  bool rename_new_works = true;

  uint64_t Used() const {
    uint64_t sum = 0;
    for (const auto& [path, node] : entries) sum += node->allocated();
    return sum;
  }
  uint64_t Free() const {
    const uint64_t used = Used();
    return capacity ? (*capacity > used ? *capacity - used : 0) : uint64_t{1} << 50;
  }

  NodePtr NewNode() { return std::make_shared<Node>(++nodes_made); }

  NodePtr Find(const std::string& path) const {
    const auto found = entries.find(path);
    return found == entries.end() ? nullptr : found->second;
  }

  void Apply(const EntryChange& change) {
    if (!change.removed.empty()) entries.erase(change.removed);
    if (!change.added.empty()) entries[change.added] = change.added_node;
  }
  void Change(EntryChange change) {
    Apply(change);
    unsynced.push_back(std::move(change));
  }
  // Durable at once, as making a folder is, with the entries below it.
  Status RenameFolder(const std::string& from, const std::string& to) {
    if (folders.contains(to) || entries.contains(to)) {
      return Error{Code::kExists, "rename " + from + " to " + to + ": it exists"};
    }
    const auto below = [&from](const std::string& path) { return path.starts_with(from + "/"); };
    std::erase_if(unsynced,
                  [&](const EntryChange& c) { return below(c.removed) || below(c.added); });
    const auto moved = [&](const std::string& path) { return to + path.substr(from.size()); };
    for (const std::string& folder : std::set(folders)) {
      if (folder != from && !below(folder)) continue;
      folders.erase(folder);
      folders.insert(moved(folder));
    }
    for (const auto& [path, node] : std::map(entries)) {
      if (!below(path)) continue;
      entries.erase(path);
      entries[moved(path)] = node;
    }
    return {};
  }
  void Undo(const EntryChange& change) {
    if (!change.added.empty()) {
      if (change.replaced_node) {
        entries[change.added] = change.replaced_node;
      } else {
        entries.erase(change.added);
      }
    }
    if (!change.removed.empty()) entries[change.removed] = change.removed_node;
  }

  // Counts one operation. `act` does it and returns Status or Result; it is skipped or its answer
  // replaced when the operation is to fail. `partly` is what a failing one may still have done.
  template <typename Act, typename Partly>
  auto Operate(Act act, Partly partly) -> decltype(act()) {
    std::unique_lock lock(mutex);
    ++operations;
    if (operations == action_operation) {
      const std::function<void()> now = std::exchange(action, {});
      lock.unlock();  // it uses the disk itself
      now();
      lock.lock();
    }
    if (!fault || fault->operation != operations) return act();
    const Fault now = *std::exchange(fault, std::nullopt);
    if (now.moment == FaultMoment::kBefore) {
      partly();
    } else {
      (void)act();
    }
    return now.error;
  }
  template <typename Act>
  auto Operate(Act act) -> decltype(act()) {
    return Operate(act, [] {});
  }

  // Comes back once nothing hangs there.
  void Reach(const std::string& path) {
    std::unique_lock lock(mutex);
    const auto reached = [&] {
      return hangs.empty() || (path != hangs && !path.starts_with(hangs + "/"));
    };
    if (reached()) return;
    ++hanging;
    hanging_changed.notify_all();
    hanging_changed.wait(lock, reached);
    --hanging;
  }
};

class FaultFile final : public File {
 public:
  FaultFile(std::shared_ptr<FaultFiles::Disk> disk, NodePtr node, std::string path, bool writable)
      : disk_(std::move(disk)),
        node_(std::move(node)),
        path_(std::move(path)),
        writable_(writable),
        life_(disk_->life) {}

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    disk_->Reach(path_);
    return disk_->Operate(
        [&]() -> Status {
          if (Status s = Usable(); !s.ok()) return s;
          assert(writable_);
          const uint64_t end = offset + bytes.size();
          const uint64_t room = node_->allocated() + disk_->Free();
          if (end <= room) return Write(offset, bytes), Status();
          if (room > offset) Write(offset, bytes.substr(0, room - offset));
          return Error{Code::kNoSpace, "write " + path_ + ": the simulated disk is full"};
        },
        [&] {
          if (Usable().ok()) Write(offset, bytes.substr(0, disk_->rng.Below(bytes.size() + 1)));
        });
  }

  Result<size_t> ReadInto(uint64_t offset, std::span<char> to) const override {
    disk_->Reach(path_);
    return disk_->Operate([&]() -> Result<size_t> {
      if (Status s = Usable(); !s.ok()) return s.error();
      std::string bytes;
      if (offset < node_->bytes.size()) bytes = node_->bytes.substr(offset, to.size());
      ++disk_->reads;
      if (disk_->reads == disk_->flip_read && !bytes.empty()) {
        const uint64_t bit = disk_->rng.Below(bytes.size() * 8);
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
      }
      if (disk_->reads == disk_->shorten_read && !bytes.empty()) {
        bytes.resize(disk_->rng.Below(bytes.size()));
      }
      std::copy(bytes.begin(), bytes.end(), to.begin());
      return bytes.size();
    });
  }

  Status Sync() override {
    disk_->Reach(path_);
    return disk_->Operate(
        [&]() -> Status {
          if (Status s = Usable(); !s.ok()) return s;
          std::erase_if(node_->unsynced, [](const Node::Write& w) { return !w.doomed; });
          return {};
        },
        [&] {
          for (Node::Write& w : node_->unsynced) w.doomed = true;
        });
  }

  Result<FileFacts> Stat() const override {
    disk_->Reach(path_);
    return disk_->Operate([&]() -> Result<FileFacts> {
      if (Status s = Usable(); !s.ok()) return s.error();
      return node_->Facts();
    });
  }

  Status Cut(uint64_t size) override {
    disk_->Reach(path_);
    return disk_->Operate([&]() -> Status {
      if (Status s = Usable(); !s.ok()) return s;
      assert(size <= node_->bytes.size());
      node_->Cut(size);
      return {};
    });
  }

  Status Reserve(uint64_t size) override {
    disk_->Reach(path_);
    return disk_->Operate([&]() -> Status {
      if (Status s = Usable(); !s.ok()) return s;
      if (!disk_->reserve_works || size <= node_->allocated()) return {};
      if (size - node_->allocated() > disk_->Free()) {
        return Error{Code::kNoSpace, "reserve room in " + path_ + ": the simulated disk is full"};
      }
      node_->reserved = size;
      return {};
    });
  }

  Status Trim() override {
    disk_->Reach(path_);
    return disk_->Operate([&]() -> Status {
      if (Status s = Usable(); !s.ok()) return s;
      node_->reserved = 0;
      return {};
    });
  }

 private:
  Status Usable() const {
    if (life_ == disk_->life) return {};
    return Error{Code::kUnavailable, path_ + ": the machine that had opened it crashed"};
  }

  void Write(uint64_t offset, std::string_view bytes) {
    if (bytes.empty()) return;
    const std::string before =
        offset < node_->bytes.size() ? node_->bytes.substr(offset, bytes.size()) : "";
    node_->unsynced.push_back({offset, bytes.size(), before});
    node_->Apply(offset, bytes);
  }

  const std::shared_ptr<FaultFiles::Disk> disk_;
  const NodePtr node_;
  const std::string path_;
  [[maybe_unused]] const bool writable_;  // for an assertion
  const uint64_t life_;
};

// A handle of a folder, for which its path stands: nobody moves folders on this disk.
class FaultFolder final : public Folder {
 public:
  FaultFolder(const FaultFiles& files, std::shared_ptr<FaultFiles::Disk> disk, std::string path)
      : files_(files), disk_(std::move(disk)), path_(std::move(path)) {}

  Status Entries(const EachEntry& each) const override {
    const Result<std::vector<std::string>> names = files_.List(path_);
    if (!names.ok()) return names.error();
    std::vector<EntryKind> kinds;
    {
      const std::lock_guard lock(disk_->mutex);
      for (const std::string& name : *names) {
        const bool folder = disk_->folders.contains(PathOf(name));
        kinds.push_back(folder ? EntryKind::kFolder : EntryKind::kFile);
      }
    }
    for (size_t i = 0; i < names->size(); ++i) {
      if (Status told = each((*names)[i], kinds[i]); !told.ok()) return told;
    }
    return {};
  }
  Result<FileFacts> Stat(const std::string& name, Links) const override {
    return files_.Stat(PathOf(name));
  }
  Result<std::unique_ptr<Folder>> OpenFolder(const std::string& name) const override {
    return files_.OpenFolder(PathOf(name), Links::kRefuse);
  }
  Result<std::unique_ptr<File>> OpenRead(const std::string& name) const override {
    return files_.OpenRead(PathOf(name));
  }
  Result<std::unique_ptr<File>> CreateExclusive(const std::string& name) override {
    return files_.CreateExclusive(PathOf(name));
  }
  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& name) override {
    return files_.OpenOrCreate(PathOf(name));
  }
  Status Append(const std::string& name, std::string_view bytes) override {
    Result<std::unique_ptr<File>> file = files_.OpenOrCreate(PathOf(name));
    if (!file.ok()) return file.error();
    const Result<uint64_t> size = (*file)->Size();
    return size.ok() ? (*file)->WriteAt(*size, bytes) : Status(size.error());
  }
  Status MakeFolder(const std::string& name) override {
    const std::string path = PathOf(name);
    disk_->Reach(path);
    return disk_->Operate([&]() -> Status {
      if (disk_->folders.contains(path) || disk_->Find(path)) {
        return Error{Code::kExists, "create folder " + path + ": it exists"};
      }
      if (!disk_->folders.contains(Parent(path))) {
        return Error{Code::kNotFound, "create folder " + path + ": no such folder"};
      }
      disk_->folders.insert(path);
      return {};
    });
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return files_.Rename(PathOf(from), PathOf(to));
  }
  Status Remove(const std::string& name) override {
    const std::string path = PathOf(name);
    disk_->Reach(path);
    return disk_->Operate([&]() -> Status {
      if (const NodePtr node = disk_->Find(path)) {
        disk_->Change({path, node, "", nullptr, nullptr});
        return {};
      }
      const auto below = [&](const auto& all) {
        const auto first = all.lower_bound(path + "/");
        if (first == all.end()) return false;
        if constexpr (requires { first->first; }) {
          return first->first.starts_with(path + "/");
        } else {
          return first->starts_with(path + "/");
        }
      };
      if (below(disk_->entries) || below(disk_->folders)) {
        return Error{Code::kInternal, "remove " + path + ": it is not empty"};
      }
      if (disk_->folders.erase(path) > 0) return {};
      return Error{Code::kNotFound, "remove " + path + ": no such file"};
    });
  }
  Status Link(const std::string&, const std::string& name) override {
    return Error{Code::kPermission, "link " + PathOf(name) + ": this disk knows no links"};
  }
  Status SyncFolderOf(const std::string& name) override {
    return files_.SyncFolder(Parent(PathOf(name)));
  }

 private:
  std::string PathOf(const std::string& name) const {
    return name == "." ? path_ : path_ + "/" + name;
  }

  FaultFiles files_;  // another view of the same disk
  const std::shared_ptr<FaultFiles::Disk> disk_;
  const std::string path_;
};

FaultFiles::FaultFiles(uint64_t seed) : disk_(std::make_shared<Disk>(seed)) {}
FaultFiles::~FaultFiles() = default;

uint64_t FaultFiles::operations() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->operations;
}

void FaultFiles::FailOperation(uint64_t n, Error error, FaultMoment moment) {
  const std::lock_guard lock(disk_->mutex);
  disk_->fault = Disk::Fault{disk_->operations + n, std::move(error), moment};
}
void FaultFiles::RunBefore(uint64_t n, std::function<void()> action) {
  const std::lock_guard lock(disk_->mutex);
  disk_->action_operation = disk_->operations + n;
  disk_->action = std::move(action);
}
void FaultFiles::FlipRead(uint64_t n) {
  const std::lock_guard lock(disk_->mutex);
  disk_->flip_read = disk_->reads + n;
}
void FaultFiles::ShortenRead(uint64_t n) {
  const std::lock_guard lock(disk_->mutex);
  disk_->shorten_read = disk_->reads + n;
}
void FaultFiles::ClearFaults() {
  const std::lock_guard lock(disk_->mutex);
  disk_->fault.reset();
  disk_->action_operation = 0;
  disk_->flip_read = disk_->shorten_read = 0;
}
void FaultFiles::SetCapacity(std::optional<uint64_t> bytes) {
  const std::lock_guard lock(disk_->mutex);
  disk_->capacity = bytes;
}
uint64_t FaultFiles::used() const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->Used();
}
void FaultFiles::SetReserveWorks(bool works) {
  const std::lock_guard lock(disk_->mutex);
  disk_->reserve_works = works;
}
void FaultFiles::SetRenameNewWorks(bool works) {
  const std::lock_guard lock(disk_->mutex);
  disk_->rename_new_works = works;
}
void FaultFiles::SetExclusiveWorks(bool works) {
  const std::lock_guard lock(disk_->mutex);
  disk_->exclusive_works = works;
}

void FaultFiles::Hang(const std::string& folder) {
  const std::lock_guard lock(disk_->mutex);
  disk_->hangs = folder;
  disk_->hanging_changed.notify_all();
}

void FaultFiles::AwaitHanging() const {
  std::unique_lock lock(disk_->mutex);
  disk_->hanging_changed.wait(lock, [this] { return disk_->hanging > 0; });
}

void FaultFiles::Crash(CrashMode mode) {
  const std::lock_guard lock(disk_->mutex);
  ++disk_->life;
  const std::vector<EntryChange> changes = std::exchange(disk_->unsynced, {});
  // Also files whose entry is about to vanish, or to come back, lose their bytes.
  std::vector<NodePtr> nodes;
  for (const auto& [path, node] : disk_->entries) nodes.push_back(node);
  for (const EntryChange& c : changes) {
    if (c.removed_node) nodes.push_back(c.removed_node);
    if (c.replaced_node) nodes.push_back(c.replaced_node);
  }
  for (const NodePtr& node : nodes) node->Crash(mode, disk_->rng);  // again: changes nothing
  if (mode == CrashMode::kKeepAll) return;
  for (auto c = changes.rbegin(); c != changes.rend(); ++c) disk_->Undo(*c);
  if (mode == CrashMode::kLoseAll) return;
  for (const EntryChange& c : changes) {
    if (disk_->rng.Below(2) == 0) disk_->Apply(c);
  }
}

std::string FaultFiles::Contents(const std::string& path) const {
  const std::lock_guard lock(disk_->mutex);
  const NodePtr node = disk_->Find(path);
  assert(node);
  return node->bytes;
}

bool FaultFiles::Has(const std::string& path) const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->Find(path) != nullptr;
}

bool FaultFiles::HasFolder(const std::string& path) const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->folders.contains(path);
}

void FaultFiles::Put(const std::string& path, std::string bytes) {
  const std::lock_guard lock(disk_->mutex);
  for (std::string folder = Parent(path); !folder.empty(); folder = Parent(folder)) {
    disk_->folders.insert(folder);
  }
  disk_->entries[path] = disk_->NewNode();
  disk_->entries[path]->bytes = std::move(bytes);
}

void FaultFiles::Drop(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  disk_->entries.erase(path);
}

Result<std::unique_ptr<File>> FaultFiles::CreateExclusive(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::unique_ptr<File>> {
    if (disk_->Find(path) && disk_->exclusive_works) {
      return Error{Code::kExists, "create " + path + ": it exists"};
    }
    if (!disk_->folders.contains(Parent(path))) {
      return Error{Code::kNotFound, "create " + path + ": no such folder"};
    }
    const auto node = disk_->NewNode();
    disk_->Change({"", nullptr, path, node, disk_->Find(path)});
    return std::unique_ptr<File>(std::make_unique<FaultFile>(disk_, node, path, true));
  });
}

Result<std::unique_ptr<File>> FaultFiles::Open(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::unique_ptr<File>> {
    const NodePtr node = disk_->Find(path);
    if (!node) return Error{Code::kNotFound, "open " + path + ": no such file"};
    return std::unique_ptr<File>(std::make_unique<FaultFile>(disk_, node, path, true));
  });
}

Result<std::unique_ptr<File>> FaultFiles::OpenRead(const std::string& path) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::unique_ptr<File>> {
    const NodePtr node = disk_->Find(path);
    if (!node) return Error{Code::kNotFound, "open " + path + ": no such file"};
    return std::unique_ptr<File>(std::make_unique<FaultFile>(disk_, node, path, false));
  });
}

Result<std::unique_ptr<File>> FaultFiles::OpenOrCreate(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::unique_ptr<File>> {
    NodePtr node = disk_->Find(path);
    if (!node && !disk_->folders.contains(Parent(path))) {
      return Error{Code::kNotFound, "open " + path + ": no such folder"};
    }
    if (!node) {
      node = disk_->NewNode();
      disk_->Change({"", nullptr, path, node, nullptr});
    }
    return std::unique_ptr<File>(std::make_unique<FaultFile>(disk_, node, path, true));
  });
}

Status FaultFiles::Rename(const std::string& from, const std::string& to) {
  disk_->Reach(from);
  return disk_->Operate([&]() -> Status {
    const NodePtr node = disk_->Find(from);
    const bool known = node || disk_->folders.contains(from);
    if (!known || !disk_->folders.contains(Parent(to))) {
      return Error{Code::kNotFound, "rename " + from + " to " + to + ": no such file"};
    }
    if (!node) return disk_->RenameFolder(from, to);
    disk_->Change({from, node, to, node, disk_->Find(to)});
    return {};
  });
}

Result<bool> FaultFiles::RenameNew(const std::string& from, const std::string& to) {
  disk_->Reach(from);
  return disk_->Operate([&]() -> Result<bool> {
    if (!disk_->rename_new_works) return false;
    const NodePtr node = disk_->Find(from);
    if (!node || !disk_->folders.contains(Parent(to))) {
      return Error{Code::kNotFound, "rename " + from + " to " + to + ": no such file"};
    }
    if (disk_->Find(to))
      return Error{Code::kExists, "rename " + from + " to " + to + ": it exists"};
    disk_->Change({from, node, to, node, nullptr});
    return true;
  });
}

Status FaultFiles::Remove(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Status {
    const NodePtr node = disk_->Find(path);
    if (!node) return Error{Code::kNotFound, "remove " + path + ": no such file"};
    disk_->Change({path, node, "", nullptr, nullptr});
    return {};
  });
}

Status FaultFiles::SyncFolder(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Status {
    if (!disk_->folders.contains(path)) {
      return Error{Code::kNotFound, "sync " + path + ": no such folder"};
    }
    std::erase_if(disk_->unsynced, [&](const EntryChange& c) { return c.Touches(path); });
    return {};
  });
}

Status FaultFiles::MakeFolders(const std::string& path) {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Status {
    for (std::string folder = path; !folder.empty(); folder = Parent(folder)) {
      disk_->folders.insert(folder);
    }
    return {};
  });
}

Result<std::vector<std::string>> FaultFiles::List(const std::string& path) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::vector<std::string>> {
    if (!disk_->folders.contains(path)) {
      return Error{Code::kNotFound, "list " + path + ": no such folder"};
    }
    // All that is below the folder lies side by side.
    const std::string below = path + "/";
    std::vector<std::string> names;
    const auto add = [&](const std::string& name) {
      if (!name.starts_with(below)) return false;
      if (name.find('/', below.size()) == std::string::npos) {
        names.push_back(name.substr(below.size()));
      }
      return true;
    };
    auto entry = disk_->entries.lower_bound(below);
    while (entry != disk_->entries.end() && add(entry->first)) ++entry;
    auto folder = disk_->folders.lower_bound(below);
    while (folder != disk_->folders.end() && add(*folder)) ++folder;
    std::sort(names.begin(), names.end());
    return names;
  });
}

Result<bool> FaultFiles::Exists(const std::string& path) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<bool> {
    return disk_->Find(path) != nullptr || disk_->folders.contains(path);
  });
}

Result<uint64_t> FaultFiles::FreeSpace(const std::string&) const {
  return disk_->Operate([&]() -> Result<uint64_t> { return disk_->Free(); });
}

Result<FileFacts> FaultFiles::Stat(const std::string& path) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<FileFacts> {
    if (const NodePtr node = disk_->Find(path)) return node->Facts();
    if (!disk_->folders.contains(path)) {
      return Error{Code::kNotFound, "stat " + path + ": nothing is there"};
    }
    return FileFacts{EntryKind::kFolder, {1, NumberOfFolder(path)}, 0, 0};
  });
}

Result<std::string> FaultFiles::RealPath(const std::string& path) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::string> {
    if (disk_->Find(path) || disk_->folders.contains(path)) return path;
    return Error{Code::kNotFound, "resolve " + path + ": nothing is there"};
  });
}

Result<std::unique_ptr<Folder>> FaultFiles::OpenFolder(const std::string& path, Links) const {
  disk_->Reach(path);
  return disk_->Operate([&]() -> Result<std::unique_ptr<Folder>> {
    if (!disk_->folders.contains(path)) {
      return Error{Code::kNotFound, "open folder " + path + ": no such folder"};
    }
    return std::unique_ptr<Folder>(std::make_unique<FaultFolder>(FaultFiles(disk_), disk_, path));
  });
}

Result<std::unique_ptr<File>> FaultFiles::Lock(const std::string& path) {
  Result<std::unique_ptr<File>> file = OpenOrCreate(path);
  if (!file.ok()) return file;
  return disk_->Operate([&]() -> Result<std::unique_ptr<File>> {
    if (disk_->locked.insert(path).second) return std::move(file);
    return Error{Code::kUnavailable, "lock " + path + ": somebody has it"};
  });
}

bool FaultFiles::IsLocked(const std::string& path) const {
  const Result<bool> locked =
      disk_->Operate([&]() -> Result<bool> { return disk_->locked.contains(path); });
  return !locked.ok() || *locked;
}

}  // namespace parallelrun
