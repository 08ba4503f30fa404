#include "agent/objects/side_sender.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/fd.h"
#include "base/join_threads.h"
#include "base/pause.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kSideSenders = 8;
constexpr Duration kGoesOnAgain = seconds(1);  // between two words to a process
constexpr int kMostBegins = 20;                // of one file, whose uploads are gone

// An upload, as far as it is known.
struct OfFile {
  std::string upload;
  std::map<uint32_t, std::string> urls;  // of parts
  Instant ends{};                        // of these
};

bool ComesBack(Code code) { return code == Code::kUnavailable || code == Code::kTimeout; }

}  // namespace

std::string SideFileFolder(const std::string& work_folder, uint32_t node) {
  return (std::filesystem::path(work_folder).parent_path() / fmt::format("side-files-{}", node))
      .string();
}

struct SideSender::Shared {
  struct Attempt {
    uint32_t process = 0;
    job::BatchId mini_batch = 0;
    job::SideList list;
    std::stop_source stop;   // of it alone
    bool forgotten = false;  // on the loop's thread

    std::mutex asks;  // one call for its uploads at a time; guards what follows
    std::vector<OfFile> files;

    // With the mutex of Shared.
    size_t next = 0;  // file that nobody has taken
    size_t sent = 0;
    bool over = false;
    Instant told{};  // that it goes on
    std::optional<Instant> refused;
  };

  Shared(EventLoop& of, Facts the, Tell say)
      : loop(of), facts(std::move(the)), tell(std::move(say)) {}

  EventLoop& loop;  // not used once a stop is asked for
  const Facts facts;
  const Tell tell;
  SystemClock clock;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // on the loop's thread
  std::stop_source stop;                                       // asked for with the mutex

  std::mutex mutex;  // guards what follows; nobody waits for anything with it
  std::condition_variable changed;
  std::deque<std::shared_ptr<Attempt>> attempts;  // of which some files are not taken
  std::map<uint32_t, std::shared_ptr<Attempt>> of_process;
  std::shared_ptr<store::PartPutter> putter;
  std::string trouble;  // the last answer of who is away

  // With the mutex.
  void Post(const std::shared_ptr<Attempt>& attempt, SideFilesAnswer answer, std::string text);
  void End(const std::shared_ptr<Attempt>& attempt, SideFilesAnswer answer, std::string text);

  // Without it.
  void GoesOn(const std::shared_ptr<Attempt>& attempt, const std::string& why);
  Status Send(const std::shared_ptr<Attempt>& attempt, size_t index);
  Status SendParts(const std::shared_ptr<Attempt>& attempt, size_t index, const Fd& file);
  // False: it ends. Else what to do about an error has been done.
  bool Passes(const std::shared_ptr<Attempt>& attempt, const Error& error);
  Result<std::string> UrlOf(Attempt& attempt, size_t index, uint32_t part);
  Status AskFor(Attempt& attempt, size_t index, uint32_t part);
  void Drop(Attempt& attempt, size_t index, bool upload, uint32_t part);
  Result<std::shared_ptr<store::PartPutter>> Putter();
};

void SideSender::Shared::Post(const std::shared_ptr<Attempt>& attempt, SideFilesAnswer answer,
                              std::string text) {
  if (stop.stop_requested()) return;
  loop.Post([this, alive = alive, attempt, answer, text = std::move(text)] {
    if (!*alive || attempt->forgotten) return;
    tell(attempt->process, answer, text);
  });
}

void SideSender::Shared::End(const std::shared_ptr<Attempt>& attempt, SideFilesAnswer answer,
                             std::string text) {
  if (std::exchange(attempt->over, true)) return;
  attempt->stop.request_stop();
  std::erase(attempts, attempt);
  const auto found = of_process.find(attempt->process);
  if (found != of_process.end() && found->second == attempt) of_process.erase(found);
  Post(attempt, answer, std::move(text));
}

void SideSender::Shared::GoesOn(const std::shared_ptr<Attempt>& attempt, const std::string& why) {
  const std::lock_guard lock(mutex);
  trouble = why;
  const Instant now = clock.Now();
  if (attempt->over || now - attempt->told < kGoesOnAgain) return;
  attempt->told = now;
  Post(attempt, SideFilesAnswer::kGoesOn, "");
}

Result<std::shared_ptr<store::PartPutter>> SideSender::Shared::Putter() {
  {
    const std::lock_guard lock(mutex);
    if (putter) return putter;
  }
  Result<std::unique_ptr<store::PartPutter>> opened = facts.open(stop.get_token());
  if (!opened.ok()) return opened.error();
  const std::lock_guard lock(mutex);
  if (!putter) putter = std::move(*opened);
  return putter;
}

// Some at once, of files that have no upload yet.
Status SideSender::Shared::AskFor(Attempt& attempt, size_t index, uint32_t part) {
  job::SideUploadsWanted wanted{attempt.mini_batch, {}};
  std::vector<size_t> asked;
  const auto add = [&](size_t i, uint32_t from) {
    const job::SideFile& file = attempt.list.files[i];
    wanted.files.push_back({file.name, file.bytes, file.sha256, attempt.files[i].upload, from});
    asked.push_back(i);
  };
  add(index, part);
  if (attempt.files[index].upload.empty()) {
    for (size_t i = index + 1; i < attempt.files.size() && asked.size() < job::kMostSideUploads;
         ++i) {
      if (attempt.files[i].upload.empty()) add(i, 1);
    }
  }
  const Instant now = clock.Now();
  const Result<job::SideUploads> uploads = facts.ask(wanted, stop.get_token());
  if (!uploads.ok()) return uploads.error();
  if (uploads->files.size() != asked.size()) {
    return Error{Code::kUnavailable, "the coordinator's answer is of other side files"};
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    OfFile& file = attempt.files[asked[i]];
    file.upload = uploads->files[i].id;
    file.ends = now + seconds(uploads->seconds);
    file.urls.clear();
    uint32_t number = wanted.files[i].part;
    for (const std::string& url : uploads->files[i].urls) file.urls[number++] = url;
  }
  return {};
}

Result<std::string> SideSender::Shared::UrlOf(Attempt& attempt, size_t index, uint32_t part) {
  const std::lock_guard lock(attempt.asks);
  OfFile& file = attempt.files[index];
  const auto known = file.urls.find(part);
  if (known != file.urls.end() && clock.Now() < file.ends) return known->second;
  // One that is gone has no part any more.
  if (part > 1 && file.upload.empty()) return Error{Code::kNotFound, "its upload is gone"};
  if (Status asked = AskFor(attempt, index, part); !asked.ok()) return asked.error();
  const auto now = file.urls.find(part);
  if (now == file.urls.end()) return Error{Code::kUnavailable, "the coordinator gives no URL"};
  return now->second;
}

void SideSender::Shared::Drop(Attempt& attempt, size_t index, bool upload, uint32_t part) {
  const std::lock_guard lock(attempt.asks);
  OfFile& file = attempt.files[index];
  if (upload) file = {};
  file.urls.erase(part);
}

bool SideSender::Shared::Passes(const std::shared_ptr<Attempt>& attempt, const Error& error) {
  if (error.code == Code::kStale) {
    const std::lock_guard lock(mutex);
    const Instant now = clock.Now();
    if (!attempt->refused) attempt->refused = now;
    if (now - *attempt->refused > facts.refused_for) return false;
  } else if (!ComesBack(error.code)) {
    return false;
  }
  GoesOn(attempt, error.code == Code::kStale ? "" : error.message);
  return Pause(facts.pause, attempt->stop.get_token());
}

Status SideSender::Shared::SendParts(const std::shared_ptr<Attempt>& attempt, size_t index,
                                     const Fd& file) {
  job::SideFile& of = attempt->list.files[index];
  const uint64_t part_bytes = job::SidePartBytes(of.bytes);
  const uint32_t parts = job::SidePartsOf(of.bytes);
  const std::stop_token ends = attempt->stop.get_token();
  int begins = 1;
  std::vector<std::string> etags;
  while (etags.size() < parts) {
    if (ends.stop_requested()) return Error{Code::kUnavailable, "stopped"};
    const auto part = static_cast<uint32_t>(etags.size() + 1);
    const Result<std::string> url = UrlOf(*attempt, index, part);
    Result<std::string> etag = url;
    const Result<std::shared_ptr<store::PartPutter>> by = Putter();
    if (!by.ok()) return by.error();
    if (url.ok()) {
      const uint64_t offset = etags.size() * part_bytes;
      etag = (*by)->Put(of.name, *url,
                        {file.get(), offset, std::min(part_bytes, of.bytes - offset)}, ends);
    }
    if (etag.ok()) {
      etags.push_back(std::move(*etag));
      {
        const std::lock_guard lock(mutex);
        attempt->refused.reset();
      }
      GoesOn(attempt, "");
      continue;
    }
    const Error& error = etag.error();
    if (error.code == Code::kNotFound && begins++ < kMostBegins) {
      Drop(*attempt, index, true, part);
      etags.clear();
      if (!Pause(facts.pause, ends)) return error;
    } else if (url.ok() && error.code == Code::kStale) {
      Drop(*attempt, index, false, part);
      if (!Pause(facts.pause, ends)) return error;
    } else if (!Passes(attempt, error)) {
      return error;
    }
  }
  const std::lock_guard lock(attempt->asks);
  of.upload = attempt->files[index].upload;
  of.etags = std::move(etags);
  return {};
}

Status SideSender::Shared::Send(const std::shared_ptr<Attempt>& attempt, size_t index) {
  const job::SideFile& of = attempt->list.files[index];
  const std::string path = facts.folder + "/" + attempt->list.folder + "/" + of.name;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!file.ok() || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != of.bytes) {
    return Error{Code::kInvalid, "it was changed after run() had returned"};
  }
  return SendParts(attempt, index, file);
}

void SideSender::Work(Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (!shared.stop.stop_requested()) {
    if (shared.attempts.empty()) {
      shared.changed.wait(lock);
      continue;
    }
    // The attempts in turn, so that one of many files does not hold up the others.
    const std::shared_ptr<Shared::Attempt> attempt = shared.attempts.front();
    shared.attempts.pop_front();
    const size_t index = attempt->next++;
    if (attempt->next < attempt->list.files.size()) shared.attempts.push_back(attempt);
    lock.unlock();
    const Status sent = shared.Send(attempt, index);
    lock.lock();
    if (attempt->over) continue;
    if (!sent.ok()) {
      const std::string name = Printable(attempt->list.files[index].name, kShown);
      shared.End(attempt, SideFilesAnswer::kNotSent,
                 fmt::format("\"{}\" could not be sent to the store: {}", name,
                             Printable(sent.error().message, kShownLong)));
      continue;
    }
    if (++attempt->sent < attempt->list.files.size()) continue;
    lock.unlock();  // nobody else has anything of it now
    std::string line = job::SideListText(attempt->list);
    lock.lock();
    if (line.size() + 1 < job::kMostSideLine) {
      shared.End(attempt, SideFilesAnswer::kSent, std::move(line));
    } else {
      shared.End(attempt, SideFilesAnswer::kNotSent,
                 fmt::format("the list of its {} files takes {} bytes; less than {} are taken. "
                             "Lower miniBatchSize, or write fewer files.",
                             attempt->list.files.size(), line.size(), job::kMostSideLine));
    }
  }
}

SideSender::SideSender(EventLoop& loop, Facts facts, Tell tell)
    : shared_(std::make_shared<Shared>(loop, std::move(facts), std::move(tell))) {
  for (size_t i = 0; i < kSideSenders; ++i) {
    threads_.emplace_back("side files", [shared = shared_] { Work(*shared); });
  }
}

SideSender::~SideSender() { static_cast<void>(Finish(kSideEndLimit)); }

void SideSender::Send(uint32_t process, job::BatchId mini_batch, job::SideList list) {
  Forget(process);
  auto attempt = std::make_shared<Shared::Attempt>();
  attempt->process = process;
  attempt->mini_batch = mini_batch;
  attempt->list = std::move(list);
  attempt->files.resize(attempt->list.files.size());
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->attempts.push_back(attempt);
    shared_->of_process[process] = std::move(attempt);
  }
  shared_->changed.notify_all();
}

void SideSender::Forget(uint32_t process) {
  const std::lock_guard lock(shared_->mutex);
  const auto found = shared_->of_process.find(process);
  if (found == shared_->of_process.end()) return;
  found->second->over = true;
  found->second->forgotten = true;
  found->second->stop.request_stop();
  std::erase(shared_->attempts, found->second);
  shared_->of_process.erase(found);
}

std::string SideSender::WaitsFor() const {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->trouble.empty() || shared_->of_process.empty()) return "";
  return "side files cannot be sent now: " + Printable(shared_->trouble, kShownLong);
}

bool SideSender::Finish(Duration limit) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop.request_stop();
    for (const auto& [process, attempt] : shared_->of_process) attempt->stop.request_stop();
  }
  shared_->changed.notify_all();
  *shared_->alive = false;
  return JoinOrLeaveAll(threads_, limit);
}

}  // namespace parallelrun::agent
