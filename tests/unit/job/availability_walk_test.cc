// Availability beside a plain model of it: the same rules by a look at everything, without an
// index. Both hear the same random events, and must say the same after each.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include "job/availability.h"
#include "tests/unit/job/arrows.h"

namespace parallelrun::job {
namespace {

using State = Availability::State;

constexpr Duration kLeaseLasts = seconds(10);
constexpr Duration kSlowAfter = seconds(3);
constexpr Duration kShortened = seconds(2);
constexpr uint32_t kAskers = 4;
constexpr uint32_t kTries = 3;

struct ModelLease {
  Asker of;
  Fence fence;
  WorkInstant deadline;
  bool started = false;
  WorkInstant started_at;
  uint32_t company = 0;
};

class Model {
 public:
  Model(const JobState& state, bool speculation) : state_(state), speculation_(speculation) {}

  struct Batch {
    std::vector<ModelLease> leases;
    uint64_t retry = 0;  // position
    WorkInstant elsewhere{};
  };

  void Durable(uint64_t position) {
    durable_ = std::max(durable_, position);
    for (const auto& [at, end] : chunks) {
      if (at <= durable_) allowed_ = std::max(allowed_, end);
    }
  }
  uint32_t Company(BatchId id) const {
    return state_.batch(id).losses >= 2 ? 1 : state_.companies().Of(id);
  }
  bool Suspect(BatchId id) const { return Company(id) != kAnyCompany; }
  bool Known(BatchId id) const { return IsPiece(id) ? state_.known(id) : id < allowed_; }
  State Of(BatchId id) const {
    const Batch batch = Find(id);
    if (batch.leases.size() == 2) return State::kTwice;
    if (!batch.leases.empty()) return State::kLeased;
    if (!state_.known(id)) return State::kUnknown;
    if (state_.batch(id).state == MiniBatch::State::kSplit) return State::kSplit;
    if (state_.settled(id)) return State::kSettled;
    if (!Known(id)) return State::kPlanned;
    if (batch.retry > durable_ || batch.elsewhere > now) return State::kBlocked;
    return Suspect(id) ? State::kApart : State::kReady;
  }
  std::vector<BatchId> Ids() const {
    std::vector<BatchId> ids;
    for (BatchId id = 0; id < state_.counts().planned + 2; ++id) ids.push_back(id);
    for (const auto& [id, piece] : state_.pieces()) ids.push_back(id);
    return ids;
  }
  std::vector<ModelLease> OfNode(uint32_t node) const {
    std::vector<ModelLease> held;
    for (const auto& [id, batch] : batches_) {
      for (const ModelLease& lease : batch.leases) {
        if (lease.of.node == node) held.push_back(lease);
      }
    }
    return held;
  }
  uint32_t CompanyOn(uint32_t node) const {
    uint32_t least = kAnyCompany;
    for (const ModelLease& lease : OfNode(node)) least = std::min(least, lease.company);
    return least;
  }
  // What Grant gives the node.
  std::optional<BatchId> Next(uint32_t node) const {
    const size_t held = OfNode(node).size();
    const bool suspect = CompanyOn(node) != kAnyCompany;
    using Rank = std::array<uint64_t, 3>;
    std::map<Rank, BatchId> ready;
    std::map<Rank, BatchId> apart;
    for (const BatchId id : Ids()) {
      const State state = Of(id);
      if (state == State::kReady) ready[{IsPiece(id) ? 1U : id < fresh_ ? 0U : 2U, id}] = id;
      if (state == State::kApart) {
        apart[{UINT32_MAX - Company(id), state_.batch(id).losses, id}] = id;
      }
    }
    if (!suspect && !ready.empty()) return ready.begin()->second;
    if (apart.empty()) return std::nullopt;
    const BatchId id = apart.begin()->second;
    const bool fits = suspect ? held < std::min(Company(id), CompanyOn(node)) : held == 0;
    return fits ? std::optional(id) : std::nullopt;
  }
  std::optional<BatchId> NextSecond(uint32_t node) const {
    if (!speculation_ || CompanyOn(node) != kAnyCompany) return std::nullopt;
    std::optional<std::pair<WorkInstant, BatchId>> slowest;
    for (const auto& [id, batch] : batches_) {
      if (batch.leases.size() != 1 || IsPiece(id) || Suspect(id)) continue;
      const ModelLease& lease = batch.leases[0];
      if (!lease.started || lease.started_at >= now - kSlowAfter || lease.of.node == node) continue;
      if (state_.batch(id).losses > 0 || state_.batch(id).failed_attempts + 1 >= kTries) continue;
      const std::pair mine(lease.started_at, id);
      if (!slowest || mine < *slowest) slowest = mine;
    }
    return slowest ? std::optional(slowest->second) : std::nullopt;
  }
  bool Adoptable(const Asker& asker, BatchId id) const {
    if (!Known(id) || state_.settled(id)) return false;
    const auto leases = Find(id).leases;
    const bool own = !leases.empty() && leases[0].of.node == asker.node &&
                     leases[0].of.incarnation != asker.incarnation;
    if (!leases.empty() && !own) return false;
    const size_t others = OfNode(asker.node).size() - (own ? 1 : 0);
    return others < std::min(Company(id), CompanyOn(asker.node));
  }
  void Add(const Asker& asker, const LeaseName& name) {
    batches_[name.id].leases.push_back(
        {asker, name.fence, now + kLeaseLasts, false, now, Company(name.id)});
  }
  void NotFresh(BatchId id) { fresh_ = IsPiece(id) ? fresh_ : std::max(fresh_, id + 1); }
  void Adopt(const Asker& asker, const LeaseName& name, bool started) {
    auto& leases = batches_[name.id].leases;
    if (!leases.empty()) leases.erase(leases.begin());
    leases.push_back({asker, name.fence, now + kLeaseLasts, started, now, Company(name.id)});
  }
  void End(const LeaseName& name) {
    std::erase_if(batches_[name.id].leases,
                  [&](const ModelLease& lease) { return lease.fence == name.fence; });
  }
  void Settle(BatchId id) { batches_[id] = {}; }
  std::set<LeaseName> Expire() {
    std::set<LeaseName> gone;
    for (auto& [id, batch] : batches_) {
      for (const ModelLease& lease : batch.leases) {
        if (lease.deadline <= now) gone.insert({id, lease.fence});
      }
    }
    for (const LeaseName& name : gone) End(name);
    return gone;
  }
  std::vector<std::pair<LeaseName, Asker>> Live() const {
    std::vector<std::pair<LeaseName, Asker>> live;
    for (const auto& [id, batch] : batches_) {
      for (const ModelLease& lease : batch.leases) live.push_back({{id, lease.fence}, lease.of});
    }
    return live;
  }
  Batch Find(BatchId id) const {
    const auto found = batches_.find(id);
    return found == batches_.end() ? Batch() : found->second;
  }
  ModelLease& Lease(const LeaseName& name) {
    auto& leases = batches_[name.id].leases;
    return *std::find_if(leases.begin(), leases.end(),
                         [&](const auto& lease) { return lease.fence == name.fence; });
  }
  Batch& At(BatchId id) { return batches_[id]; }

  WorkInstant now{seconds(1000)};
  std::vector<std::pair<uint64_t, BatchId>> chunks;

 private:
  const JobState& state_;
  const bool speculation_;
  std::map<BatchId, Batch> batches_;
  uint64_t durable_ = 0;
  BatchId allowed_ = 0;
  BatchId fresh_ = 0;
};

class RandomWalk {
 public:
  RandomWalk(uint32_t seed, bool speculation)
      : random_(seed),
        speculation_(speculation),
        model_(state_, speculation),
        made_(state_, 1, {kLeaseLasts, kTries, speculation}, true, model_.now) {
    for (const Arrow& arrow : DrawnArrows()) drawn_.insert(arrow.from + arrow.to);
  }

  void Step() {
    std::map<BatchId, State> before;
    for (const BatchId id : model_.Ids()) before[id] = made_.Of(id).state;
    Event();
    for (const BatchId id : model_.Ids()) {
      const State state = made_.Of(id).state;
      ASSERT_EQ(NameOf(state), NameOf(model_.Of(id))) << MiniBatchText(id) << " after " << event_;
      const auto was = before.find(id);
      State from = was == before.end() ? State::kUnknown : was->second;
      if (from == state) continue;
      if (from == State::kTwice && state != State::kLeased && state != State::kSettled) {
        from = State::kLeased;  // both leases ended at once
      }
      ASSERT_TRUE(drawn_.contains(NameOf(from) + NameOf(state)))
          << "not drawn: " << NameOf(from) << " to " << NameOf(state) << ", " << event_;
      ++seen_[NameOf(from) + NameOf(state)];
    }
    for (uint32_t node = 0; node < kAskers; ++node) {
      ASSERT_EQ(made_.HeldCount(node), model_.OfNode(node).size()) << event_;
      ASSERT_EQ(made_.Available(node) > 0, model_.Next(node).has_value()) << event_;
    }
    ASSERT_EQ(made_.Check(), "") << event_;
  }
  const std::map<std::string, int>& seen() const { return seen_; }

 private:
  uint32_t Draw(size_t below) {
    return std::uniform_int_distribution<uint32_t>(0, static_cast<uint32_t>(below) - 1)(random_);
  }
  Asker AnyNode() {
    const uint32_t node = Draw(kAskers);
    return {node, {1, node * 100 + registered_[node]}, 1};
  }
  BatchId AnyId() {
    const auto ids = model_.Ids();
    return ids[Draw(ids.size())];
  }
  void Apply(const Record& record) { ASSERT_TRUE(state_.Apply(record, {}, {}).ok()) << event_; }

  void Event() {
    switch (Draw(16)) {
      case 0: return Plan();
      case 1: return BecomeDurable();
      case 2: return Pass();
      case 3: return Block();
      case 4: return Blame();
      case 5: return Adopt(AnyNode());
      case 6: return Shorten();
      case 7: ++registered_[Draw(kAskers)]; return;
      case 8: return GrantSecond(AnyNode());
      case 9: return FailUnleased();
      case 10:
      case 11:
      case 12: return Grant(AnyNode());
      default: return Live();
    }
  }
  void Plan() {
    event_ = "a chunk";
    if (state_.counts().planned >= 24) return;
    TabularChunk content;
    content.path = "/in/a.csv";
    for (uint32_t i = 0; i < 3; ++i) content.slices.push_back({i * 10ULL, 10, 1 + i});
    PlanChunkRecord chunk;
    chunk.first = state_.counts().planned;
    chunk.first_item = state_.counts().items_planned;
    chunk.content = content;
    Apply(chunk);
    made_.Plan(++position_, state_.counts().planned);
    model_.chunks.emplace_back(position_, state_.counts().planned);
  }
  void BecomeDurable() {
    event_ = "durable";
    if (durable_ == position_) return;
    durable_ += 1 + Draw(position_ - durable_);
    made_.Durable(durable_);
    model_.Durable(durable_);
  }
  void Pass() {
    event_ = "time";
    model_.now += milliseconds(Draw(4000));
    std::set<LeaseName> gone;
    for (const Held& held : made_.Expire(model_.now)) gone.insert({held.id, held.lease.fence});
    ASSERT_EQ(gone, model_.Expire());
    made_.TimePassed(model_.now);
  }
  void Block() {
    event_ = "a block";
    const BatchId id = AnyId();
    const WorkInstant until = model_.now + milliseconds(1 + Draw(9000));
    made_.BlockUntil(id, until);
    if (speculation_ || (state_.known(id) && state_.settled(id))) return;
    model_.At(id).elsewhere = std::max(model_.At(id).elsewhere, until);
  }
  void Blame() {
    event_ = "blame";
    const BatchId id = AnyId();
    if (!model_.Known(id) || state_.settled(id)) return;
    if (Draw(2) == 0) {
      Apply(LostRecord{id, {}});
    } else {
      Apply(CompanyRecord{1 + Draw(4), {id}});
    }
    made_.Reconsider(id);
    for (const ModelLease& lease : model_.Find(id).leases) {
      if (Draw(2) == 0) End({id, lease.fence});
    }
  }
  void Adopt(const Asker& asker) {
    event_ = "an adoption";
    const BatchId id = AnyId();
    const bool started = Draw(2) == 0;
    const bool adoptable = model_.Adoptable(asker, id);
    const auto fence = made_.Adopt(asker, id, started, model_.now);
    ASSERT_EQ(fence.has_value(), adoptable) << MiniBatchText(id);
    if (fence) model_.Adopt(asker, {id, *fence}, started);
  }
  void Shorten() {
    event_ = "a broken connection";
    const uint32_t node = Draw(kAskers);
    made_.Shorten(node, model_.now, kShortened);
    for (const auto& [name, asker] : model_.Live()) {
      WorkInstant& deadline = model_.Lease(name).deadline;
      if (asker.node == node) deadline = std::min(deadline, model_.now + kShortened);
    }
  }
  void Grant(const Asker& asker) {
    event_ = "a grant";
    const auto next = model_.Next(asker.node);
    const auto lease = made_.Grant(asker, model_.now);
    ASSERT_EQ(lease.has_value(), next.has_value());
    if (!lease) return;
    ASSERT_EQ(lease->id, *next);
    ASSERT_GT(lease->fence, last_);
    last_ = lease->fence;
    const bool suspect = model_.Suspect(lease->id);
    model_.Add(asker, *lease);
    if (!suspect) model_.NotFresh(lease->id);
  }
  void GrantSecond(const Asker& asker) {
    event_ = "a second lease";
    const auto next = model_.NextSecond(asker.node);
    const auto lease = made_.GrantSecond(asker, kSlowAfter, model_.now);
    ASSERT_EQ(lease.has_value(), next.has_value());
    if (!lease) return;
    ASSERT_EQ(lease->id, *next);
    model_.Add(asker, *lease);
  }
  // Of something that is leased.
  void Live() {
    const auto live = model_.Live();
    if (live.empty()) return;
    const auto& [name, asker] = live[Draw(live.size())];
    switch (Draw(8)) {
      case 0: event_ = "an end"; return End(name);
      case 1: event_ = "a result"; return Succeed(name.id);
      case 2:
      case 3: event_ = "a failure"; return Fail(name);
      default: break;
    }
    event_ = "a renewal";
    const bool started = Draw(2) == 0;
    ASSERT_TRUE(made_.Renew(asker.incarnation, {name.id, name.fence, started}, model_.now));
    ModelLease& lease = model_.Lease(name);
    lease.deadline = model_.now + kLeaseLasts;
    if (started && !lease.started) lease.started_at = model_.now;
    lease.started = lease.started || started;
  }
  void End(const LeaseName& name) {
    made_.End(name);
    model_.End(name);
  }
  void Succeed(BatchId id) {
    ResultRecord result;
    result.id = id;
    Apply(result);
    made_.Settle(id);
    model_.Settle(id);
  }
  void FailUnleased() {
    event_ = "a failure after its lease";
    const BatchId id = AnyId();
    const State state = model_.Of(id);
    if (state == State::kReady || state == State::kApart || state == State::kBlocked)
      Fail({id, {}});
  }
  void Fail(const LeaseName& name) {
    FailedRecord failed;
    failed.id = name.id;
    failed.kind = "Exception";
    const bool again = state_.batch(name.id).failed_attempts + 1 < kTries ||
                       made_.LiveBeside(name) || model_.Find(name.id).leases.size() == 2;
    const bool splits = state_.batch(name.id).items > 1;
    failed.end = again ? AttemptEnd::kAgain : splits ? AttemptEnd::kSplit : AttemptEnd::kFinal;
    Apply(failed);
    ++position_;
    if (again) {
      made_.Retry(name, position_);
      model_.End(name);
      if (!speculation_) model_.At(name.id).retry = position_;
      return;
    }
    if (splits) {
      made_.Split(name.id, position_);
      model_.Settle(name.id);
      if (speculation_) return;
      model_.At(FirstPiece(name.id)).retry = position_;
      model_.At(SecondPiece(name.id)).retry = position_;
      return;
    }
    made_.Settle(name.id);
    model_.Settle(name.id);
  }

  std::mt19937 random_;
  const bool speculation_;
  JobState state_;
  Model model_;
  Availability made_;
  std::set<std::string> drawn_;
  std::map<std::string, int> seen_;
  std::map<uint32_t, uint32_t> registered_;
  std::string event_;
  uint64_t position_ = 0;
  uint64_t durable_ = 0;
  Fence last_;
};

TEST(AvailabilityWalk, SaysWhatAPlainModelSays) {
  std::map<std::string, int> seen;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomWalk walk(seed, seed % 2 == 0);
    for (int step = 0; step < 400; ++step) {
      walk.Step();
      if (::testing::Test::HasFatalFailure()) return;
    }
    for (const auto& [pair, count] : walk.seen()) seen[pair] += count;
  }
  // It comes to nearly every arrow; those of an epoch's begin are walked elsewhere.
  for (const Arrow& arrow : DrawnArrows()) {
    if (arrow.from == "[*]" || arrow.from == arrow.to) continue;
    EXPECT_GT(seen[arrow.from + arrow.to], 0) << arrow.from << " --> " << arrow.to;
  }
}

}  // namespace
}  // namespace parallelrun::job
