#include "agent/objects/fetcher.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <map>
#include <mutex>
#include <stop_token>
#include <utility>

#include "agent/objects/cache.h"
#include "base/escape.h"
#include "base/fd.h"
#include "store/s3/pause.h"
#include "store/s3/s3_store.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;
using agent::Cache;
using agent::Key;
using agent::ObjectName;

constexpr size_t kThreads = 16;  // small objects take a round trip each
constexpr size_t kPart = size_t{8} << 20;
constexpr Duration kPause = seconds(1);  // after a store could not be reached
constexpr size_t kMaxShown = 500;
constexpr size_t kLongestName = 255;  // of a file, as Linux takes it
constexpr char kListedAgain[] =
    "Do not change the input while a job reads it. A job that starts over (--overwrite, or "
    "output.ifExists: Overwrite) lists it afresh.";

std::string Shown(const std::string& text) { return Printable(text, kMaxShown); }

// Whether a name can be a path below a folder, and none that leads out of it.
bool IsPath(std::string_view name) {
  while (true) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part == "." || part == ".." || part.size() > kLongestName) return false;
    if (part.find('\0') != std::string_view::npos) return false;
    if (end == name.size()) return true;
    name.remove_prefix(end + 1);
  }
}

Status WriteAll(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + Shown(path));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status CopyTo(const std::string& path, const store::Object& object) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error) return ErrnoError(error.value(), "make a folder for " + Shown(path));
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.ok()) return ErrnoError(errno, "create " + Shown(path));
  const uint64_t size = object.found().size;
  std::vector<char> part(static_cast<size_t>(std::min<uint64_t>(size, kPart)));
  for (uint64_t at = 0; at < size;) {
    const Result<size_t> read = object.ReadAt(at, part);
    if (!read.ok()) return read.error();
    if (*read == 0) return Error{Code::kStale, "it is shorter than it was"};
    const Status written = WriteAll(file.get(), {part.data(), *read}, path);
    if (!written.ok()) return written;
    at += *read;
  }
  return {};
}

}  // namespace

std::string ObjectFolder(const std::string& work_folder, uint32_t node) {
  return (fs::path(work_folder).parent_path() / fmt::format("objects-{}", node)).string();
}

struct ObjectFetcher::Shared {
  Shared(EventLoop& of, std::string below, std::vector<JobStore> named, uint64_t bytes, OnEnd call)
      : loop(of),
        folder(std::move(below)),
        stores(std::move(named)),
        on_end(std::move(call)),
        cache(bytes) {}

  EventLoop& loop;
  const std::string folder;
  const std::vector<JobStore> stores;
  const OnEnd on_end;
  std::stop_source stop;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // on the loop's thread

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  Cache cache;
  std::map<Key, std::string> works;  // of those that want objects
  std::map<std::string, std::unique_ptr<store::Store>> opened;
  std::map<Cache::Number, std::unique_ptr<store::Object>> objects;  // looked at, to be fetched

  // All of these with the mutex.
  void TellEnds();
  void Post(Key key, Result<std::string> work);
  Result<store::Store*> StoreOf(const std::string& name);
  Result<std::string> FileOf(const ObjectName& object, Cache::Number number) const;
  void RemoveGone();
  void End(const Cache::Step& step, const Error& error);

  // Without it.
  Status Look(store::Store& store, const ObjectName& object,
              std::unique_ptr<store::Object>& found) const;
};

void ObjectFetcher::Shared::Post(Key key, Result<std::string> work) {
  loop.Post([alive = alive, call = &on_end, key,
             work = std::make_shared<Result<std::string>>(std::move(work))] {
    if (*alive) (*call)(key, std::move(*work));
  });
}

void ObjectFetcher::Shared::TellEnds() {
  for (const Key key : cache.TakeReady()) {
    const auto work = works.find(key);
    Post(key, agent::WithFiles(work->second, folder, [this](const ObjectName& object) {
           // Its path was good when it was fetched.
           return FileOf(object, cache.NumberOf(object))->substr(folder.size() + 1);
         }));
  }
  for (auto& [key, error] : cache.TakeFailed()) {
    works.erase(key);
    Post(key, std::move(error));
  }
}

Result<store::Store*> ObjectFetcher::Shared::StoreOf(const std::string& name) {
  if (const auto known = opened.find(name); known != opened.end()) return known->second.get();
  for (const JobStore& store : stores) {
    if (store.name != name) continue;
    auto made = s3::OpenStore({store.url, store.region, store.endpoint, store.path_style},
                              stop.get_token());
    if (!made.ok()) return made.error();
    return (opened[name] = std::move(*made)).get();
  }
  return Error{Code::kInvalid, "the job has no store " + Shown(name)};
}

Result<std::string> ObjectFetcher::Shared::FileOf(const ObjectName& object,
                                                  Cache::Number number) const {
  const std::string root = opened.at(object.store)->Location("") + "/";
  if (!object.location.starts_with(root)) {
    return Error{Code::kInvalid, Shown(object.location) + " is not below " + Shown(root)};
  }
  // All of its key, whatever part of that the store's URL names: labels may stand in it.
  const size_t bucket = object.location.find("://") + 3;
  const std::string name = object.location.substr(object.location.find('/', bucket) + 1);
  if (!IsPath(name)) {
    return Error{Code::kInvalid,
                 Shown(object.location) +
                     ": its key cannot be the name of a file: copy the object to another key, or "
                     "leave it out with exclude"};
  }
  return fmt::format("{}/{}/{}", folder, number, name);
}

// With the mutex: room that was given to others must be there before they write.
void ObjectFetcher::Shared::RemoveGone() {
  for (const Cache::Number number : cache.TakeGone()) {
    std::error_code error;
    fs::remove_all(fmt::format("{}/{}", folder, number), error);
    if (error) spdlog::warn("an object's file cannot be removed: {}", error.message());
  }
}

Status ObjectFetcher::Shared::Look(store::Store& store, const ObjectName& object,
                                   std::unique_ptr<store::Object>& found) const {
  const std::string name = object.location.substr(store.Location("").size() + 1);
  Result<std::unique_ptr<store::Object>> there = store.Open(name);
  if (!there.ok() && there.error().code == Code::kNotFound) {
    return Error{Code::kStale, fmt::format("{} is not what was listed: it was deleted. {}",
                                           Shown(object.location), kListedAgain)};
  }
  if (!there.ok()) return there.error();
  const store::Version planned{std::string(object.version)};
  const store::Version& now = (*there)->found().version;
  if (now != planned) {
    return Error{Code::kStale,
                 fmt::format("{} is not what was listed: it {}. {}", Shown(object.location),
                             store.Difference(planned, now), kListedAgain)};
  }
  found = std::move(*there);
  return {};
}

void ObjectFetcher::Shared::End(const Cache::Step& step, const Error& error) {
  objects.erase(step.number);
  const bool later = error.code == Code::kUnavailable || error.code == Code::kTimeout;
  if (later) return cache.Again(step.number);
  cache.Failed(step.number, error);
}

void ObjectFetcher::Work(Shared& shared) {
  const std::stop_token stop = shared.stop.get_token();
  std::unique_lock lock(shared.mutex);
  while (!stop.stop_requested()) {
    const std::optional<Cache::Step> step = shared.cache.Next();
    shared.RemoveGone();
    shared.TellEnds();  // a mini-batch may be too large
    if (!step) {
      shared.changed.wait(lock);
      continue;
    }
    Result<store::Store*> store = shared.StoreOf(step->object.store);
    Result<std::string> path =
        store.ok() ? shared.FileOf(step->object, step->number) : Result<std::string>(store.error());
    Status done = path.ok() ? Status() : Status(path.error());
    const bool fetch = step->kind == Cache::Step::Kind::kFetch;
    std::unique_ptr<store::Object> object;
    if (fetch) object = std::move(shared.objects[step->number]);
    if (done.ok()) {
      lock.unlock();
      done = fetch ? CopyTo(*path, *object) : shared.Look(**store, step->object, object);
      if (fetch && !done.ok()) {
        std::error_code ignored;
        fs::remove_all(fmt::format("{}/{}", shared.folder, step->number), ignored);
      }
      lock.lock();
    }
    if (!done.ok()) {
      const bool pause = done.error().code == Code::kUnavailable && !stop.stop_requested();
      if (pause) {
        spdlog::warn("{}; it is asked again", Shown(done.error().message));
        lock.unlock();
        s3::Pause(kPause, stop);
        lock.lock();
      }
      shared.End(*step, done.error());
    } else if (fetch) {
      shared.objects.erase(step->number);
      shared.cache.Fetched(step->number);
    } else {
      const uint64_t bytes = object->found().size;
      shared.objects[step->number] = std::move(object);
      shared.cache.Looked(step->number, bytes);
      if (!shared.cache.Wanted(step->number)) shared.objects.erase(step->number);
    }
    shared.TellEnds();
    shared.changed.notify_all();
  }
}

ObjectFetcher::ObjectFetcher(EventLoop& loop, std::string folder, std::vector<JobStore> stores,
                             uint64_t bytes, OnEnd on_end)
    : shared_(std::make_shared<Shared>(loop, std::move(folder), std::move(stores), bytes,
                                       std::move(on_end))) {
  std::error_code ignored;  // what stands in the way then is told of by the first fetch
  fs::remove_all(shared_->folder, ignored);
  for (size_t i = 0; i < kThreads; ++i) {
    threads_.emplace_back("objects", [shared = shared_] { Work(*shared); });
  }
}

ObjectFetcher::~ObjectFetcher() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.request_stop();
  }
  shared_->changed.notify_all();
  for (Thread& thread : threads_) thread.join();
  *shared_->alive = false;
  std::error_code ignored;
  fs::remove_all(shared_->folder, ignored);
}

void ObjectFetcher::Want(Key key, std::string work) {
  Result<std::vector<ObjectName>> objects = agent::ObjectsOf(work);
  const std::lock_guard lock(shared_->mutex);
  if (!objects.ok()) return shared_->Post(key, objects.error());
  shared_->works[key] = std::move(work);
  shared_->cache.Want(key, *objects);
  shared_->TellEnds();
  shared_->changed.notify_all();
}

void ObjectFetcher::LetGo(Key key) {
  const std::lock_guard lock(shared_->mutex);
  shared_->works.erase(key);
  shared_->cache.Drop(key);
  std::erase_if(shared_->objects,
                [&](const auto& object) { return !shared_->cache.Wanted(object.first); });
  shared_->changed.notify_all();
}

}  // namespace parallelrun
