#include "coordinator/folder_sink.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/mutation.h"
#include "coordinator/output_file.h"

namespace parallelrun {
namespace {

constexpr int kPlaceTries = 100;  // files that appear while others are set aside

Error Gone(const std::string& token) {
  return {Code::kStale, token + " is gone: a newer coordinator took over"};
}

// Out of the way of the output, under a name that is free.
Result<std::string> SetAside(Files& files, const std::string& path) {
  for (int i = 1; i <= kPlaceTries; ++i) {
    const std::string aside = fmt::format("{}.set-aside-{}", path, i);
    const Result<bool> renamed = files.RenameNew(path, aside);
    if (renamed.ok() && *renamed) return aside;
    if (!renamed.ok() && renamed.error().code == Code::kExists) continue;
    if (!renamed.ok()) return renamed.error();
    const Result<bool> there = files.Exists(aside);
    if (!there.ok()) return there.error();
    if (*there) continue;
    const Status moved = files.Rename(path, aside);
    if (!moved.ok()) return moved.error();
    return aside;
  }
  return Error{Code::kExists, fmt::format("{} and {} copies that were set aside are there: move "
                                          "them away",
                                          path, kPlaceTries)};
}

// One try to rename the token onto the output's name. False: something is there.
Result<bool> PlaceNew(Files& files, const std::string& token, const std::string& path) {
  const Result<bool> renamed = files.RenameNew(token, path);
  if (!renamed.ok() && renamed.error().code == Code::kExists) return false;
  if (!renamed.ok() || *renamed) return renamed;
  // The file system cannot tell at one go: what appears between these two is lost.
  const Result<bool> there = files.Exists(path);
  if (!there.ok() || *there) return there.ok() ? Result<bool>(false) : there;
  const Status placed = files.Rename(token, path);
  return placed.ok() ? Result<bool>(true) : placed.error();
}

// Puts the whole token in the output's place; says where it has set aside what was damaged there.
Result<std::string> PutInPlace(Files& files, const std::string& token, const Published& written,
                               const Replaceable& replaceable) {
  const std::string& path = written.path;
  std::string aside;
  for (int i = 0; i < kPlaceTries; ++i) {
    if (replaceable.whatever || PARALLELRUN_MUTATED(kPublishUnchecked)) {
      const Status placed = files.Rename(token, path);
      return placed.ok() ? Result<std::string>(aside) : placed.error();
    }
    const Result<bool> placed = PlaceNew(files, token, path);
    if (!placed.ok()) return placed.error();
    if (*placed) return aside;
    // What an epoch of this run has put there before it could record that.
    const Result<std::string> differs = DamageOf(files, path, written);
    if (!differs.ok()) return differs.error();
    if (differs->empty()) {
      if (const Status removed = files.Remove(token); !removed.ok()) return removed.error();
      return aside;
    }
    if (!replaceable.last) {
      return Error{Code::kExists,
                   path + " has appeared since the run began, and is not this run's: move it away"};
    }
    const Result<std::string> damage = DamageOf(files, path, *replaceable.last);
    if (!damage.ok()) return damage.error();
    if (damage->empty()) {
      const Status replaced = files.Rename(token, path);
      return replaced.ok() ? Result<std::string>(aside) : replaced.error();
    }
    Result<std::string> set_aside = SetAside(files, path);
    if (!set_aside.ok() && set_aside.error().code == Code::kNotFound) continue;
    if (!set_aside.ok()) return set_aside;
    aside = std::move(*set_aside);
  }
  return Error{Code::kExists, path + " appears again and again: end what writes it"};
}

// The end that an error means; nothing for one that is only an error.
Result<Commit> EndFor(const Error& error) {
  if (error.code == Code::kStale) return Commit{Committed::kStale, error.message, ""};
  if (error.code == Code::kExists) return Commit{Committed::kForeign, error.message, ""};
  return error;
}

class FolderWriter final : public Writer {
 public:
  FolderWriter(Files& files, std::string token, std::unique_ptr<File> file, const HeldOutput& held)
      : files_(files), token_(std::move(token)), file_(std::move(file)), held_(held) {}

  Status Append(std::string_view bytes) override {
    const Status written = file_->WriteAt(size_, bytes);
    size_ += bytes.size();
    return written;
  }

  Result<Commit> End(const Published& written, const Replaceable& replaceable) override {
    if (const Status synced = file_->Sync(); !synced.ok()) return synced.error();
    file_.reset();
    // Either of the two, claim and token, would keep a stale coordinator from publishing.
    const Status held =
        PARALLELRUN_MUTATED(kRenameWithoutToken) ? Status() : KeepHeld(files_, held_);
    if (!held.ok()) {
      // A successor takes the token first.
      const Result<bool> there = files_.Exists(token_);
      return EndFor(there.ok() && !*there ? Gone(token_) : held.error());
    }
    Result<std::string> aside = PutInPlace(files_, token_, written, replaceable);
    if (!aside.ok()) {
      return EndFor(aside.error().code == Code::kNotFound ? Gone(token_) : aside.error());
    }
    if (const Status s = files_.SyncFolder(FolderOf(written.path)); !s.ok()) return s.error();
    return Commit{Committed::kDone, "", std::move(*aside)};
  }

 private:
  Files& files_;
  const std::string token_;
  std::unique_ptr<File> file_;
  const HeldOutput& held_;
  uint64_t size_ = 0;
};

class FolderSink final : public Sink {
 public:
  FolderSink(Files& files, std::string path, HeldOutput held)
      : files_(files), path_(std::move(path)), held_(std::move(held)) {}

  std::string Location() const override { return path_; }

  Result<std::optional<uint64_t>> Room() override {
    const Result<uint64_t> room = files_.FreeSpace(FolderOf(path_));
    // Where that fails, writing tells.
    return room.ok() ? std::optional(*room) : std::nullopt;
  }

  Result<std::unique_ptr<Writer>> Begin(const std::string& token) override {
    if (PARALLELRUN_MUTATED(kRenameWithoutToken)) (void)files_.CreateExclusive(token).ok();
    Result<std::unique_ptr<File>> file = files_.Open(token);
    if (!file.ok()) return file.error().code == Code::kNotFound ? Gone(token) : file.error();
    return std::unique_ptr<Writer>(
        std::make_unique<FolderWriter>(files_, token, std::move(*file), held_));
  }

 private:
  Files& files_;
  const std::string path_;
  const HeldOutput held_;
};

}  // namespace

std::unique_ptr<Sink> MakeFolderSink(Files& files, std::string output_path, HeldOutput held) {
  return std::make_unique<FolderSink>(files, std::move(output_path), std::move(held));
}

}  // namespace parallelrun
