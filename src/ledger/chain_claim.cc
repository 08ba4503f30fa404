#include "ledger/chain_claim.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace parallelrun::ledger {
namespace {

constexpr int kLinkTries = 100;  // each lost to a coordinator that starts, or is at work still
constexpr int kQuietTries = 3;   // then it is asked to give way

}  // namespace

ChainClaim::ChainClaim(ChainOptions options, ChainHistory::Locate locate, Ledger::Visitor visit,
                       ChainHistory::Keep keep)
    : options_(std::move(options)),
      locate_(std::move(locate)),
      history_(options_.owner, locate_, std::move(visit), std::move(keep)) {}

ChainClaim::Do ChainClaim::next() const {
  if (error_) return Do::kFailed;
  switch (phase_) {
    case Phase::kListing: return Do::kList;
    case Phase::kMissing:
    case Phase::kNewest:
    case Phase::kOwner:
    case Phase::kReplaying:
    case Phase::kBeyond: return Do::kRead;
    case Phase::kCreating: return put_.next() == LinkPut::Do::kRead ? Do::kRead : Do::kCreate;
    case Phase::kProbing: return Do::kCreate;
    case Phase::kAnnouncing: return Do::kAnnounce;
    case Phase::kOver: break;
  }
  return Do::kClaimed;
}

uint64_t ChainClaim::number() const {
  switch (phase_) {
    case Phase::kMissing: return missing_.back();
    case Phase::kOwner: return 1;
    case Phase::kReplaying: return reads_;
    case Phase::kBeyond:
    case Phase::kCreating:
    case Phase::kProbing: return last_ + 1;
    case Phase::kAnnouncing: return history_.epoch() + 1;
    default: return last_;
  }
}

uint64_t ChainClaim::up_to() const { return phase_ == Phase::kReplaying ? last_ : number(); }

void ChainClaim::Fail(Error error) { error_ = std::move(error); }

void ChainClaim::OnListed(std::vector<uint64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const uint64_t known = history_.number();
  last_ = known;
  missing_.clear();
  for (const uint64_t number : numbers) {
    if (number <= known) continue;
    for (uint64_t lacks = last_ + 1; lacks < number; ++lacks) missing_.push_back(lacks);
    last_ = number;
  }
  std::reverse(missing_.begin(), missing_.end());
  if (last_ == known) return PutClaim();
  if (missing_.empty()) return ReadOn();
  phase_ = Phase::kMissing;
}

// All up to last_ are there.
void ChainClaim::ReadOn() {
  phase_ = history_.last() ? Phase::kReplaying : Phase::kNewest;
  reads_ = history_.number() + 1;
}

void ChainClaim::OnRead(const std::optional<std::string>& there) {
  if (phase_ == Phase::kCreating) {
    put_.OnRead(there, link_);
    if (put_.next() == LinkPut::Do::kDone) {
      phase_ = Phase::kProbing;
    } else if (put_.next() == LinkPut::Do::kGone) {
      Fail(history_.Corrupt(number(), "this link was there, and is not any more"));
    } else {
      // Somebody else has made it since: it belongs to the history.
      TakeNext(*there);
    }
    return;
  }
  if (phase_ == Phase::kBeyond) {
    if (there) return TakeNext(*there);
    return Fail(history_.Corrupt(
        number(), fmt::format("this link is missing: epoch {} was seen before, and the last one "
                              "that is there is {}",
                              options_.seen_epoch, history_.epoch())));
  }
  if (!there) return Fail(history_.Corrupt(number(), "this link is missing"));
  switch (phase_) {
    case Phase::kMissing:  // a list that was late
      missing_.pop_back();
      if (missing_.empty()) ReadOn();
      break;
    case Phase::kNewest: OnNewest(*there); break;
    case Phase::kOwner: {
      const Result<Link> link = DecodeLink(*there);
      if (!link.ok()) return Fail(history_.Corrupt(1, link.error().message));
      if (link->header.kind != LinkKind::kClaim) {
        return Fail(history_.Corrupt(1, "this link does not say whose state it is"));
      }
      if (Status ours = history_.CheckOwner(*link); !ours.ok()) return Fail(ours.error());
      phase_ = Phase::kReplaying;
      break;
    }
    default:
      if (Status added = history_.Add(reads_++, *there); !added.ok()) return Fail(added.error());
      if (history_.number() == last_) PutClaim();
      break;
  }
}

// There may be many more behind it by now, of an epoch that is at work still.
void ChainClaim::TakeNext(const std::string& bytes) {
  ++last_;
  if (Status added = history_.Add(last_, bytes); !added.ok()) return Fail(added.error());
  phase_ = Phase::kListing;
}

// The last link says where the history begins. Where that is the first one of all, it says whose
// it is when it is replayed.
void ChainClaim::OnNewest(const std::string& bytes) {
  const Result<LinkHeader> header = DecodeLinkHeader(bytes);
  if (!header.ok()) {
    return Fail(header.error().code == Code::kInvalid
                    ? header.error().With(locate_(last_))
                    : history_.Corrupt(last_, header.error().message));
  }
  if (header->first == 0 || header->first > last_) {
    return Fail(history_.Corrupt(last_, "its history begins nowhere"));
  }
  reads_ = header->first;
  phase_ = reads_ == 1 ? Phase::kReplaying : Phase::kOwner;
}

void ChainClaim::PutClaim() {
  if (history_.epoch() < options_.seen_epoch) {
    phase_ = Phase::kBeyond;
    return;
  }
  if (++tries_ > kLinkTries) {
    return Fail(
        {Code::kUnavailable, locate_(last_ + 1) + ": other coordinators take each number first"});
  }
  const std::optional<LinkHeader>& last = history_.last();
  LinkHeader header;
  header.log.epoch = history_.epoch() + 1;
  header.log.run_id = last ? last->log.run_id : options_.new_run_id;
  header.log.nonce = options_.nonce;
  header.kind = LinkKind::kClaim;
  header.number = last_ + 1;
  header.first = last ? last->first : 1;
  header.offset = history_.end();
  header.digest = last ? history_.digest() : header.log.run_id;
  link_.assign(kLinkHeaderSize, '\0');
  link_ += options_.owner;
  WriteLinkHeader(header, link_);
  put_ = LinkPut();
  // One that is at work takes each number first, as it needs one request for it, where a claim
  // needs two.
  const bool announces = tries_ > kQuietTries && announced_ <= history_.epoch();
  phase_ = announces ? Phase::kAnnouncing : Phase::kCreating;
}

void ChainClaim::OnAnnounced() {
  announced_ = history_.epoch() + 1;
  phase_ = Phase::kCreating;
}

void ChainClaim::OnCreated(LinkPut::Answer answer) {
  if (phase_ == Phase::kCreating) {
    put_.OnCreated(answer);
    if (put_.next() == LinkPut::Do::kDone) phase_ = Phase::kProbing;
    return;
  }
  if (answer == LinkPut::Answer::kUnknown) return;
  if (answer == LinkPut::Answer::kCreated) {
    return Fail({Code::kInvalid,
                 fmt::format("{} could be made twice: this store ignores If-None-Match, and keeps "
                             "no two coordinators apart. Put the state into another store, or on "
                             "a volume",
                             locate_(number()))});
  }
  const Result<Link> own = DecodeLink(link_);
  history_.AddOwn(*own, link_);
  phase_ = Phase::kOver;
}

}  // namespace parallelrun::ledger
