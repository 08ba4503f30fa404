// Each arrow of docs/architecture.md, "Availability", walked by its name.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "job/availability.h"
#include "tests/unit/job/arrows.h"

namespace parallelrun::job {
namespace {

const WorkInstant kBegun{seconds(1000)};
constexpr Duration kLasts = seconds(10);
const Asker kZero{0, {2, 1}};
const Asker kOne{1, {2, 2}};

// Mini-batch 0 of three, each of two items; 1 and 2 keep the nodes company.
class Walk {
 public:
  explicit Walk(bool speculation, bool planned = true) : rules_{kLasts, 3, speculation} {
    if (planned) Plan();
  }
  void Plan() {
    TabularChunk content;
    content.path = "/in/a.csv";
    for (uint32_t i = 0; i < 3; ++i) content.slices.push_back({i * 10ULL, 10, 2});
    PlanChunkRecord chunk;
    chunk.content = content;
    Apply(chunk);
    if (made_) made_->Plan(++position_, 3);
  }
  Availability& of() {
    if (!made_) made_ = std::make_unique<Availability>(state, 2, rules_, true, kBegun);
    return *made_;
  }
  void Apply(const Record& record) { ASSERT_TRUE(state.Apply(record, {}, {}).ok()); }
  void Durable() { of().Durable(position_); }

  LeaseName Grant(const Asker& asker = kZero) { return *of().Grant(asker, kBegun); }
  void Begin(const LeaseName& name) {
    ASSERT_TRUE(of().Renew(kZero.incarnation, {name.id, name.fence, true}, kBegun));
  }
  void Twice() {
    first = Grant();
    Begin(first);
    second = *of().GrantSecond(kOne, seconds(1), kBegun + seconds(2));
  }
  void Lose(int times) {
    for (int i = 0; i < times; ++i) Apply(LostRecord{0, {}});
    if (made_) made_->Reconsider(0);
  }
  uint64_t Fail(AttemptEnd end, BatchId id = 0) {
    FailedRecord failed;
    failed.id = id;
    failed.end = end;
    failed.kind = "Exception";
    Apply(failed);
    return ++position_;
  }
  void Succeed(BatchId id = 0) {
    ResultRecord result;
    result.id = id;
    Apply(result);
    of().Settle(id);
  }
  void Elsewhere() { of().BlockUntil(0, kBegun + seconds(5)); }

  JobState state;
  BatchId looked_at = 0;  // by StateOf
  LeaseName first;
  LeaseName second;

 private:
  const LeaseRules rules_;
  std::unique_ptr<Availability> made_;
  uint64_t position_ = 0;
};

// What goes before, and what the arrow is named for.
struct Steps {
  bool speculation = false;
  std::function<void(Walk&)> before;
  std::function<void(Walk&)> event;
};

const std::function<void(Walk&)> kNothing = [](Walk&) {};
const std::function<void(Walk&)> kGranted = [](Walk& w) { w.first = w.Grant(); };
const std::function<void(Walk&)> kSuspect = [](Walk& w) { w.Lose(2); };
const std::function<void(Walk&)> kElsewhere = [](Walk& w) { w.Elsewhere(); };
const std::function<void(Walk&)> kSuspectElsewhere = [](Walk& w) { w.Lose(2), w.Elsewhere(); };
const std::function<void(Walk&)> kTimePasses = [](Walk& w) {
  w.of().TimePassed(kBegun + seconds(5));
};
const std::function<void(Walk&)> kTwice = [](Walk& w) { w.Twice(); };
const std::function<void(Walk&)> kFails = [](Walk& w) {
  w.Fail(AttemptEnd::kFinal), w.of().Settle(0);
};
const std::function<void(Walk&)> kAdopts = [](Walk& w) { w.of().Adopt(kZero, 0, true, kBegun); };
const std::function<void(Walk&)> kEnds = [](Walk& w) { w.of().End(w.first); };
const std::function<void(Walk&)> kRetries = [](Walk& w) {
  w.of().Retry(w.first, w.Fail(AttemptEnd::kAgain));
};
const std::function<void(Walk&)> kSplits = [](Walk& w) {
  w.of().Split(0, w.Fail(AttemptEnd::kSplit));
};
const std::function<void(Walk&)> kSplitsAndLooks = [](Walk& w) {
  w.of().Split(0, w.Fail(AttemptEnd::kSplit));
  w.looked_at = FirstPiece(0);
};

const std::map<std::string, Steps> kSteps = {
    {"granted", {false, kNothing, kGranted}},
    {"granted, alone or in small company",
     {false, kSuspect,
      [](Walk& w) {
        w.Grant(), w.Grant();
        EXPECT_FALSE(w.of().Grant(kZero, kBegun));
        EXPECT_EQ(w.Grant(kOne).id, 0U);
      }}},
    {"adopted", {false, kNothing, kAdopts}},
    {"suspect adopted", {false, kSuspect, kAdopts}},
    {"adopted under a block", {false, kElsewhere, kAdopts}},
    {"renewed",
     {false, kGranted,
      [](Walk& w) {
        w.of().Renew(kZero.incarnation, {0, w.first.fence, true}, kBegun + seconds(1));
        EXPECT_EQ(w.of().Of(0).lease->deadline, kBegun + seconds(11));
      }}},
    {"connection broke",
     {true, kGranted,
      [](Walk& w) {
        w.of().Shorten(0, kBegun, seconds(2));
        EXPECT_EQ(w.of().Of(0).lease->deadline, kBegun + seconds(2));
      }}},
    {"adopted after registering again",
     {false, kGranted,
      [](Walk& w) {
        EXPECT_TRUE(w.of().Adopt({0, {2, 9}}, 0, true, kBegun));
        EXPECT_FALSE(w.of().Has(kZero.incarnation, w.first));
      }}},
    {"second lease",
     {true, [](Walk& w) { w.first = w.Grant(), w.Begin(w.first); },
      [](Walk& w) { w.of().GrantSecond(kOne, seconds(1), kBegun + seconds(2)); }}},
    {"one of two ended", {true, kTwice, kEnds}},
    {"ended", {false, kGranted, kEnds}},
    {"ended, a suspect now", {false, kGranted, [](Walk& w) { w.Lose(2), w.of().End(w.first); }}},
    {"ended under a block", {false, kGranted, [](Walk& w) { w.Elsewhere(), w.of().End(w.first); }}},
    {"failed, tries left", {false, kGranted, kRetries}},
    {"suspected", {false, kNothing, kSuspect}},
    {"suspected more", {false, kSuspect, kSuspect}},
    {"may run elsewhere", {false, kNothing, kElsewhere}},
    {"suspect may run elsewhere", {false, kSuspect, kElsewhere}},
    {"blocks fell", {false, kElsewhere, kTimePasses}},
    {"blocks of a suspect fell", {false, kSuspectElsewhere, kTimePasses}},
    {"failed after its lease", {false, kNothing, kFails}},
    {"suspect failed after its lease", {false, kSuspect, kFails}},
    {"failed under a block", {false, kElsewhere, kFails}},
    {"tried again after its lease", {false, kNothing, kRetries}},
    {"suspect tried again after its lease", {false, kSuspect, kRetries}},
    {"split after its lease", {false, kNothing, kSplits}},
    {"suspect split after its lease", {false, kSuspect, kSplits}},
    {"split under a block", {false, kElsewhere, kSplits}},
    {"settled", {false, kGranted, [](Walk& w) { w.Succeed(); }}},
    {"result of one", {true, kTwice, [](Walk& w) { w.Succeed(); }}},
    {"split", {false, kGranted, kSplits}},
    {"last piece settled",
     {false, [](Walk& w) { w.of().Split(0, w.Fail(AttemptEnd::kSplit)); },
      [](Walk& w) { w.Succeed(FirstPiece(0)), w.Succeed(SecondPiece(0)); }}},
};

// The same for what is not planned at first.
const std::map<std::string, Steps> kUnplanned = {
    {"chunk appended", {false, kNothing, [](Walk& w) { w.Plan(); }}},
    {"chunk durable", {false, [](Walk& w) { w.Plan(); }, [](Walk& w) { w.Durable(); }}},
    {"chunk durable, but blocked",
     {false, [](Walk& w) { w.Elsewhere(), w.Plan(); }, [](Walk& w) { w.Durable(); }}},
};

// Pieces come to be by what happens to the whole one.
const std::map<std::string, Steps> kPieces = {
    {"piece of a split", {true, kNothing, kSplitsAndLooks}},
    {"piece of a split, blocked", {false, kNothing, kSplitsAndLooks}},
};

// What the epoch finds.
const std::map<std::string, std::function<void(Walk&)>> kBeginnings = {
    {"epoch begins", kNothing},
    {"epoch begins, a suspect", [](Walk& w) { w.Lose(2); }},
    {"epoch begins, withheld",
     [](Walk& w) {
       w.Lose(1), w.Apply(StartedRecord{0, {1, 1}, true});
     }},
};

std::string StateOf(Walk& walk) { return NameOf(walk.of().Of(walk.looked_at).state); }

std::set<Arrow> Walked() {
  std::set<Arrow> walked;
  const auto walk = [&](const std::string& name, Walk& w, const Steps& steps, BatchId from_id) {
    w.of();
    steps.before(w);
    w.looked_at = from_id;
    const std::string from = StateOf(w);
    w.looked_at = 0;
    steps.event(w);
    walked.insert({from, StateOf(w), name});
    EXPECT_EQ(w.of().Check(), "") << name;
  };
  for (const auto& [name, steps] : kSteps) {
    Walk w(steps.speculation);
    walk(name, w, steps, 0);
  }
  for (const auto& [name, steps] : kUnplanned) {
    Walk w(steps.speculation, false);
    walk(name, w, steps, 0);
  }
  for (const auto& [name, steps] : kPieces) {
    Walk w(steps.speculation);
    walk(name, w, steps, FirstPiece(0));
  }
  for (const auto& [name, before] : kBeginnings) {
    Walk w(false);
    before(w);
    walked.insert({"[*]", StateOf(w), name});
  }
  return walked;
}

TEST(AvailabilityArrows, AreThoseOfThePage) {
  const std::vector<Arrow> drawn = DrawnArrows();
  ASSERT_GT(drawn.size(), 30U);
  const std::set<Arrow> walked = Walked();
  for (const Arrow& arrow : drawn) {
    EXPECT_TRUE(walked.contains(arrow)) << arrow.from << " --> " << arrow.to << ": " << arrow.name;
  }
  for (const Arrow& arrow : walked) {
    EXPECT_THAT(drawn, ::testing::Contains(arrow))
        << arrow.from << " --> " << arrow.to << ": " << arrow.name;
  }
}

}  // namespace
}  // namespace parallelrun::job
