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
#include "agent/objects/store_slots.h"
#include "agent/objects/store_trouble.h"
#include "base/escape.h"
#include "base/join_threads.h"
#include "base/pause.h"
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
    "output.ifExists: Overwrite) lists it afresh, but for what a manifest says of sizes and ETags.";

std::string Shown(const std::string& text) { return Printable(text, kShownLong); }

// Of its file.
uint64_t RoomFor(const job::ObjectName& object, const std::string& name,
                 const store::Object& found) {
  return RoomOf(name, object.range.whole() ? found.found().size : object.range.length);
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
  std::function<void()> on_more_allowed;  // on the loop's thread; set before any thread begins
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // on the loop's thread
  std::stop_source stop;                                       // asked for with the mutex

  std::mutex mutex;  // guards what follows; nobody waits for a disk or a store with it
  std::condition_variable changed;
  std::optional<Status> begun;  // whether the folder could be made, once that is known
  size_t threads = 0;           // that have not ended
  bool asks_for_threads = false;
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
  StoreSlots slots;
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

  struct Task {
    Cache::Step step;
    bool has_slot = false;  // of its store: it may ask it
  };

  // With the mutex.
  void Begin(const Cache::Step& step);
  void TellEnds();
  void Post(Key key, Result<std::string> work);
  void End(const Cache::Step& step, Done done);
  bool AskForUrls(Cache::Number number);
  void BeginParts(Large whole, const job::ByteRange& bytes);
  std::optional<Task> NextTask();
  std::optional<Parts::Part> NextPart();  // with its slot
  bool Park(const Cache::Step& step);
  void CountAnswers(const std::string& name);
  // Of a request that has ended.
  void GiveBack(const std::string& name);

  // Without it: these wait.
  std::optional<Done> LookUnasked(const Cache::Step& step);
  Done Do(const Cache::Step& step, std::unique_ptr<store::Object> object);
  Done Fetch(const Cache::Step& step, const std::string& name,
             std::unique_ptr<store::Object> object);
  Done Fetched(const Cache::Step& step, Status written);
  void PauseAfter(const Status& status);
  Result<store::Store*> StoreOf(const std::string& name);
  void Remove(Cache::Number number);

  // With it at the begin and at the end, and without it in between. False: nothing came of it, as
  // its store allows no more requests now.
  bool Run(Task task, std::unique_lock<std::mutex>& lock);
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
                              *FileNameOf(*opened.at(object.store), object));
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
  Pause(kPause, stop.get_token());
}

// Removals ask no store, and a look is first tried without: most need no answer.
std::optional<ObjectFetcher::Shared::Task> ObjectFetcher::Shared::NextTask() {
  while (std::optional<Cache::Step> parked = slots.TakeParked()) {
    if (cache.Wanted(parked->number)) return Task{std::move(*parked), true};
    slots.GiveBack(parked->object.store);
    cache.Again(parked->number);  // which forgets it
  }
  while (std::optional<Cache::Step> step = cache.Next()) {
    if (step->kind != Cache::Step::Kind::kFetch) return Task{std::move(*step)};
    if (slots.Take(step->object.store)) return Task{std::move(*step), true};
    slots.Park(*step);
  }
  return std::nullopt;
}

// False: too many looks wait already, and it is to be looked at later.
bool ObjectFetcher::Shared::Park(const Cache::Step& step) {
  trouble.EndsUnasked(step.number);
  if (slots.Park(step)) return true;
  cache.Again(step.number);
  return false;
}

std::optional<Parts::Part> ObjectFetcher::Shared::NextPart() {
  std::optional<Parts::Part> part = parts.Next(
      [this](uint64_t number) { return slots.AnyFree(large.at(number).step.object.store); });
  if (part) slots.Take(large.at(part->number).step.object.store);
  return part;
}

void ObjectFetcher::Shared::CountAnswers(const std::string& name) {
  const auto store = opened.find(name);
  if (store == opened.end()) return;
  slots.Saw(name, store->second->CountAnswers(), SystemClock().Now());
  if (slots.allowed() <= threads || stop.stop_requested()) return;
  if (std::exchange(asks_for_threads, true)) return;
  loop.Post([alive = alive, call = &on_more_allowed] {
    if (*alive) (*call)();
  });
}

void ObjectFetcher::Shared::GiveBack(const std::string& name) {
  CountAnswers(name);
  slots.GiveBack(name);
}

void ObjectFetcher::Shared::BeginParts(Large whole, const job::ByteRange& bytes) {
  const Cache::Number number = whole.step.number;
  parts.Add(number, bytes);
  large.insert_or_assign(number, std::move(whole));
}

void ObjectFetcher::Shared::ReadPart(const Parts::Part& part, std::unique_lock<std::mutex>& lock) {
  const auto found = large.find(part.number);  // it stays until its last part has ended
  const Large& one = found->second;
  const std::string store = one.step.object.store;
  lock.unlock();
  Status read = files.WritePart(part.number, one.name, *one.object, part.range);
  lock.lock();
  if (read.ok()) {  // its store has answered
    trouble.Ends(part.number, "", SystemClock().WallNow());
    Begin(one.step);
  }
  const std::optional<Status> ended = parts.End(part.number, std::move(read));
  if (!ended) return GiveBack(store);
  const Large whole = std::move(large.extract(found).mapped());
  Done done{*ended};
  if (!ended->ok()) {
    lock.unlock();
    Remove(part.number);
    done = Fetched(whole.step, *ended);
    PauseAfter(done.status);
    lock.lock();
  }
  GiveBack(store);
  End(whole.step, std::move(done));
}

// A look that asks nobody, or why there is none; nothing: the store has to be asked.
std::optional<ObjectFetcher::Shared::Done> ObjectFetcher::Shared::LookUnasked(
    const Cache::Step& step) {
  const Result<store::Store*> store = StoreOf(step.object.store);
  if (!store.ok()) return Done{store.error()};
  const Result<std::string> name = FileNameOf(**store, step.object);
  if (!name.ok()) return Done{name.error()};
  std::unique_ptr<store::Object> unseen = OpenUnasked(**store, step.object);
  if (!unseen) return std::nullopt;
  const uint64_t room = RoomFor(step.object, *name, *unseen);
  return Done{{}, std::move(unseen), room, false};
}

ObjectFetcher::Shared::Done ObjectFetcher::Shared::Do(const Cache::Step& step,
                                                      std::unique_ptr<store::Object> object) {
  if (step.kind == Cache::Step::Kind::kRemove) return Remove(step.number), Done{};
  const Result<store::Store*> store = StoreOf(step.object.store);
  if (!store.ok()) return {store.error()};
  const Result<std::string> name = FileNameOf(**store, step.object);
  if (!name.ok()) return {name.error()};
  if (step.kind == Cache::Step::Kind::kFetch) return Fetch(step, *name, std::move(object));
  Result<std::unique_ptr<store::Object>> found = OpenPlanned(**store, step.object, kListedAgain);
  if (!found.ok()) return {found.error()};
  const uint64_t room = RoomFor(step.object, *name, **found);
  return {{}, std::move(*found), room};
}

bool ObjectFetcher::Shared::Run(Task task, std::unique_lock<std::mutex>& lock) {
  const Cache::Step& step = task.step;
  std::unique_ptr<store::Object> object;
  if (auto looked = objects.extract(step.number)) object = std::move(looked.mapped());
  std::optional<Done> done;
  if (!begun->ok()) done = Done{*begun};
  if (!done) Begin(step);
  if (!done && step.kind == Cache::Step::Kind::kLook && !task.has_slot) {
    lock.unlock();
    done = LookUnasked(step);
    if (done) PauseAfter(done->status);
    lock.lock();
    if (!done && !slots.Take(step.object.store)) {
      if (!Park(step)) changed.wait(lock);
      return false;
    }
    task.has_slot = !done;
  }
  if (!done) {
    lock.unlock();
    done = Do(step, std::move(object));
    PauseAfter(done->status);
    lock.lock();
  }
  if (task.has_slot) GiveBack(step.object.store);
  End(step, std::move(*done));
  return true;
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
    if (const auto part = index < kOfParts ? shared.NextPart() : std::nullopt) {
      shared.ReadPart(*part, lock);
    } else {
      std::optional<Shared::Task> task = shared.NextTask();
      shared.TellEnds();  // a mini-batch may be too large
      if (!task) {
        shared.changed.wait(lock);
        continue;
      }
      // Whoever has done nothing wakes nobody: two of them would wake each other for ever.
      if (!shared.Run(std::move(*task), lock)) continue;
    }
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
  shared_->on_more_allowed = [this] { Grow(); };
  Grow();
}

void ObjectFetcher::Grow() {
  size_t allowed = 0;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->asks_for_threads = false;
    allowed = std::max(threads_.size(), shared_->slots.allowed());
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
  *shared_->alive = false;
  return JoinOrLeaveAll(threads_, limit);
}

void ObjectFetcher::Want(Key key, std::string work) {
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
  const std::lock_guard lock(shared_->mutex);
  const WallTime now = SystemClock().WallNow();
  std::map<std::string, store::AnswerCounts> by_url;  // two of a job may be one, with other keys
  for (const auto& [name, store] : shared_->opened) {
    shared_->CountAnswers(name);
    const store::AnswerCounts counts = store->CountAnswers();
    store::AnswerCounts& all = by_url[store->Location("")];
    all.all += counts.all;
    all.throttled += counts.throttled;
  }
  for (const auto& [url, counts] : by_url) shared_->throttling.Saw(url, counts, now);
  shared_->changed.notify_all();  // a store may allow more by now
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
