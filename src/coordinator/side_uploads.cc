#include "coordinator/side_uploads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "base/in_order.h"
#include "output/store/side_upload_notes.h"
#include "store/write_store.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostCalls = 10'000;  // that wait
constexpr size_t kBeginsAtOnce = 16;

struct SideCall {
  uint64_t number = 0;
  job::SideUploadsWanted wanted;
};

// Of a file whose upload is to be begun.
struct ToBegin {
  const SideCall* call = nullptr;
  size_t file = 0;
};

}  // namespace

struct SideUploads::Begins {
  explicit Begins(Options of)
      : options(std::move(of)),
        store(*options.places.store),
        notes(*options.places.notes, store.Location(""), options.mark.run_id, options.epoch) {}

  const Options options;
  store::WriteStore& store;
  output::SideUploadNotes notes;

  std::mutex mutex;
  std::vector<SideCall> calls;  // guarded by it

  std::string NameOf(const job::SideUploadWanted& file) const {
    return options.places.folder + file.name;
  }

  // All calls that wait: one note for all of them.
  std::map<uint64_t, Result<job::SideUploads>> DoAll() {
    std::vector<SideCall> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(calls);
    }
    std::map<uint64_t, Result<job::SideUploads>> ends;
    std::vector<ToBegin> files;
    for (const SideCall& call : taken) {
      job::SideUploads uploads;
      for (size_t i = 0; i < call.wanted.files.size(); ++i) {
        const std::string& known = call.wanted.files[i].upload;
        uploads.files.push_back({known, {}});
        if (known.empty()) files.push_back({&call, i});
      }
      ends.emplace(call.number, std::move(uploads));
    }
    if (const Status noted = Begin(files, ends); !noted.ok()) {
      for (const ToBegin& file : files) ends.at(file.call->number) = noted.error();
    }
    for (const SideCall& call : taken) {
      Result<job::SideUploads>& end = ends.at(call.number);
      if (!end.ok()) continue;
      if (const Status all = Sign(call.wanted, *end); !all.ok()) end = all.error();
    }
    return ends;
  }

  // What cannot be begun is the end of its call; the others' are noted.
  Status Begin(const std::vector<ToBegin>& files,
               std::map<uint64_t, Result<job::SideUploads>>& ends) {
    if (files.empty()) return {};
    std::vector<output::SideUploadNote> begun;
    MakeInOrder(
        Makers{"begin uploads", kBeginsAtOnce}, files.size(),
        [&](size_t i) -> Result<std::string> {
          const job::SideUploadWanted& file = files[i].call->wanted.files[files[i].file];
          const Result<std::unique_ptr<store::Upload>> upload =
              store.Begin(NameOf(file), output::MarksOfSideFile(options.mark, file.sha256));
          return upload.ok() ? Result<std::string>((*upload)->id()) : upload.error();
        },
        [&](size_t i, const Result<std::string>& id) {
          const ToBegin& of = files[i];
          Result<job::SideUploads>& end = ends.at(of.call->number);
          if (!id.ok()) {
            if (end.ok()) end = id.error();
            return true;
          }
          begun.push_back({NameOf(of.call->wanted.files[of.file]), *id});
          if (end.ok()) end->files[of.file].id = *id;
          return true;
        });
    return begun.empty() ? Status() : notes.Add(begun);
  }

  Status Sign(const job::SideUploadsWanted& wanted, job::SideUploads& uploads) {
    Duration life = options.url_life;
    for (size_t i = 0; i < wanted.files.size(); ++i) {
      const job::SideUploadWanted& file = wanted.files[i];
      const uint32_t behind =
          std::min(job::SidePartsOf(file.bytes) + 1, file.part + job::kMostPartUrls);
      for (uint32_t part = file.part; part < behind; ++part) {
        Result<store::SignedUrl> url =
            store.SignPart(NameOf(file), uploads.files[i].id, part, options.url_life);
        if (!url.ok()) return url.error();
        life = std::min(life, url->life);
        uploads.files[i].urls.push_back(std::move(url->url));
      }
    }
    uploads.seconds = static_cast<uint32_t>(std::chrono::floor<seconds>(life).count());
    return {};
  }
};

SideUploads::SideUploads(Options options, EventLoop& loop)
    : loop_(loop),
      begins_(std::make_shared<Begins>(std::move(options))),
      errands_("side files", kMostCalls, Errands::AtEnd::kForgets) {}

void SideUploads::Answer(job::SideUploadsWanted wanted,
                         const std::function<bool(job::BatchId)>& held, Send send) {
  if (known_.size() >= prune_at_) {
    std::erase_if(known_, [&held](const auto& one) { return !held(one.first); });
    prune_at_ = std::max(prune_at_, 2 * known_.size());
  }
  const auto of_batch = known_.find(wanted.mini_batch);
  for (const job::SideUploadWanted& file : wanted.files) {
    if (file.upload.empty()) continue;
    const bool known = of_batch != known_.end() && of_batch->second.contains(file.upload) &&
                       of_batch->second.at(file.upload) == file.name;
    if (!known) {
      return send(Error{Code::kNotFound, "there is no such upload here: it is to be begun anew"});
    }
  }
  const uint64_t number = ++last_;
  Waiting& waits = waiting_[number];
  waits = {wanted.mini_batch, {}, std::move(send)};
  for (const job::SideUploadWanted& file : wanted.files) waits.names.push_back(file.name);
  {
    const std::lock_guard lock(begins_->mutex);
    begins_->calls.push_back({number, std::move(wanted)});
  }
  const bool taken = errands_.Ask([this, alive = alive_, loop = &loop_, begins = begins_] {
    auto ends = std::make_shared<std::map<uint64_t, Result<job::SideUploads>>>(begins->DoAll());
    if (ends->empty()) return;  // the errand before has taken it along
    loop->Post([this, alive, ends] {
      if (!*alive) return;
      for (const auto& [call, uploads] : *ends) End(call, uploads);
    });
  });
  if (!taken) End(number, Error{Code::kUnavailable, "too many calls wait for uploads"});
}

void SideUploads::End(uint64_t number, const Result<job::SideUploads>& uploads) {
  const auto waiting = waiting_.extract(number);
  if (!waiting) return;
  const Waiting& one = waiting.mapped();
  if (!uploads.ok()) {
    spdlog::warn("side files of mini-batch {} cannot be sent now: {}",
                 job::MiniBatchText(one.mini_batch), uploads.error().message);
  } else {
    std::map<std::string, std::string>& known = known_[one.mini_batch];
    for (size_t i = 0; i < uploads->files.size(); ++i) {
      known.try_emplace(uploads->files[i].id, one.names[i]);
    }
  }
  one.send(uploads);
}

}  // namespace parallelrun::coordinator
