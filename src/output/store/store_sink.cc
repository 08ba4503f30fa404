#include "output/store/store_sink.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <charconv>
#include <span>
#include <utility>

#include "base/escape.h"
#include "base/hex.h"
#include "output/output_file.h"
#include "output/output_index.h"
#include "output/store/part_sender.h"
#include "output/store/store_claim.h"
#include "output/store/upload_notes.h"

namespace parallelrun::output {
namespace {

constexpr char kRun[] = "parallelrun-run";
constexpr char kGeneration[] = "parallelrun-generation";
constexpr size_t kRunDigits = 16;
constexpr size_t kIndexBegin = 100;
constexpr int kCompleteTries = 10;  // each of which found another object in the output's place

std::string_view TextOf(const store::Marks& marks, const char* name) {
  const auto found = marks.find(name);
  return found == marks.end() ? std::string_view() : std::string_view(found->second);
}

std::optional<uint32_t> NumberOf(std::string_view digits) {
  uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, number);
  return error == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

Result<std::string> DamageOfObject(
    store::WriteStore& store, const std::string& name, const store::Found& found,
    const job::Published& published, const std::function<void()>& step = [] {}) {
  const std::unique_ptr<store::Object> object = store.Open(name, found);
  return DamageOf(
      found.size, [&](uint64_t offset, std::span<char> to) { return object->ReadAt(offset, to); },
      published, step);
}

// Bytes on their way to an object.
class Sending {
 public:
  Sending(std::unique_ptr<store::Upload> upload, const PartPlan& plan, uint32_t most_parts)
      : upload_(std::move(upload)), sender_(*upload_, plan, most_parts) {}

  store::Upload& upload() { return *upload_; }
  Status Add(std::string_view bytes) { return sender_.Add(bytes); }
  Status Finish() { return sender_.Finish(); }

 private:
  const std::unique_ptr<store::Upload> upload_;
  PartSender sender_;
};

class StoreWriter final : public Writer {
 public:
  StoreWriter(ledger::StateNotes& notes, store::WriteStore& store, const StoreSinkOptions& options,
              std::unique_ptr<store::Upload> rows, std::unique_ptr<store::Upload> index,
              const PartPlan& plan)
      : notes_(notes),
        store_(store),
        options_(options),
        rows_(std::move(rows), plan, store.parts().most),
        index_(std::move(index), {plan.bytes, 1}, store.parts().most) {}

  Status Append(std::string_view bytes) override { return Meaning(rows_.Add(bytes)); }

  Status AppendIndex(std::string_view bytes) override {
    index_digest_.Add(bytes);
    index_written_.bytes += bytes.size();
    return Meaning(index_.Add(bytes));
  }

  Result<Commit> End(const job::Published& written, const Replaceable& replaceable) override {
    for (Sending* sending : {&rows_, &index_}) {
      if (const Status sent = Meaning(sending->Finish()); !sent.ok()) return EndFor(sent.error());
    }
    index_written_.sha256 = index_digest_.Finish();
    if (const Status held = KeepInStore(store_, options_.held); !held.ok()) {
      return EndFor(held.error());
    }
    Result<Commit> commit = PlaceBoth(written, replaceable);
    if (commit.ok() && commit->end != Committed::kStale) LetGo();
    return commit;
  }

 private:
  // kStale: what is there changes while it is read.
  using Judge = std::function<Result<StoreStep>()>;

  Result<Commit> PlaceBoth(const job::Published& written, const Replaceable& replaceable) {
    const Judge judge = [&] { return JudgeRows(written, replaceable); };
    const Result<StoreStep> first = judge();
    if (!first.ok() && first.error().code != Code::kStale) return first.error();
    // No index is replaced for an output that cannot be; and one that is there has its index.
    if (first.ok() && first->kind == StoreStep::Kind::kForeign) {
      return Foreign(options_.name, first->why);
    }
    if (first.ok() && first->kind == StoreStep::Kind::kIsThere) return Commit{};
    Result<Commit> placed =
        Place(index_.upload(), IndexNameOf(options_.name), [this] { return JudgeIndex(); });
    if (!placed.ok() || placed->end != Committed::kDone) return placed;
    return Place(rows_.upload(), options_.name, judge);
  }

  Result<Commit> Place(store::Upload& upload, const std::string& name, const Judge& judge) {
    for (int i = 0; i < kCompleteTries; ++i) {
      const Result<StoreStep> step = judge();
      if (!step.ok() && step.error().code == Code::kStale) continue;  // another one by now
      if (!step.ok()) return step.error();
      if (step->kind == StoreStep::Kind::kIsThere) return Commit{};
      if (step->kind == StoreStep::Kind::kForeign) return Foreign(name, step->why);
      // A successor that is not seen here has yet to end this upload.
      if (const Status newest = options_.newest(); !newest.ok()) return EndFor(newest.error());
      const Status completed = upload.Complete(step->expected);
      if (completed.ok()) return Commit{};
      // What was looked at is another by now, or gone: it is judged anew.
      if (completed.error().code == Code::kStale) continue;
      if (completed.error().code == Code::kNotFound && step->expected) {
        const Result<std::optional<store::Stored>> now = store_.Look(name);
        if (now.ok() && !*now) continue;
      }
      return Unsure(completed.error(), judge);
    }
    return Foreign(name, "appears again and again: end what writes it");
  }

  Result<StoreStep> JudgeRows(const job::Published& written, const Replaceable& replaceable) {
    const Result<std::optional<store::Stored>> there = store_.Look(options_.name);
    if (!there.ok()) return there.error();
    StoreStep step = NextStep(*there, options_.mark, options_.at_start, written, replaceable);
    if (!step.bytes) return step;
    const Result<std::string> damage =
        DamageOfObject(store_, options_.name, (*there)->found, *step.bytes);
    if (!damage.ok()) return damage.error();
    if (!damage->empty()) step.kind = StoreStep::Kind::kForeign;
    return step;
  }

  // An index is replaced, whoever's it is; anything else is not.
  Result<StoreStep> JudgeIndex() {
    const std::string name = IndexNameOf(options_.name);
    const Result<std::optional<store::Stored>> there = store_.Look(name);
    if (!there.ok()) return there.error();
    StoreStep step;
    if (!*there) return step;
    const store::Found& found = (*there)->found;
    const Result<std::string> damage = DamageOfObject(store_, name, found, index_written_);
    if (!damage.ok()) return damage.error();
    if (damage->empty()) {
      step.kind = StoreStep::Kind::kIsThere;
      return step;
    }
    std::string begin(kIndexBegin, '\0');
    const Result<size_t> read = store_.Open(name, found)->ReadAt(0, begin);
    if (!read.ok()) return read.error();
    begin.resize(*read);
    step.expected = found.version;
    if (OutputIndex::IsIndex(begin)) return step;
    step.kind = StoreStep::Kind::kForeign;
    step.why = "is there, and is no index of an output: move it away";
    return step;
  }

  // Nobody knows whether the upload was completed: what is there tells.
  Result<Commit> Unsure(const Error& error, const Judge& judge) {
    if (error.code != Code::kNotFound && error.code != Code::kUnavailable) return error;
    const Result<StoreStep> step = judge();
    if (!step.ok()) return step.error().code == Code::kStale ? error : step.error();
    if (step->kind == StoreStep::Kind::kIsThere) return Commit{};
    return EndFor(Meaning(error).error());
  }

  // An upload that is not there was ended: by a newer epoch, or by somebody who knows nothing of
  // it.
  Status Meaning(Status status) {
    if (status.ok() || status.error().code != Code::kNotFound) return status;
    if (Status newest = options_.newest(); !newest.ok()) return newest;
    return Error{Code::kUnavailable, status.error().message + "; it is sent again"};
  }

  static Result<Commit> EndFor(const Error& error) {
    if (error.code == Code::kStale) return Commit{Committed::kStale, error.message, ""};
    if (error.code == Code::kExists) return Commit{Committed::kForeign, error.message, ""};
    return error;
  }

  Commit Foreign(const std::string& name, const std::string& why) const {
    return {Committed::kForeign, store_.Location(name) + " " + why, ""};
  }

  // Of uploads that were completed there is only the note left.
  void LetGo() {
    const Status ended = EndNotedUploads(notes_, options_.epoch, store_, options_.name);
    if (!ended.ok()) spdlog::warn("an upload may be left behind: {}", ended.error().message);
  }

  ledger::StateNotes& notes_;
  store::WriteStore& store_;
  const StoreSinkOptions& options_;
  Sending rows_;
  Sending index_;
  Sha256 index_digest_;
  job::Published index_written_;  // only its bytes and their digest
};

class StoreSink final : public Sink {
 public:
  StoreSink(ledger::StateNotes& notes, store::WriteStore& store, StoreSinkOptions options)
      : notes_(notes), store_(store), options_(std::move(options)) {}

  std::string Location() const override { return store_.Location(options_.name); }

  Result<std::optional<uint64_t>> Room() override { return std::optional<uint64_t>(); }

  Result<std::unique_ptr<Writer>> Begin(uint64_t bytes) override {
    // Of an earlier call.
    Status ready = EndNotedUploads(notes_, options_.epoch, store_, options_.name);
    if (!ready.ok()) return ready.error();
    const store::Marks marks = MarksOf(options_.mark);
    Result<std::unique_ptr<store::Upload>> rows = store_.Begin(options_.name, marks);
    if (!rows.ok()) return rows.error();
    Result<std::unique_ptr<store::Upload>> index = store_.Begin(IndexNameOf(options_.name), marks);
    if (!index.ok()) {
      End(options_.name, **rows);
      return index.error();
    }
    ready = NoteUploads(notes_, options_.epoch, {Location(), (*rows)->id(), (*index)->id()});
    // In this order: a successor that is not seen here has yet to read the note, and end the
    // upload.
    if (ready.ok()) ready = options_.newest();
    if (!ready.ok()) {
      End(options_.name, **rows);
      End(IndexNameOf(options_.name), **index);
      return ready.error();
    }
    return std::unique_ptr<Writer>(
        std::make_unique<StoreWriter>(notes_, store_, options_, std::move(*rows), std::move(*index),
                                      PlanParts(bytes, store_.parts())));
  }

 private:
  void End(const std::string& name, const store::Upload& upload) {
    const Status ended = store_.EndUpload(name, upload.id());
    if (!ended.ok()) spdlog::warn("an upload is left behind: {}", ended.error().message);
  }

  ledger::StateNotes& notes_;
  store::WriteStore& store_;
  const StoreSinkOptions options_;
};

}  // namespace

store::Marks MarksOf(const OutputMark& mark) {
  return {{kRun, fmt::format("{:0{}x}", mark.run_id, kRunDigits)},
          {kGeneration, std::to_string(mark.generation)}};
}

std::optional<OutputMark> MarkOf(const store::Marks& marks) {
  const std::optional<uint64_t> run = ParseHex(TextOf(marks, kRun));
  const std::optional<uint32_t> generation = NumberOf(TextOf(marks, kGeneration));
  if (!run || !generation) return std::nullopt;
  return OutputMark{*run, *generation};
}

StoreStep NextStep(const std::optional<store::Stored>& there, const OutputMark& own,
                   const store::Expected& at_start, const job::Published& written,
                   const Replaceable& replaceable) {
  if (!there) return {};
  const store::Found& found = there->found;
  StoreStep step;
  step.why = fmt::format(
      "({} bytes, ETag {}) {}", found.size, Printable(found.version.bytes(), kShown),
      replaceable.last ? "is not what this run has published there: move it away"
                       : "has appeared since the run began, and is not this run's: move it "
                         "away");
  const std::optional<OutputMark> mark = MarkOf(there->marks);
  const bool of_this_run = mark && mark->run_id == own.run_id;
  const auto& last = replaceable.last;
  if (of_this_run && mark->generation == own.generation && found.size == written.bytes) {
    step.kind = StoreStep::Kind::kIsThere;
    step.bytes = written;
    return step;
  }
  if (replaceable.whatever && at_start == found.version) {
    step.expected = found.version;
    return step;
  }
  // An earlier generation's, as it was published.
  if (of_this_run && mark->generation < own.generation && last && last->bytes == found.size) {
    step.expected = found.version;
    step.bytes = last;
    return step;
  }
  step.kind = StoreStep::Kind::kForeign;
  return step;
}

Result<std::string> DamageInStore(store::WriteStore& store, const std::string& name,
                                  const job::Published& published, const OutputMark& mark,
                                  const std::function<void()>& step) {
  const Result<std::optional<store::Stored>> there = store.Look(name);
  if (!there.ok()) return there.error();
  if (!*there) return std::string("is not there");
  const bool marked = MarkOf((*there)->marks) == mark;
  const bool sized = (*there)->found.size == published.bytes;
  if (!marked && sized) return std::string("is another object than was published");
  return DamageOfObject(store, name, (*there)->found, published, step);
}

std::unique_ptr<Sink> MakeStoreSink(ledger::StateNotes& notes, store::WriteStore& store,
                                    StoreSinkOptions options) {
  return std::make_unique<StoreSink>(notes, store, std::move(options));
}

}  // namespace parallelrun::output
