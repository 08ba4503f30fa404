#include "output/folder_sink.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/small_file.h"
#include "ledger/claim.h"
#include "output/output_file.h"
#include "output/output_index.h"

namespace parallelrun::output {
namespace {

constexpr int kPlaceTries = 100;  // files that appear while others are set aside
constexpr size_t kIndexBegin = 100;

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

Error Appeared(const std::string& path) {
  return {Code::kExists,
          path + " has appeared since the run began, and is not this run's: move it away"};
}

// kExists where PutInPlace would find what it may not replace.
Status CheckForeign(Files& files, const job::Published& written, const Replaceable& replaceable) {
  if (replaceable.whatever || replaceable.last) return {};
  const Result<bool> there = files.Exists(written.path);
  if (!there.ok() || !*there) return there.ok() ? Status() : Status(there.error());
  const Result<std::string> differs = DamageOf(files, written.path, written);
  if (!differs.ok()) return differs.error();
  return differs->empty() ? Status() : Status(Appeared(written.path));
}

// Puts the whole token in the output's place; says where it has set aside what was damaged there.
Result<std::string> PutInPlace(Files& files, const std::string& token,
                               const job::Published& written, const Replaceable& replaceable) {
  const std::string& path = written.path;
  std::string aside;
  for (int i = 0; i < kPlaceTries; ++i) {
    if (replaceable.whatever) {
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
      return Appeared(path);
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

// Whether `path` begins as an index does.
Result<bool> HoldsIndex(const Files& files, const std::string& path) {
  const Result<std::string> begin = ReadBegin(files, path, kIndexBegin);
  return begin.ok() ? Result<bool>(OutputIndex::IsIndex(*begin)) : begin.error();
}

// Puts the whole index in its place, over one that is there; anything else is set aside.
Status PutIndexInPlace(Files& files, const std::string& token, const std::string& path) {
  for (int i = 0; i < kPlaceTries; ++i) {
    const Result<bool> placed = PlaceNew(files, token, path);
    if (!placed.ok()) return placed.error();
    if (*placed) return {};
    const Result<bool> index = HoldsIndex(files, path);
    if (index.ok() && *index) return files.Rename(token, path);
    if (!index.ok() && index.error().code == Code::kNotFound) continue;
    const Result<std::string> aside = SetAside(files, path);
    if (!aside.ok() && aside.error().code != Code::kNotFound) return aside.error();
  }
  return Error{Code::kExists, path + " appears again and again: end what writes it"};
}

// The end that an error means; nothing for one that is only an error.
Result<Commit> EndFor(const Error& error) {
  if (error.code == Code::kStale) return Commit{Committed::kStale, error.message, ""};
  if (error.code == Code::kExists) return Commit{Committed::kForeign, error.message, ""};
  return error;
}

// A token that is being filled.
class TokenFile {
 public:
  static Result<std::unique_ptr<TokenFile>> Open(Files& files, std::string path) {
    Result<std::unique_ptr<File>> file = files.Open(path);
    if (!file.ok()) return file.error().code == Code::kNotFound ? Gone(path) : file.error();
    return std::unique_ptr<TokenFile>(new TokenFile(std::move(path), std::move(*file)));
  }
  const std::string& path() const { return path_; }
  Status Append(std::string_view bytes) {
    const Status written = file_->WriteAt(size_, bytes);
    size_ += bytes.size();
    return written;
  }
  Status Close() {
    Status synced = file_->Sync();
    if (synced.ok()) file_.reset();
    return synced;
  }

 private:
  TokenFile(std::string path, std::unique_ptr<File> file)
      : path_(std::move(path)), file_(std::move(file)) {}

  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
};

class FolderWriter final : public Writer {
 public:
  FolderWriter(Files& files, std::unique_ptr<TokenFile> rows, std::unique_ptr<TokenFile> index,
               const HeldOutput& held)
      : files_(files), rows_(std::move(rows)), index_(std::move(index)), held_(held) {}

  Status Append(std::string_view bytes) override { return rows_->Append(bytes); }
  Status AppendIndex(std::string_view bytes) override { return index_->Append(bytes); }

  Result<Commit> End(const job::Published& written, const Replaceable& replaceable) override {
    if (const Status synced = rows_->Close(); !synced.ok()) return synced.error();
    if (const Status synced = index_->Close(); !synced.ok()) return synced.error();
    const std::string& token = rows_->path();
    // Either of the two, claim and token, would keep a stale coordinator from publishing.
    const Status held = KeepHeld(files_, held_);
    if (!held.ok()) {
      // A successor takes the token first.
      const Result<bool> there = files_.Exists(token);
      return EndFor(there.ok() && !*there ? Gone(token) : held.error());
    }
    // An index that is in front of its output is told from the one before by what it says; an
    // output without its index is nowhere, also after a crash.
    Status placed = CheckForeign(files_, written, replaceable);
    if (placed.ok()) {
      placed = PutIndexInPlace(files_, index_->path(), IndexNameOf(written.path));
    }
    if (placed.ok()) placed = files_.SyncFolder(FolderOf(written.path));
    if (!placed.ok()) return End(placed.error());
    Result<std::string> aside = PutInPlace(files_, token, written, replaceable);
    if (!aside.ok()) return End(aside.error());
    if (const Status s = files_.SyncFolder(FolderOf(written.path)); !s.ok()) return s.error();
    return Commit{Committed::kDone, "", std::move(*aside)};
  }

 private:
  // A token that is not there any more has been taken away.
  Result<Commit> End(const Error& error) const {
    return EndFor(error.code == Code::kNotFound ? Gone(rows_->path()) : error);
  }

  Files& files_;
  const std::unique_ptr<TokenFile> rows_;
  const std::unique_ptr<TokenFile> index_;
  const HeldOutput& held_;
};

class FolderSink final : public Sink {
 public:
  FolderSink(Files& files, std::string path, std::string token, HeldOutput held)
      : files_(files), path_(std::move(path)), token_(std::move(token)), held_(std::move(held)) {}

  std::string Location() const override { return path_; }

  Result<std::optional<uint64_t>> Room() override {
    const Result<uint64_t> room = files_.FreeSpace(FolderOf(path_));
    // Where that fails, writing tells.
    return room.ok() ? std::optional(*room) : std::nullopt;
  }

  Result<std::unique_ptr<Writer>> Begin(uint64_t) override {
    Result<std::unique_ptr<TokenFile>> rows = TokenFile::Open(files_, token_);
    if (!rows.ok()) return rows.error();
    Result<std::unique_ptr<TokenFile>> index =
        TokenFile::Open(files_, ledger::IndexTokenOf(token_));
    if (!index.ok()) return index.error();
    return std::unique_ptr<Writer>(
        std::make_unique<FolderWriter>(files_, std::move(*rows), std::move(*index), held_));
  }

 private:
  Files& files_;
  const std::string path_;
  const std::string token_;
  const HeldOutput held_;
};

}  // namespace

std::unique_ptr<Sink> MakeFolderSink(Files& files, std::string output_path, std::string token,
                                     HeldOutput held) {
  return std::make_unique<FolderSink>(files, std::move(output_path), std::move(token),
                                      std::move(held));
}

}  // namespace parallelrun::output
