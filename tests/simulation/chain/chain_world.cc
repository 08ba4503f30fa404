#include "tests/simulation/chain/chain_world.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "job/record_codec.h"

namespace parallelrun::simulation {
namespace {

using ledger::ChainClaim;
using ledger::LinkPut;

constexpr uint64_t kTimeOut = 3000;        // ms, as for the others here
constexpr uint64_t kLongest = 20'000;      // that a request travels, or a coordinator stands still
constexpr uint64_t kSettled = 25'000;      // behind the last fault: nothing is on its way any more
constexpr uint64_t kLastStarts = 30'000;   // behind the last fault
constexpr uint64_t kEnds = 300'000;        // behind the last fault
constexpr uint64_t kMostEvents = 100'000;  // of one schedule
constexpr uint64_t kMostInLink = 4;        // records

std::string LocationOf(uint64_t number) { return "link " + std::to_string(number); }

}  // namespace

ChainWorld::ChainWorld(uint64_t seed, bool trace) : trace_(trace), rng_(seed) {
  const uint64_t mischief = rng_.Below(100);
  if (mischief >= 70) mischief_ = Mischief::kHole;
  if (mischief >= 82) mischief_ = Mischief::kTail;
  if (mischief >= 94) mischief_ = Mischief::kIgnores;
  // A link that nobody lists yet, and that is removed, cannot be missed.
  lists_late_ = Chance(250) && mischief_ != Mischief::kHole;
  overwrites_ = Chance(300);
  losses_ = rng_.Below(150);
  lateness_ = rng_.Below(100);
  calm_at_ = 20'000 + rng_.Below(40'000);
  end_ = calm_at_ + kEnds;
}

void ChainWorld::At(uint64_t delay, std::function<void()> event) {
  events_.push({now_ + delay, event_numbers_++,
                std::make_shared<const std::function<void()>>(std::move(event))});
}

void ChainWorld::Trace(const std::string& text) const {
  fmt::print("{:>9.3f}  {}\n", static_cast<double>(now_) / 1000, text);
}

uint64_t ChainWorld::Travels() {
  return Faulty(lateness_) ? 100 + rng_.Below(kLongest) : 5 + rng_.Below(55);
}

ChainOutcome ChainWorld::Run() {
  const uint64_t starts = 1 + rng_.Below(6);
  for (uint64_t i = 0; i < starts; ++i) {
    At(i == 0 ? 0 : rng_.Below(calm_at_), [this] { Start(); });
  }
  if (mischief_ == Mischief::kHole) At(rng_.Below(calm_at_), [this] { DoMischief(); });
  // Later, or a request that is on its way could make a link that nobody can tell from the removed.
  if (mischief_ == Mischief::kTail) At(calm_at_ + kSettled, [this] { DoMischief(); });
  At(calm_at_ + kLastStarts, [this] { Start(); });
  while (!events_.empty() && oracle_.violation().empty()) {
    const Later next = events_.top();
    events_.pop();
    now_ = next.at;
    if (now_ > end_) break;
    if (++outcome_.events > kMostEvents) {
      oracle_.Violated("12 every schedule ends");
      break;
    }
    (*next.event)();
  }
  if (oracle_.violation().empty()) CheckEnd();
  outcome_.violation = oracle_.violation();
  outcome_.claims = oracle_.claims();
  outcome_.acknowledged = oracle_.acknowledged();
  return outcome_;
}

// --- the store

void ChainWorld::Send(Coordinator& of, Question question) {
  const size_t id = of.id;
  const uint64_t asked = ++of.asked;
  of.waits = true;
  of.last = question.ask;
  question.late = of.late;
  const bool refused = Faulty(losses_);
  if (!Faulty(losses_)) {
    At(Travels(), [this, id, asked, refused, question = std::move(question)] {
      const Reply reply = refused ? Reply{} : Act(question);
      if (Faulty(losses_)) return;
      At(Travels(), [this, id, asked, reply] { Hear(id, asked, reply); });
    });
  }
  At(kTimeOut, [this, id, asked] { Hear(id, asked, Reply{}); });
}

ChainWorld::Reply ChainWorld::Act(const Question& question) {
  Reply reply;
  reply.known = true;
  const uint64_t parts[] = {now_, static_cast<uint64_t>(question.ask), question.number,
                            question.bytes.size()};
  for (const uint64_t part : parts) outcome_.hash = (outcome_.hash ^ part) * 1099511628211U;
  switch (question.ask) {
    case Ask::kList: {
      const uint64_t newest = links_.empty() ? 0 : links_.rbegin()->first;
      const uint64_t lacks = lists_late_ && now_ < calm_at_ ? rng_.Below(4) : 0;
      for (const auto& [number, bytes] : links_) {
        if (number + lacks <= newest) reply.numbers.push_back(number);
      }
      break;
    }
    case Ask::kRead:
      if (const auto there = links_.find(question.number); there != links_.end()) {
        reply.there = there->second;
      }
      break;
    case Ask::kCreate:
      if (mischief_ != Mischief::kIgnores && links_.contains(question.number)) {
        reply.answer = LinkPut::Answer::kExists;
        break;
      }
      links_[question.number] = question.bytes;
      if (removed_.contains(question.number)) {
        if (question.late) oracle_.Violated("4 what is missing is corruption, and no end");
        remade_ = true;
      }
      reply.answer = LinkPut::Answer::kCreated;
      if (trace_) Trace(fmt::format("link {} is made", question.number));
      break;
    case Ask::kAnnounce: wanted_.insert(question.number); break;
    case Ask::kLook: reply.wanted = wanted_.contains(question.number); break;
  }
  return reply;
}

void ChainWorld::DoMischief() {
  if (links_.empty()) return;
  uint64_t from = 0;
  uint64_t to = links_.rbegin()->first;
  if (mischief_ == Mischief::kHole) {
    const auto newest = ledger::DecodeLinkHeader(links_.rbegin()->second);
    if (!newest.ok() || newest->first >= to) return;
    from = newest->first + rng_.Below(to - newest->first);
    to = from;
  } else {
    const auto claim = claimed_at_.find(oracle_.epoch());
    if (claim == claimed_at_.end()) return;
    from = claim->second;
  }
  for (uint64_t number = from; number <= to; ++number) {
    links_.erase(number);
    removed_.insert(number);
  }
  damaged_ = true;
  if (trace_) Trace(fmt::format("somebody removes links {} to {}", from, to));
}

// --- coordinators

void ChainWorld::Start() {
  const size_t id = coordinators_.size();
  coordinators_.push_back(std::make_unique<Coordinator>());
  Coordinator& of = *coordinators_.back();
  of.id = id;
  of.late = damaged_;
  ledger::ChainOptions options;
  options.owner = "job";
  options.nonce = rng_.Next();
  options.new_run_id = rng_.Next();
  options.seen_epoch = oracle_.epoch();
  of.claim = std::make_unique<ChainClaim>(
      options, LocationOf,
      [&of](const job::Record& record, const job::Place&, const job::Place&) {
        const auto* seal = std::get_if<job::SealRecord>(&record);
        if (seal != nullptr && seal->predecessor == 0) of.read.clear();
        const auto* one = std::get_if<job::PlanEndRecord>(&record);
        if (one != nullptr) of.read.push_back(one->batches);
        return Status();
      },
      [](const ledger::LinkHeader&, std::string_view) {});
  if (trace_) Trace(fmt::format("coordinator {} starts", id));
  if (now_ < calm_at_ && Chance(300)) {
    At(rng_.Below(kLongest), [this, id] {
      if (now_ < calm_at_) Leave(*coordinators_[id], "is killed");
    });
  }
  for (uint64_t i = now_ < calm_at_ ? rng_.Below(3) : 0; i > 0; --i) {
    At(rng_.Below(kLongest), [this, id] {
      if (now_ >= calm_at_) return;
      coordinators_[id]->frozen = std::min(now_ + rng_.Below(kLongest), calm_at_);
    });
  }
  Step(of);
}

void ChainWorld::Leave(Coordinator& of, const std::string& why) {
  if (of.gone) return;
  of.gone = true;
  if (trace_) Trace(fmt::format("coordinator {} (epoch {}) {}", of.id, of.epoch, why));
}

void ChainWorld::Hear(size_t id, uint64_t asked, const Reply& reply) {
  Coordinator& of = *coordinators_[id];
  if (of.gone || !of.waits || of.asked != asked) return;
  if (now_ < of.frozen) {
    At(of.frozen - now_, [this, id, asked, reply] { Hear(id, asked, reply); });
    return;
  }
  of.waits = false;
  Answered(of, reply);
  Step(of);
}

// What nothing is known of is asked again.
void ChainWorld::Answered(Coordinator& of, const Reply& reply) {
  switch (of.last) {
    case Ask::kList:
      if (reply.known) of.claim->OnListed(reply.numbers);
      break;
    case Ask::kRead:
      if (!reply.known) break;
      if (of.writer) {
        of.writer->OnRead(reply.there, of.link);
      } else {
        of.claim->OnRead(reply.there);
      }
      break;
    case Ask::kCreate:
      if (of.writer) {
        of.writer->OnCreated(reply.answer);
      } else {
        of.claim->OnCreated(reply.answer);
      }
      break;
    case Ask::kAnnounce:
      if (reply.known) of.claim->OnAnnounced();
      break;
    case Ask::kLook:
      of.looked = true;
      if (reply.wanted) Leave(of, "gives way");
      break;
  }
}

void ChainWorld::Step(Coordinator& of) {
  if (of.gone || of.waits) return;
  if (of.writer) {
    StepWriter(of);
  } else {
    StepClaim(of);
  }
}

void ChainWorld::StepClaim(Coordinator& of) {
  ChainClaim& claim = *of.claim;
  switch (claim.next()) {
    case ChainClaim::Do::kList: return Send(of, {Ask::kList});
    case ChainClaim::Do::kRead: return Send(of, {Ask::kRead, claim.number()});
    case ChainClaim::Do::kCreate: return Send(of, {Ask::kCreate, claim.number(), claim.bytes()});
    case ChainClaim::Do::kAnnounce: return Send(of, {Ask::kAnnounce, claim.number()});
    case ChainClaim::Do::kClaimed: return Claimed(of);
    case ChainClaim::Do::kFailed: return Refused(of);
  }
}

void ChainWorld::Claimed(Coordinator& of) {
  const ledger::ChainHistory& history = of.claim->history();
  of.epoch = history.epoch();
  of.run = history.last()->log.run_id;
  if (trace_) {
    Trace(fmt::format("coordinator {} has epoch {} at link {}, {} records", of.id, of.epoch,
                      history.number(), of.read.size()));
  }
  if (mischief_ == Mischief::kIgnores) {
    return oracle_.Violated("5 a store that ignores conditions is refused");
  }
  if (of.late && damaged_ && !remade_) {
    return oracle_.Violated("4 what is missing is corruption, and no end");
  }
  if (!damaged_) oracle_.Claimed(of.epoch, of.run, of.read);
  claimed_at_[of.epoch] = history.number();
  of.writer.emplace(history);
  if (overwrites_ && Chance(150)) {
    of.anew = rng_.Next();
    of.run = *of.anew;
    of.writer->BeginAnew(of.run);
    oracle_.Begins(of.run, of.epoch);
  }
  of.to_write = 5 + rng_.Below(20);
  Append(of);
}

void ChainWorld::Refused(Coordinator& of) {
  const Error why = of.claim->error();
  // Where conditions are ignored links are replaced, too; and a claim that is removed right after
  // it was put looks as if they were.
  const bool spoiled = damaged_ || mischief_ == Mischief::kIgnores;
  const bool expected = why.code == Code::kCorrupt || why.code == Code::kInvalid
                            ? spoiled
                            : why.code == Code::kStale && overwrites_;
  if (!expected) oracle_.Violated("6 a whole chain can be claimed: " + why.message);
  if (why.code == Code::kCorrupt) ++outcome_.damaged;
  Leave(of, "is refused: " + why.message);
}

void ChainWorld::Append(Coordinator& of) {
  if (of.gone || of.to_write == 0) return;
  const size_t id = of.id;
  const auto again = [this, id] { Append(*coordinators_[id]); };
  if (now_ < of.frozen) return At(of.frozen - now_, again);
  for (uint64_t n = 1 + rng_.Below(3); n > 0 && of.to_write > 0; --n, --of.to_write) {
    of.waiting.push_back(oracle_.NewRecord());
  }
  At(rng_.Below(300), again);
  Step(of);
}

void ChainWorld::StepWriter(Coordinator& of) {
  while (!of.gone) {
    if (!of.writer->putting()) {
      if (of.waiting.empty()) return;
      if (!of.looked && Chance(300)) return Send(of, {Ask::kLook, of.epoch + 1});
      PutLink(of);
    }
    const uint64_t number = of.writer->number();
    switch (of.writer->next()) {
      case LinkPut::Do::kCreate: return Send(of, {Ask::kCreate, number, of.link});
      case LinkPut::Do::kRead: return Send(of, {Ask::kRead, number});
      case LinkPut::Do::kDone:
        of.writer->Done(of.link);
        if (!damaged_) oracle_.Acknowledged(of.epoch, of.run, of.in_link);
        of.in_link.clear();
        break;
      case LinkPut::Do::kTaken: ++outcome_.superseded; return Leave(of, "is superseded");
      case LinkPut::Do::kGone:
        if (!damaged_) oracle_.Violated("6 a link that was there stays");
        return Leave(of, "finds a link gone");
    }
  }
}

void ChainWorld::PutLink(Coordinator& of) {
  of.looked = false;
  of.link.assign(ledger::kLinkHeaderSize, '\0');
  uint32_t records = 0;
  if (of.anew) {
    job::EncodeRecord(job::SealRecord{0, 0, *of.anew}, of.link);
    ++records;
    of.anew.reset();
  }
  for (; !of.waiting.empty() && of.in_link.size() < kMostInLink; of.waiting.pop_front()) {
    job::EncodeRecord(job::PlanEndRecord{of.waiting.front(), 0}, of.link);
    of.in_link.push_back(of.waiting.front());
    ++records;
  }
  of.writer->Put(records, of.link);
}

void ChainWorld::CheckEnd() {
  if (damaged_ || mischief_ == Mischief::kIgnores) return;
  const Coordinator& last = *coordinators_.back();
  const bool done = !last.gone && last.writer && last.to_write == 0 && last.waiting.empty() &&
                    !last.writer->putting();
  if (!done) return oracle_.Violated("12 who starts once all faults are over writes all it has");
  std::vector<uint64_t> read;
  ledger::ChainHistory history(
      "job", LocationOf,
      [&read](const job::Record& record, const job::Place&, const job::Place&) {
        const auto* one = std::get_if<job::PlanEndRecord>(&record);
        if (one != nullptr) read.push_back(one->batches);
        return Status();
      },
      [](const ledger::LinkHeader&, std::string_view) {});
  const ledger::LinkHeader newest = last.writer->last();
  for (uint64_t number = newest.first; number <= newest.number; ++number) {
    const auto link = links_.find(number);
    const Status added = link == links_.end() ? Status(history.Corrupt(number, "it is missing"))
                                              : history.Add(number, link->second);
    if (!added.ok())
      return oracle_.Violated("6 a whole chain can be read: " + added.error().message);
  }
  oracle_.Ends(newest.log.run_id, read);
}

}  // namespace parallelrun::simulation
