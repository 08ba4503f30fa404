#include "ledger/chain_ledger.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/in_order.h"
#include "job/record_codec.h"
#include "ledger/chain_copy.h"
#include "ledger/chain_writer.h"
#include "ledger/link_put.h"
#include "ledger/pending.h"

namespace parallelrun::ledger {
namespace {

// So many links are asked for at once. Twice as many are held, and each may have kLinkLimit bytes.
constexpr size_t kLinkReaders = 16;
constexpr size_t kLinkLimit = size_t{4} << 20;

LinkPut::Answer AnswerOf(const Status& made) {
  if (made.ok()) return LinkPut::Answer::kCreated;
  return made.error().code == Code::kStale ? LinkPut::Answer::kExists : LinkPut::Answer::kUnknown;
}

// Reads what the claim wants next, several links at once.
Status ReadWanted(LinkStore& links, ChainClaim& claim) {
  const uint64_t from = claim.number();
  const auto count = static_cast<size_t>(claim.up_to() - from + 1);
  Status failed;
  MakeInOrder(
      Makers{"read ledger", std::min(kLinkReaders, count)}, count,
      [&](size_t i) { return links.Read(from + i); },
      [&](size_t i, const Result<std::optional<std::string>>& there) {
        if (!there.ok()) {
          failed = there.error();
          return false;
        }
        claim.OnRead(*there);
        return claim.next() == ChainClaim::Do::kRead && claim.number() == from + i + 1;
      });
  return failed;
}

// Asks what the claim wants to know, until it is over, or would put its link.
Status ReadChain(LinkStore& links, ChainClaim& claim) {
  for (;;) {
    switch (claim.next()) {
      case ChainClaim::Do::kList: {
        Result<std::vector<uint64_t>> numbers = links.List();
        if (!numbers.ok()) return numbers.error();
        claim.OnListed(std::move(*numbers));
        break;
      }
      case ChainClaim::Do::kRead:
        if (Status read = ReadWanted(links, claim); !read.ok()) return read;
        break;
      case ChainClaim::Do::kAnnounce:
        if (Status said = links.Announce(static_cast<uint32_t>(claim.number())); !said.ok()) {
          return said;
        }
        claim.OnAnnounced();
        break;
      case ChainClaim::Do::kFailed: return claim.error();
      case ChainClaim::Do::kCreate:
      case ChainClaim::Do::kClaimed: return {};
    }
  }
}

// Which bytes of the chain are in which link. Thread-safe.
class LinkIndex {
 public:
  void Add(const LinkHeader& link) {
    const std::lock_guard lock(mutex_);
    if (offsets_.empty()) first_ = link.number;
    offsets_.push_back(link.offset);
    last_ = link.number;
    end_ = link.offset + kLinkHeaderSize + link.length;
  }
  uint64_t last() const {
    const std::lock_guard lock(mutex_);
    return last_;
  }
  struct Span {
    uint64_t number = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  // The link that holds the byte at `offset`; number 0: none does.
  Span At(uint64_t offset) const {
    const std::lock_guard lock(mutex_);
    const auto behind = std::upper_bound(offsets_.begin(), offsets_.end(), offset);
    if (behind == offsets_.begin() || offset >= end_) return {};
    const auto before = static_cast<uint64_t>(behind - offsets_.begin()) - 1;
    return {first_ + before, offsets_[before], behind == offsets_.end() ? end_ : *behind};
  }

 private:
  mutable std::mutex mutex_;  // guards what follows
  std::vector<uint64_t> offsets_;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  uint64_t end_ = 0;
};

// What was read and written of the chain so far.
struct KeptLinks {
  KeptLinks(Files& files, const ChainLedgerOptions& options)
      : copy(files, options.copy_path, options.copy_most) {}
  void Add(const LinkHeader& link, std::string_view bytes) {
    copy.Add(link.offset, bytes);
    index.Add(link);
  }
  ChainCopy copy;
  LinkIndex index;
};

class ChainLedger final : public Ledger {
 public:
  ChainLedger(LinkStore& links, std::unique_ptr<KeptLinks> kept, const ChainHistory& history,
              const LinkPace::Limits& pace)
      : links_(links),
        kept_(std::move(kept)),
        own_(history.last()->log),
        fresh_(!history.has_settings()),
        run_id_(own_.run_id),
        appended_(history.end()),
        pending_(history.end(),
                 Layout{kLinkHeaderSize, 0, std::numeric_limits<size_t>::max(), kLinkLimit}),
        pace_(pace, history.number()),
        writer_(history),
        durable_(history.end()) {}

  uint32_t epoch() const override { return own_.epoch; }
  uint64_t run_id() const override { return run_id_; }
  bool fresh() const override { return fresh_; }
  Status Begin(const std::optional<job::SettingsRecord>& settings,
               std::optional<uint64_t> overwrite_run_id) override;
  Appended Append(const job::Record& record) override {
    return Note(pending_.Add(record), job::TypeOf(record));
  }
  Appended AppendEncoded(std::string_view encoded) override {
    return Note(pending_.AddEncoded(encoded),
                job::RecordType{static_cast<uint8_t>(encoded.front())});
  }
  Duration FlushIn(Instant now) override;
  Result<uint64_t> Flush() override;
  void GiveBackReserve() override {}  // a store has no room that could be kept
  uint64_t durable() const override { return durable_.load(std::memory_order_acquire); }
  uint64_t appended() const override { return appended_; }
  Result<std::string> Read(const job::Place& place) const override;
  Result<uint64_t> Replay(const Visitor& visit) const override {
    return InspectChain(links_, visit);
  }
  Status CheckNewest() const override;
  const std::string& token_path() const override { return no_token_; }

 private:
  Appended Note(const Result<Pending::Added>& added, job::RecordType type);
  Status Put(Round& round);
  Status Fail(Error why);

  LinkStore& links_;
  const std::unique_ptr<KeptLinks> kept_;
  const LogHeader own_;  // as in the claim
  const bool fresh_;
  const std::string no_token_{};

  // Decision thread.
  bool begun_ = false;
  uint64_t run_id_;
  uint64_t appended_;

  Pending pending_;
  LinkPace pace_;  // decision thread

  // The thread that flushes, and Begin.
  ChainWriter writer_;
  std::deque<Round> writing_;    // taken from pending_; stays here while the store is away
  std::optional<Error> failed_;  // for ever
  std::atomic<uint64_t> durable_;
};

Status ChainLedger::Begin(const std::optional<job::SettingsRecord>& settings,
                          std::optional<uint64_t> overwrite_run_id) {
  if (!std::exchange(begun_, true)) {
    if (overwrite_run_id) {
      run_id_ = *overwrite_run_id;
      writer_.BeginAnew(run_id_);
      Append(job::SealRecord{0, 0, run_id_});
    }
    if (settings) Append(*settings);
  }
  const Result<uint64_t> flushed = Flush();
  return flushed.ok() ? Status() : Status(flushed.error());
}

Ledger::Appended ChainLedger::Note(const Result<Pending::Added>& added, job::RecordType type) {
  assert(begun_);
  const Appended at = AppendedAt(own_.epoch, added, type);
  if (added.ok()) appended_ = at.position;
  return at;
}

// What the store has not taken yet waits for nothing more.
Duration ChainLedger::FlushIn(Instant now) {
  const Pending::Waiting waiting = pending_.waiting();
  if (waiting.bytes == 0) return Duration{0};
  const Duration wait = pace_.WaitFor(now, waiting.bytes, waiting.urgent);
  if (wait == Duration{0}) pace_.Count(now);
  return wait;
}

Result<uint64_t> ChainLedger::Flush() {
  if (failed_) return *failed_;
  Result<std::deque<Round>> taken = pending_.Take();
  if (!taken.ok()) return Fail(taken.error()).error();
  for (Round& round : *taken) writing_.push_back(std::move(round));
  // One after the other: a link that came to be there before the one in front of it would leave a
  // hole, if this process died.
  for (; !writing_.empty(); writing_.pop_front()) {
    if (Status put = Put(writing_.front()); !put.ok()) return put.error();
    pending_.Recycle(std::move(writing_.front()));
  }
  return durable();
}

Status ChainLedger::Put(Round& round) {
  if (!writer_.putting()) {
    if (writer_.number() > kMostLinks) {
      return Fail(
          {Code::kInvalid, links_.Location(writer_.number()) + ": no number is left for a link"});
    }
    assert(round.offset == writer_.end());
    writer_.Put(round.groups.front().records, round.bytes);
  }
  const uint64_t number = writer_.number();
  for (;;) {
    switch (writer_.next()) {
      case LinkPut::Do::kCreate: {
        const Status made = links_.Create(number, round.bytes);
        writer_.OnCreated(AnswerOf(made));
        if (writer_.next() == LinkPut::Do::kCreate) return made;
        break;
      }
      case LinkPut::Do::kRead: {
        const Result<std::optional<std::string>> there = links_.Read(number);
        if (!there.ok()) return there.error();
        writer_.OnRead(*there, round.bytes);
        break;
      }
      case LinkPut::Do::kDone:
        writer_.Done(round.bytes);
        kept_->Add(writer_.last(), round.bytes);
        durable_.store(round.end(), std::memory_order_release);
        return {};
      case LinkPut::Do::kTaken:
        return Fail({Code::kStale, fmt::format("{} is another coordinator's: a newer one has taken "
                                               "over from epoch {}",
                                               links_.Location(number), own_.epoch)});
      case LinkPut::Do::kGone:
        return Fail({Code::kCorrupt, fmt::format("{} was there, and is not any more: {}",
                                                 links_.Location(number), kBrokenChainMend)});
    }
  }
}

Status ChainLedger::Fail(Error why) {
  failed_ = std::move(why);
  return *failed_;
}

Result<std::string> ChainLedger::Read(const job::Place& place) const {
  if (place.offset + place.length > durable()) {
    return Error{Code::kUnavailable, fmt::format("{} bytes at {} of the chain are not durable yet",
                                                 place.length, place.offset)};
  }
  if (std::optional<std::string> copied = kept_->copy.Read(place.offset, place.length)) {
    return std::move(*copied);
  }
  const LinkIndex::Span link = kept_->index.At(place.offset);
  if (link.number == 0 || place.offset + place.length > link.end) {
    return Error{Code::kCorrupt, fmt::format("no link holds the {} bytes at {} of the chain",
                                             place.length, place.offset)};
  }
  Result<std::optional<std::string>> bytes =
      links_.ReadPart(link.number, place.offset - link.begin, place.length);
  if (!bytes.ok()) return bytes.error();
  if (!*bytes || (*bytes)->size() < place.length) {
    return Error{Code::kCorrupt, fmt::format("{} is missing, or shorter than it was: {}",
                                             links_.Location(link.number), kBrokenChainMend)};
  }
  return std::move(**bytes);
}

// Numbers are dense: there is no newer epoch as long as nothing, or what is on its way from here,
// has the next one.
Status ChainLedger::CheckNewest() const {
  const uint64_t last = kept_->index.last();
  const Result<bool> own = links_.IsThere(last);
  if (!own.ok()) return own.error();
  if (!*own) {
    return Error{Code::kNotFound, fmt::format("{} is not there any more: {}", links_.Location(last),
                                              kBrokenChainMend)};
  }
  const Result<bool> wanted = links_.IsAnnounced(own_.epoch + 1);
  if (!wanted.ok()) return wanted.error();
  if (*wanted) {
    return Error{Code::kStale,
                 fmt::format("a newer coordinator than epoch {} wants to begin behind "
                             "{}",
                             own_.epoch, links_.Location(last))};
  }
  for (uint64_t next = last + 1;; ++next) {
    const Result<std::optional<std::string>> there = links_.ReadPart(next, 0, kLinkHeaderSize);
    if (!there.ok()) return there.error();
    if (!*there) return {};
    const Result<LinkHeader> header = DecodeLinkHeader(**there);
    if (!header.ok()) return header.error().With(links_.Location(next));
    if (header->log.epoch == own_.epoch && header->log.nonce == own_.nonce) continue;
    return Error{Code::kStale, fmt::format("{} is there: a newer coordinator has taken over from "
                                           "epoch {}",
                                           links_.Location(next), own_.epoch)};
  }
}

}  // namespace

Result<std::unique_ptr<Ledger>> ClaimChain(LinkStore& links, Files& files,
                                           const ChainLedgerOptions& options,
                                           const Ledger::Visitor& visit) {
  auto kept = std::make_unique<KeptLinks>(files, options);
  ChainClaim claim(
      options.chain, [&links](uint64_t number) { return links.Location(number); }, visit,
      [&kept = *kept](const LinkHeader& link, std::string_view bytes) { kept.Add(link, bytes); });
  for (;;) {
    if (Status read = ReadChain(links, claim); !read.ok()) return read.error();
    if (claim.next() == ChainClaim::Do::kClaimed) break;
    const Status made = links.Create(claim.number(), claim.bytes());
    const LinkPut::Answer answer = AnswerOf(made);
    // The store has repeated it for long. Whether the claim is there is the next coordinator's
    // to find out.
    if (answer == LinkPut::Answer::kUnknown) return made.error();
    claim.OnCreated(answer);
  }
  return std::unique_ptr<Ledger>(
      std::make_unique<ChainLedger>(links, std::move(kept), claim.history(), options.pace));
}

Result<uint64_t> InspectChain(LinkStore& links, const Ledger::Visitor& visit) {
  ChainClaim claim(
      {}, [&links](uint64_t number) { return links.Location(number); }, visit,
      [](const LinkHeader&, std::string_view) {});
  if (Status read = ReadChain(links, claim); !read.ok()) return read.error();
  const std::optional<LinkHeader>& last = claim.history().last();
  if (!last) {
    return Error{Code::kNotFound, links.Location(1) + " is not there: this holds no ledger"};
  }
  return last->log.run_id;
}

}  // namespace parallelrun::ledger
