#include "agent/objects/side_inputs.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <xxhash.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <utility>

#include "agent/folder_tree.h"
#include "agent/objects/planned_object.h"
#include "base/escape.h"
#include "base/join_threads.h"
#include "base/json.h"
#include "base/pause.h"
#include "base/small_file.h"
#include "store/throttling.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kSideThreads = 8;
constexpr uint64_t kSidePart = uint64_t{64} << 20;  // of an object, which one thread fetches
constexpr size_t kSideBuffer = size_t{4} << 20;
constexpr Duration kSidePause = seconds(1);  // before a store or a full disk is tried again
constexpr size_t kMostBoot = 200;
constexpr size_t kMostWhy = 300;
constexpr char kSideListedAgain[] =
    "Do not change a side input while a job reads it: put it back, or have the job start over "
    "(--overwrite, or output.ifExists: Overwrite), which lists it afresh.";

void ReplaceAll(std::string& text, const std::string& mark, const std::string& path) {
  for (size_t at = text.find(mark); at != std::string::npos;
       at = text.find(mark, at + path.size())) {
    text.replace(at, mark.size(), path);
  }
}

std::string KeyOf(const std::vector<job::SideInput>& side_inputs) {
  const std::string text = job::SideInputsJson(side_inputs).dump();
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string PathBelow(const job::SideInput& side, const std::string& name) {
  return side.name + "/" + name;
}

// Of an object; those of an empty one are one, without a byte.
struct Part {
  size_t side = 0;
  size_t object = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

std::deque<Part> PartsOf(const std::vector<job::SideInput>& side_inputs) {
  std::deque<Part> parts;
  for (size_t side = 0; side < side_inputs.size(); ++side) {
    const std::vector<job::SideObject>& objects = side_inputs[side].objects;
    for (size_t object = 0; object < objects.size(); ++object) {
      uint64_t at = 0;
      do {
        const uint64_t bytes = std::min(kSidePart, objects[object].size - at);
        parts.push_back({side, object, at, bytes});
        at += bytes;
      } while (at < objects[object].size);
    }
  }
  return parts;
}

// What passes, as a store that is away and a disk that is full.
bool Passes(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kTimeout ||
         error.code == Code::kNoSpace;
}

}  // namespace

std::string SideInputFolder(const std::string& work_folder, uint32_t node) {
  return (fs::path(work_folder).parent_path() / fmt::format("side-inputs-{}", node)).string();
}

void PlaceSideInputs(const std::string& folder, JobSettings& job) {
  if (job.side_inputs.empty()) return;
  Json worker = ParseObject(job.worker).value_or(Json::object());
  const std::string below = folder + "/" + KeyOf(job.side_inputs) + "/";
  for (const job::SideInput& side : job.side_inputs) {
    const std::string mark = job::SideInputMark(side.name);
    std::string path = below + side.name;
    if (side.one_object) path += "/" + side.objects.front().name;
    for (std::string& argument : job.arguments) ReplaceAll(argument, mark, path);
    Json& heard = worker["sideInputs"];  // of all of them
    heard[side.name] = path;
    if (lenient::Text(worker, "modelFolder") == mark) worker["modelFolder"] = path;
  }
  job.worker = worker.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string FetchingText(const std::string& name, uint64_t bytes, uint64_t of) {
  const struct {
    uint64_t bytes;
    const char* name;
  } units[] = {{uint64_t{1} << 30, "GB"}, {uint64_t{1} << 20, "MB"}, {uint64_t{1} << 10, "kB"}};
  for (const auto& unit : units) {
    if (of < unit.bytes) continue;
    const auto size = static_cast<double>(unit.bytes);
    return fmt::format("fetching side input {}, {:.1f} of {:.1f} {}", name,
                       static_cast<double>(bytes) / size, static_cast<double>(of) / size,
                       unit.name);
  }
  return fmt::format("fetching side input {}, {} of {} bytes", name, bytes, of);
}

struct SideInputFetcher::Shared {
  Shared(EventLoop& of, Facts facts_of, OnEnd call)
      : loop(of),
        facts(std::move(facts_of)),
        key(KeyOf(facts.side_inputs)),
        on_end(std::move(call)),
        waiting(PartsOf(facts.side_inputs)),
        open_parts(waiting.size()) {
    for (const job::SideInput& side : facts.side_inputs) left.push_back(side.bytes());
  }

  EventLoop& loop;  // not used once a stop is asked for
  const Facts facts;
  const std::string key;
  const OnEnd on_end;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // on the loop's thread
  std::stop_source stop;
  std::mutex url_mutex;  // who has it may wait for the coordinator

  std::mutex mutex;  // guards what follows; nobody waits for a disk or a store with it
  std::condition_variable changed;
  std::unique_ptr<Folder> below;  // once the folder is there
  std::deque<Part> waiting;
  size_t open_parts;           // that are not fetched
  std::vector<uint64_t> left;  // bytes of each side input that are not fetched
  std::string trouble;         // of the last try, if it failed
  bool ended = false;
  std::map<std::string, std::unique_ptr<store::Store>> opened;  // by root
  store::Throttling throttling;

  std::string Marker() const { return facts.folder + "/" + key + ".whole"; }

  // These wait.
  bool Kept() const;
  Status Begin();
  Status HaveUrl(const Part& part, const store::Store& store);
  Status Fetch(const Part& part);
  Status Write(const Part& part, const store::Object& object);
  Result<store::Store*> StoreOf(const job::SideInput& side);
  void MarkWhole();

  // With the mutex.
  void End(Status status);
};

// What an agent of this boot has fetched to the end.
bool SideInputFetcher::Shared::Kept() const {
  const std::string boot = OrEmpty(ReadBegin(*facts.files, Marker(), kMostBoot));
  if (boot.empty() || boot != facts.boot) return false;
  for (const job::SideInput& side : facts.side_inputs) {
    for (const job::SideObject& object : side.objects) {
      const Result<FileFacts> there =
          facts.files->Stat(facts.folder + "/" + key + "/" + PathBelow(side, object.name));
      if (!there.ok() || there->size != object.size) return false;
    }
  }
  return true;
}

// What a predecessor left is in the way, and takes the room.
Status SideInputFetcher::Shared::Begin() {
  Files& files = *facts.files;
  const Result<std::unique_ptr<Folder>> holds =
      files.OpenFolder(FolderOf(facts.folder), Links::kRefuse);
  if (!holds.ok()) return holds.error();
  Status gone = RemoveTree(**holds, facts.folder.substr(facts.folder.rfind('/') + 1));
  if (!gone.ok()) return gone;
  const std::string folder = facts.folder + "/" + key;
  if (Status made = files.MakeFolders(folder); !made.ok()) return made;
  Result<std::unique_ptr<Folder>> made_now = files.OpenFolder(folder, Links::kRefuse);
  if (!made_now.ok()) return made_now.error();
  const std::lock_guard lock(mutex);
  below = std::move(*made_now);
  return {};
}

Result<store::Store*> SideInputFetcher::Shared::StoreOf(const job::SideInput& side) {
  {
    const std::lock_guard lock(mutex);
    if (const auto known = opened.find(side.root); known != opened.end()) {
      return known->second.get();
    }
  }
  for (const JobStore& store : facts.stores) {
    if (store.name != side.store) continue;
    JobStore at_root = store;
    at_root.wished.url = side.root;
    Result<std::unique_ptr<store::Store>> made = facts.open(at_root, stop.get_token());
    if (!made.ok()) return made.error();
    const std::lock_guard lock(mutex);
    // Another thread may have been faster.
    return opened.try_emplace(side.root, std::move(*made)).first->second.get();
  }
  return Error{Code::kInvalid, "the job has no store " + Printable(side.store, kShownLong)};
}

// One thread asks, for those of the others as well. One that ended is asked for anew, when its part
// is tried again.
Status SideInputFetcher::Shared::HaveUrl(const Part& part, const store::Store& store) {
  const job::SideInput& side = facts.side_inputs[part.side];
  const auto of = std::find_if(facts.stores.begin(), facts.stores.end(),
                               [&](const JobStore& one) { return one.name == side.store; });
  if (!of->urls) return {};
  const std::lock_guard lock(url_mutex);
  const Instant now = SystemClock().Now();
  if (of->urls->Get(store.Location(side.objects[part.object].name), now)) return {};
  const Result<job::SideUrls> given = facts.ask_urls({side.name, part.object}, stop.get_token());
  if (!given.ok()) return given.error();
  const size_t end = std::min(side.objects.size(), part.object + given->urls.size());
  for (size_t i = part.object; i < end; ++i) {
    const job::SideObject& object = side.objects[i];
    of->urls->Put(store.Location(object.name),
                  {given->urls[i - part.object], store::Version(object.version),
                   now + seconds(given->seconds)},
                  now);
  }
  return {};
}

Status SideInputFetcher::Shared::Fetch(const Part& part) {
  const job::SideInput& side = facts.side_inputs[part.side];
  const job::SideObject& wanted = side.objects[part.object];
  const Result<store::Store*> store = StoreOf(side);
  if (!store.ok()) return store.error();
  if (Status url = HaveUrl(part, **store); !url.ok()) return url;
  const Result<std::unique_ptr<store::Object>> object = OpenPlanned(
      **store, {side.store, (*store)->Location(wanted.name), wanted.version, wanted.size},
      kSideListedAgain);
  if (!object.ok()) return object.error();
  const std::string path = PathBelow(side, wanted.name);
  for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    const Status made = below->MakeFolder(path.substr(0, at));
    if (!made.ok() && made.error().code != Code::kExists) return made;
  }
  return Write(part, **object);
}

Status SideInputFetcher::Shared::Write(const Part& part, const store::Object& object) {
  const job::SideInput& side = facts.side_inputs[part.side];
  const std::string& name = side.objects[part.object].name;
  const std::string shown = Printable(name, kShownLong);
  const Result<std::unique_ptr<File>> file = below->OpenOrCreate(PathBelow(side, name));
  if (!file.ok()) return file.error();
  std::vector<char> buffer(static_cast<size_t>(std::min<uint64_t>(part.bytes, kSideBuffer)));
  uint64_t done = 0;
  Status status;
  while (done < part.bytes && status.ok()) {
    const size_t most = static_cast<size_t>(std::min<uint64_t>(buffer.size(), part.bytes - done));
    const Result<size_t> read = object.ReadAt(part.offset + done, {buffer.data(), most});
    if (!read.ok()) {
      status = read.error();
      // With a URL nobody has looked before.
      if (status.error().code == Code::kStale) {
        status = Error{Code::kStale, status.error().message + ". " + kSideListedAgain};
      }
    } else if (*read == 0) {
      status = Error{Code::kStale,
                     fmt::format("\"{}\" is shorter than it was. {}", shown, kSideListedAgain)};
    } else {
      status = (*file)->WriteAt(part.offset + done, {buffer.data(), *read});
    }
    if (!status.ok()) break;
    done += *read;
    const std::lock_guard lock(mutex);
    left[part.side] -= *read;
  }
  if (!status.ok()) {
    const std::lock_guard lock(mutex);
    left[part.side] += done;  // all of the part is fetched again
  }
  return status;
}

// Without it the next agent of this node fetches all again.
void SideInputFetcher::Shared::MarkWhole() {
  if (facts.boot.empty()) return;
  const Status marked = PublishFile(*facts.files, Marker(), facts.boot);
  if (!marked.ok()) spdlog::warn("{}", Printable(marked.error().message, kShownLong));
}

void SideInputFetcher::Shared::End(Status status) {
  if (std::exchange(ended, true)) return;
  waiting.clear();
  changed.notify_all();
  if (stop.stop_requested()) return;
  loop.Post([alive = alive, call = &on_end, status = std::move(status)] {
    if (*alive) (*call)(status);
  });
}

// The threads end when there is nothing more to do. The first one looks for what is there, and
// makes the folder.
void SideInputFetcher::Work(Shared& shared, bool first) {
  const std::stop_token stop = shared.stop.get_token();
  // False: nothing more is to be done.
  const auto failed = [&](const Error& error, const std::string& what) {
    if (!Passes(error)) {
      const std::lock_guard lock(shared.mutex);
      shared.End(error.With(what));
      return;
    }
    if (stop.stop_requested()) return;
    spdlog::warn("{}: {}; it is tried again", what, Printable(error.message, kShownLong));
    {
      const std::lock_guard lock(shared.mutex);
      shared.trouble = Printable(error.message, kMostWhy);
      if (error.code == Code::kNoSpace) shared.trouble += ": make room there";
    }
    Pause(kSidePause, stop);
  };
  if (first && shared.Kept()) {
    const std::lock_guard lock(shared.mutex);
    return shared.End({});
  }
  while (first && !stop.stop_requested()) {
    const Status begun = shared.Begin();
    if (begun.ok()) break;
    failed(begun.error(), "the folder of side inputs");
    if (!Passes(begun.error())) return;
  }
  std::unique_lock lock(shared.mutex);
  shared.changed.notify_all();
  shared.changed.wait(lock, [&] { return shared.below || shared.ended || stop.stop_requested(); });
  while (!shared.ended && !stop.stop_requested() && shared.open_parts > 0) {
    if (shared.waiting.empty()) {
      shared.changed.wait(lock);
      continue;
    }
    const Part part = shared.waiting.front();
    shared.waiting.pop_front();
    lock.unlock();
    const Status fetched = shared.Fetch(part);
    if (!fetched.ok()) {
      failed(fetched.error(),
             "the side input " + Printable(shared.facts.side_inputs[part.side].name, kMostWhy));
    }
    lock.lock();
    if (shared.ended) return;
    if (!fetched.ok()) {
      shared.waiting.push_front(part);
      shared.changed.notify_all();
      continue;
    }
    shared.trouble.clear();
    if (--shared.open_parts > 0) continue;
    lock.unlock();
    shared.MarkWhole();
    lock.lock();
    shared.End({});
  }
}

SideInputFetcher::SideInputFetcher(EventLoop& loop, Facts facts, OnEnd on_end)
    : shared_(std::make_shared<Shared>(loop, std::move(facts), std::move(on_end))) {
  for (size_t i = 0; i < kSideThreads; ++i) {
    threads_.emplace_back("side inputs", [shared = shared_, i] { Work(*shared, i == 0); });
  }
}

SideInputFetcher::~SideInputFetcher() { static_cast<void>(Finish(ObjectFetcher::kEndLimit)); }

bool SideInputFetcher::Finish(Duration limit) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.request_stop();
  }
  shared_->changed.notify_all();
  *shared_->alive = false;
  return JoinOrLeaveAll(threads_, limit);
}

SideInputFetcher::Progress SideInputFetcher::Now() const {
  const std::lock_guard lock(shared_->mutex);
  const std::vector<job::SideInput>& all = shared_->facts.side_inputs;
  Progress progress;
  std::optional<size_t> at;
  for (size_t i = 0; i < all.size(); ++i) {
    progress.bytes += all[i].bytes() - shared_->left[i];
    if (!at && shared_->left[i] > 0) at = i;
  }
  const size_t shown = at.value_or(all.size() - 1);
  const uint64_t of = all[shown].bytes();
  progress.text = FetchingText(Printable(all[shown].name, kMostWhy), of - shared_->left[shown], of);
  const WallTime now = SystemClock().WallNow();
  for (const auto& [root, store] : shared_->opened) {
    shared_->throttling.Saw(root, store->CountAnswers(), now);
  }
  if (!shared_->trouble.empty()) {
    progress.text += ": " + shared_->trouble + "; it is tried again";
  } else if (const std::string waits = shared_->throttling.Text(now); !waits.empty()) {
    progress.text += ": " + waits;
  }
  return progress;
}

}  // namespace parallelrun::agent
