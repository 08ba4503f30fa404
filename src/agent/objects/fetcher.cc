#include "agent/objects/fetcher.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

#include "agent/objects/cache.h"
#include "agent/objects/connections.h"
#include "agent/objects/lease_urls.h"
#include "agent/objects/object_files.h"
#include "agent/objects/parts.h"
#include "agent/objects/planned_object.h"
#include "agent/objects/store_trouble.h"
#include "base/escape.h"
#include "base/join_threads.h"
#include "store/file_path.h"
#include "store/objects/pause.h"
#include "store/throttling.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;

// Threads that read parts of large objects, which take as much memory each; those beyond read small
// ones.
constexpr size_t kOfParts = Connections::kFirst;
constexpr uint64_t kInOnePart = uint64_t{1} << 20;  // bytes; of more, several are read at once
constexpr Duration kPause = seconds(1);             // after a store could not be reached
constexpr char kListedAgain[] =
    "Do not change the input while a job reads it. A job that starts over (--overwrite, or "
    "output.ifExists: Overwrite) lists it afresh.";

std::string Shown(const std::string& text) { return Printable(text, kShownLong); }

// Of its file, below the object's own folder.
Result<std::string> NameOf(const store::Store& store, const job::ObjectName& object) {
  const std::string root = store.Location("") + "/";
  if (!object.location.starts_with(root)) {
    return Error{Code::kInvalid, Shown(object.location) + " is not below " + Shown(root)};
  }
  // All of its key, whatever part of that the store's URL names: labels may stand in it.
  const size_t bucket = object.location.find("://") + 3;
  std::string name = object.location.substr(object.location.find('/', bucket) + 1);
  if (!store::IsFilePath(name)) {
    return Error{Code::kInvalid,
                 Shown(object.location) +
                     ": its key cannot be the name of a file: copy the object to another key, or "
                     "leave it out with exclude"};
  }
  return name;
}

// Relative to the store's root.
std::string Below(const store::Store& store, const job::ObjectName& object) {
  return object.location.substr(store.Location("").size() + 1);
}

// What was planned, without a request, which would take as long as a small object itself; nothing
// where that cannot be.
std::unique_ptr<store::Object> Unseen(store::Store& store, const job::ObjectName& object) {
  std::unique_ptr<store::Object> planned =
      store.OpenUnseen(Below(store, object), store::Version(std::string(object.version)));
  if (!planned || object.size == job::ObjectName::kAnySize) return planned;
  return planned->found().size == object.size ? std::move(planned) : nullptr;
}

}  // namespace

std::string ObjectFolder(const std::string& work_folder, uint32_t node) {
  return (fs::path(work_folder).parent_path() / fmt::format("objects-{}", node)).string();
}

struct ObjectFetcher::Shared {
  Shared(EventLoop& of, std::shared_ptr<Files> on, std::string below, std::vector<JobStore> named,
         uint64_t bytes, OpenStore opens, OnEnd call, OnUrlEnded ended)
      : loop(of),
        disk(std::move(on)),
        files(*disk, std::move(below)),
        stores(std::move(named)),
        open(std::move(opens)),
        on_end(std::move(call)),
        on_url_ended(std::move(ended)),
        cache(bytes) {}

  EventLoop& loop;  // not used once a stop is asked for
  const std::shared_ptr<Files> disk;
  ObjectFiles files;
  const std::vector<JobStore> stores;
  const OpenStore open;
  const OnEnd on_end;
  const OnUrlEnded on_url_ended;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // on the loop's thread
  std::stop_source stop;                                       // asked for with the mutex

  std::mutex mutex;  // guards what follows; nobody waits for a disk or a store with it
  std::condition_variable changed;
  std::condition_variable more_allowed;  // connections
  std::optional<Status> begun;           // whether the folder could be made, once that is known
  size_t threads = 0;                    // that have not ended
  size_t idle = 0;                       // of those that are allowed to work
  Cache cache;
  std::map<Key, std::string> works;  // of those that want objects
  LeaseUrls urls{stores};
  std::map<std::string, std::unique_ptr<store::Store>> opened;
  std::map<Cache::Number, std::unique_ptr<store::Object>> objects;  // looked at, to be fetched
  struct Large {
    Cache::Step step;
    std::string name;  // of its file
    std::unique_ptr<store::Object> object;
  };
  std::map<Cache::Number, Large> large;  // whose parts are being fetched
  Parts parts;
  Connections connections;
  StoreTrouble trouble;
  store::Throttling throttling;

  // What came of a step.
  struct Done {
    Status status{};
    std::unique_ptr<store::Object> object = nullptr;  // of a look
    uint64_t room = 0;                                // that its file takes
    bool asked = true;                                // its store
    std::optional<Large> large = std::nullopt;        // of a fetch: its parts are to be fetched
    job::ByteRange bytes{};                           // that these have
  };

  // With the mutex.
  void Begin(const Cache::Step& step);
  void TellEnds();
  void Post(Key key, Result<std::string> work);
  void End(const Cache::Step& step, Done done);
  bool AskForUrls(Cache::Number number);
  void BeginParts(Large whole, const job::ByteRange& bytes);
  void CountAnswers();

  // Without it: these wait.
  Done Do(const Cache::Step& step, std::unique_ptr<store::Object> object);
  Done Fetch(const Cache::Step& step, const std::string& name,
             std::unique_ptr<store::Object> object);
  Done Fetched(const Cache::Step& step, Status written);
  void PauseAfter(const Status& status);
  Result<store::Store*> StoreOf(const std::string& name);
  void Remove(Cache::Number number);

  // With it at the begin and at the end, and without it in between.
  void ReadPart(const Parts::Part& part, std::unique_lock<std::mutex>& lock);
};

void ObjectFetcher::Shared::Post(Key key, Result<std::string> work) {
  if (stop.stop_requested()) return;
  loop.Post([alive = alive, call = &on_end, key,
             work = std::make_shared<Result<std::string>>(std::move(work))] {
    if (*alive) (*call)(key, std::move(*work));
  });
}

// Its store is asked from now on; to remove a file asks none.
void ObjectFetcher::Shared::Begin(const Cache::Step& step) {
  if (step.kind == Cache::Step::Kind::kRemove) return;
  for (const JobStore& store : stores) {
    if (store.name != step.object.store) continue;
    trouble.Begins(step.number, store.wished.url, SystemClock().WallNow());
  }
}

void ObjectFetcher::Shared::TellEnds() {
  for (const Key key : cache.TakeReady()) {
    const auto work = works.find(key);
    Post(key, job::WithFiles(work->second, files.folder(), [this](const job::ObjectName& object) {
           // Its name was good when it was fetched.
           return fmt::format("{}/{}", cache.NumberOf(object),
                              *NameOf(*opened.at(object.store), object));
         }));
  }
  for (auto& [key, error] : cache.TakeFailed()) {
    works.erase(key);
    Post(key, std::move(error));
  }
}

Result<store::Store*> ObjectFetcher::Shared::StoreOf(const std::string& name) {
  {
    const std::lock_guard lock(mutex);
    if (const auto known = opened.find(name); known != opened.end()) return known->second.get();
  }
  for (const JobStore& store : stores) {
    if (store.name != name) continue;
    Result<std::unique_ptr<store::Store>> made = open(store, stop.get_token());
    if (!made.ok()) return made.error();
    const std::lock_guard lock(mutex);
    // Another thread may have been faster.
    return opened.try_emplace(name, std::move(*made)).first->second.get();
  }
  return Error{Code::kInvalid, "the job has no store " + Shown(name)};
}

void ObjectFetcher::Shared::Remove(Cache::Number number) {
  const Status gone = files.Remove(number);
  if (!gone.ok()) spdlog::warn("an object's file stays: {}", Shown(gone.error().message));
}

ObjectFetcher::Shared::Done ObjectFetcher::Shared::Fetch(const Cache::Step& step,
                                                         const std::string& name,
                                                         std::unique_ptr<store::Object> object) {
  const job::ByteRange& range = step.object.range;
  if ((range.whole() ? object->found().size : range.length) <= kInOnePart) {
    return Fetched(step, files.Write(step.number, name, *object, range));
  }
  const Result<job::ByteRange> bytes = files.Make(step.number, name, *object, range);
  if (!bytes.ok()) return Fetched(step, bytes.error());
  Done made;
  made.large = Large{step, name, std::move(object)};
  made.bytes = *bytes;
  return made;
}

ObjectFetcher::Shared::Done ObjectFetcher::Shared::Fetched(const Cache::Step& step,
                                                           Status written) {
  if (written.ok() || written.error().code != Code::kStale) return {std::move(written)};
  const Result<store::Store*> store = StoreOf(step.object.store);
  if (!store.ok()) return {std::move(written)};
  // A look says how it differs from what was listed; a URL that reads one version does not.
  const Result<std::unique_ptr<store::Object>> now =
      OpenPlanned(**store, step.object, kListedAgain);
  if (!now.ok()) return {now.error()};
  return {Error{Code::kStale, written.error().message + ". " + kListedAgain}};
}

void ObjectFetcher::Shared::PauseAfter(const Status& status) {
  if (status.ok() || status.error().code != Code::kUnavailable || stop.stop_requested()) return;
  spdlog::warn("{}; it is asked again", Shown(status.error().message));
  store::Pause(kPause, stop.get_token());
}

void ObjectFetcher::Shared::CountAnswers() {
  store::AnswerCounts all;
  for (const auto& [name, store] : opened) {
    const store::AnswerCounts some = store->CountAnswers();
    all.all += some.all;
    all.throttled += some.throttled;
  }
  const size_t before = connections.allowed();
  connections.Saw(all, idle == 0, SystemClock().Now());
  if (connections.allowed() > before) more_allowed.notify_all();
}

void ObjectFetcher::Shared::BeginParts(Large whole, const job::ByteRange& bytes) {
  const Cache::Number number = whole.step.number;
  parts.Add(number, bytes);
  large.insert_or_assign(number, std::move(whole));
}

void ObjectFetcher::Shared::ReadPart(const Parts::Part& part, std::unique_lock<std::mutex>& lock) {
  const auto found = large.find(part.number);  // it stays until its last part has ended
  const Large& one = found->second;
  lock.unlock();
  Status read = files.WritePart(part.number, one.name, *one.object, part.range);
  lock.lock();
  if (read.ok()) {  // its store has answered
    trouble.Ends(part.number, "", SystemClock().WallNow());
    Begin(one.step);
  }
  const std::optional<Status> ended = parts.End(part.number, std::move(read));
  if (!ended) return;
  const Large whole = std::move(large.extract(found).mapped());
  Done done{*ended};
  if (!ended->ok()) {
    lock.unlock();
    Remove(part.number);
    done = Fetched(whole.step, *ended);
    PauseAfter(done.status);
    lock.lock();
  }
  End(whole.step, std::move(done));
}

ObjectFetcher::Shared::Done ObjectFetcher::Shared::Do(const Cache::Step& step,
                                                      std::unique_ptr<store::Object> object) {
  if (step.kind == Cache::Step::Kind::kRemove) return Remove(step.number), Done{};
  const Result<store::Store*> store = StoreOf(step.object.store);
  if (!store.ok()) return {store.error()};
  const Result<std::string> name = NameOf(**store, step.object);
  if (!name.ok()) return {name.error()};
  if (step.kind == Cache::Step::Kind::kFetch) {
    return Fetch(step, *name, std::move(object));
  }
  const auto looked = [&](std::unique_ptr<store::Object> found, bool asked) {
    const job::ByteRange& range = step.object.range;
    const uint64_t room = RoomOf(*name, range.whole() ? found->found().size : range.length);
    return Done{{}, std::move(found), room, asked};
  };
  if (auto unseen = Unseen(**store, step.object)) return looked(std::move(unseen), false);
  Result<std::unique_ptr<store::Object>> found = OpenPlanned(**store, step.object, kListedAgain);
  return found.ok() ? looked(std::move(*found), true) : Done{found.error()};
}

void ObjectFetcher::Shared::End(const Cache::Step& step, Done done) {
  using Kind = Cache::Step::Kind;
  if (done.large) return BeginParts(std::move(*done.large), done.bytes);
  if (!done.status.ok()) {
    const Error& error = done.status.error();
    const bool later = error.code == Code::kUnavailable || error.code == Code::kTimeout;
    const bool url_ended = later && urls.Ended(step.object, SystemClock().Now());
    const std::string why = url_ended && !urls.why().empty() ? "; it said: " + urls.why() : "";
    trouble.Ends(step.number, later ? error.message + why : "", SystemClock().WallNow());
    if (url_ended && !AskForUrls(step.number)) {
      // Whoever hands the mini-batch back is given others with the next lease.
      return cache.Failed(step.number, {Code::kUnavailable, error.message + why});
    }
    return later ? cache.Again(step.number) : cache.Failed(step.number, error);
  }
  if (done.asked) {
    trouble.Ends(step.number, "", SystemClock().WallNow());
  } else {
    trouble.EndsUnasked(step.number);
  }
  switch (step.kind) {
    case Kind::kRemove: return cache.Removed(step.number);
    case Kind::kFetch: return cache.Fetched(step.number);
    case Kind::kLook: break;
  }
  cache.Looked(step.number, done.room);
  if (cache.Wanted(step.number)) objects[step.number] = std::move(done.object);
}

// False: the coordinator said that it has none.
bool ObjectFetcher::Shared::AskForUrls(Cache::Number number) {
  const std::set<Key> keys = cache.WantedBy(number);
  const auto none = [this](Key key) { return urls.None(key); };
  if (std::any_of(keys.begin(), keys.end(), none)) return false;
  if (stop.stop_requested()) return true;
  for (const Key key : keys) {
    loop.Post([alive = alive, call = &on_url_ended, key] {
      if (*alive && *call) (*call)(key);
    });
  }
  return true;
}

// The threads end when they are asked to. The first one makes the folder, and the last one to go
// removes it.
void ObjectFetcher::Work(Shared& shared, size_t index) {
  const bool first = index == 0;
  const std::stop_token stop = shared.stop.get_token();
  std::optional<Status> begun;
  if (first) begun = shared.files.Begin();
  std::unique_lock lock(shared.mutex);
  if (first) shared.begun = std::move(begun);
  shared.changed.notify_all();
  shared.changed.wait(lock, [&] { return shared.begun || stop.stop_requested(); });
  while (!stop.stop_requested()) {
    if (index >= shared.connections.allowed()) {
      shared.more_allowed.wait(lock);
      continue;
    }
    const auto part = index < kOfParts ? shared.parts.Next() : std::nullopt;
    if (part) {
      shared.ReadPart(*part, lock);
      shared.CountAnswers();
      shared.TellEnds();
      shared.changed.notify_all();
      continue;
    }
    const std::optional<Cache::Step> step = shared.cache.Next();
    shared.TellEnds();  // a mini-batch may be too large
    if (!step) {
      ++shared.idle;
      shared.changed.wait(lock);
      --shared.idle;
      continue;
    }
    std::unique_ptr<store::Object> object;
    if (auto looked = shared.objects.extract(step->number)) object = std::move(looked.mapped());
    Shared::Done done{*shared.begun};
    if (done.status.ok()) {
      shared.Begin(*step);
      lock.unlock();
      done = shared.Do(*step, std::move(object));
      shared.PauseAfter(done.status);
      lock.lock();
    }
    shared.End(*step, std::move(done));
    shared.CountAnswers();
    shared.TellEnds();
    shared.changed.notify_all();
  }
  if (--shared.threads > 0) return;
  lock.unlock();
  static_cast<void>(
      shared.files.End());  // else the next agent of this node, or the run's end, does
}

ObjectFetcher::ObjectFetcher(EventLoop& loop, std::shared_ptr<Files> files, std::string folder,
                             std::vector<JobStore> stores, uint64_t bytes, OpenStore open,
                             OnEnd on_end, OnUrlEnded on_url_ended)
    : shared_(std::make_shared<Shared>(loop, std::move(files), std::move(folder), std::move(stores),
                                       bytes, std::move(open), std::move(on_end),
                                       std::move(on_url_ended))) {
  Grow();
}

void ObjectFetcher::Grow() {
  size_t allowed = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    allowed = std::max(threads_.size(), shared_->connections.allowed());
    shared_->threads += allowed - threads_.size();
  }
  for (size_t i = threads_.size(); i < allowed; ++i) {
    threads_.emplace_back("objects", [shared = shared_, i] { Work(*shared, i); });
  }
}

ObjectFetcher::~ObjectFetcher() { static_cast<void>(Finish(kEndLimit)); }

bool ObjectFetcher::Finish(Duration limit) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.request_stop();
  }
  shared_->changed.notify_all();
  shared_->more_allowed.notify_all();
  *shared_->alive = false;
  return JoinOrLeaveAll(threads_, limit);
}

void ObjectFetcher::Want(Key key, std::string work) {
  Grow();
  Result<std::vector<job::ObjectName>> objects = job::ObjectsOf(work);
  const std::lock_guard lock(shared_->mutex);
  if (!objects.ok()) return shared_->Post(key, objects.error());
  shared_->works[key] = std::move(work);
  shared_->urls.Want(key, *objects, SystemClock().Now());
  shared_->cache.Want(key, *objects);
  shared_->TellEnds();
  shared_->changed.notify_all();
}

std::string ObjectFetcher::WaitsFor() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->trouble.Text(SystemClock().WallNow());
}

void ObjectFetcher::TakeUrls(Key key, const job::ObjectUrls& urls) {
  const std::lock_guard lock(shared_->mutex);
  shared_->urls.Take(key, urls, SystemClock().Now());
}

std::string ObjectFetcher::StoreWait() {
  Grow();
  const std::lock_guard lock(shared_->mutex);
  shared_->CountAnswers();
  const WallTime now = SystemClock().WallNow();
  for (const auto& [name, store] : shared_->opened) {
    shared_->throttling.Saw(store->Location(""), store->CountAnswers(), now);
  }
  const std::string throttled = shared_->throttling.Text(now);
  return throttled.empty() ? shared_->trouble.Lasting(now) : throttled;
}

void ObjectFetcher::LetGo(Key key) {
  const std::lock_guard lock(shared_->mutex);
  shared_->works.erase(key);
  shared_->urls.LetGo(key);
  shared_->cache.Drop(key);
  std::erase_if(shared_->objects,
                [&](const auto& object) { return !shared_->cache.Wanted(object.first); });
  shared_->changed.notify_all();
}

}  // namespace parallelrun::agent
