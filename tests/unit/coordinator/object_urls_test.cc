// URLs of objects in the answers of exchanges: with a lease, anew in time, and why there are none.
#include "coordinator/object_urls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/record_codec.h"
#include "job/records.h"
#include "job/work.h"

namespace parallelrun::coordinator {
namespace {

using testing::ElementsAre;

class UrlClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  WallTime WallNow() const override { return {}; }
  Instant now{};
};

// Counts what it signs.
class CountingSigner final : public store::UrlSigner {
 public:
  CountingSigner(std::atomic<int>& made, std::atomic<bool>& fails, std::atomic<size_t>& length)
      : made_(made), fails_(fails), length_(length) {}
  Result<store::SignedUrl> Sign(const std::string& location,
                                const store::Version& version) override {
    if (fails_) return Error{Code::kPermission, "the keys have ended"};
    std::string url = fmt::format("https://{}?{}&{}", location, version.bytes(), ++made_);
    url.resize(std::max<size_t>(url.size(), length_), 'x');
    return store::SignedUrl{std::move(url), seconds(1000)};
  }

 private:
  std::atomic<int>& made_;
  std::atomic<bool>& fails_;
  std::atomic<size_t>& length_;
};

struct Told {
  uint64_t id = 0;
  uint32_t seconds = 0;
  std::string why;
  std::vector<std::string> urls;
};

class ObjectUrlsTest : public testing::Test {
 protected:
  static std::string WorkOf(const std::string& store) {
    job::FilesChunk files{2, "s3://bucket", std::string_view("a\0b", 3), {}};
    files.versions = {"v1", "v2"};
    std::string record;
    job::EncodeRecord(job::PlanChunkRecord{0, 2, 0, files, store}, record);
    return job::WorkMaker::FromRecord(std::move(record))->Make(0);
  }
  static job::ExchangeReply Leases(std::string_view work) {
    job::ExchangeReply reply;
    reply.epoch = 1;
    reply.leased = {{7, {1, 9}, 1, work}};
    return reply;
  }
  // What the answer tells once it is sent.
  std::vector<Told> Answered(const std::vector<job::HeldLease>& held,
                             const job::ExchangeReply& reply) {
    std::string bytes;
    urls_.Answer(held, reply, [&](std::string sent) {
      bytes = std::move(sent);
      loop_.Stop();
    });
    while (bytes.empty()) loop_.Run();
    const Result<job::ExchangeReply> decoded = job::DecodeExchangeReply(bytes);
    EXPECT_TRUE(decoded.ok());
    EXPECT_EQ(decoded->leased.size(), reply.leased.size());
    std::vector<Told> told;
    for (const job::ObjectUrls& of : decoded->urls) {
      told.push_back({of.id, of.seconds, std::string(of.why), {of.urls.begin(), of.urls.end()}});
    }
    return told;
  }

  static std::vector<job::SideInput> SideInputs() {
    job::SideInput model{"model", "photos", "s3://bucket/m", "s3://bucket/m", false, {}};
    for (size_t i = 0; i <= job::kMostSideUrls; ++i) {
      model.objects.push_back({fmt::format("{}", i), 1, fmt::format("v{}", i)});
    }
    job::SideInput other{"other", "another", "s3://o/a", "s3://o", true, {{"a", 1, "v"}}};
    return {model, other};
  }
  Result<job::SideUrls> AskedFor(const std::string& side_input, size_t first) {
    std::optional<Result<job::SideUrls>> answer;
    urls_.AnswerSide({side_input, first}, [&](Result<job::SideUrls> urls) {
      answer = std::move(urls);
      loop_.Stop();
    });
    while (!answer) loop_.Run();
    return *answer;
  }

  std::atomic<int> made_ = 0;
  std::atomic<bool> fails_ = false;
  std::atomic<size_t> length_ = 0;  // of a URL, at least
  UrlClock clock_;
  EventLoop loop_;
  ObjectUrls urls_{{{"photos", store::Wished{"s3://bucket", "", "", {}, {}}}},
                   SideInputs(),
                   loop_,
                   clock_,
                   [this](const store::Wished&, const std::stop_token&) {
                     return Result<std::unique_ptr<store::UrlSigner>>(
                         std::make_unique<CountingSigner>(made_, fails_, length_));
                   }};
};

TEST_F(ObjectUrlsTest, ALeaseComesWithTheUrlsOfItsObjects) {
  const std::string work = WorkOf("photos");
  const std::vector<Told> told = Answered({}, Leases(work));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, 7u);
  EXPECT_EQ(told[0].seconds, 1000u);
  EXPECT_THAT(told[0].urls,
              ElementsAre("https://s3://bucket/a?v1&1", "https://s3://bucket/b?v2&2"));
}

TEST_F(ObjectUrlsTest, WhatNeedsNoneIsAnsweredAtOnce) {
  EXPECT_TRUE(Answered({}, {}).empty());
  EXPECT_TRUE(Answered({}, Leases("")).empty());
  const std::string work = WorkOf("another");
  EXPECT_TRUE(Answered({}, Leases(work)).empty());
  EXPECT_EQ(made_, 0);
}

TEST_F(ObjectUrlsTest, TheyComeAnewFromHalfOfTheirLifeOnUntilItHasBegun) {
  const std::string work = WorkOf("photos");
  Answered({}, Leases(work));
  const std::vector<job::HeldLease> waits{{7, {1, 9}, false}};
  const std::vector<job::HeldLease> begun{{7, {1, 9}, true}};
  clock_.now += seconds(499);
  EXPECT_TRUE(Answered(waits, {}).empty());
  clock_.now += seconds(1);
  ASSERT_EQ(Answered(waits, {}).size(), 1u);
  EXPECT_EQ(made_, 4);
  EXPECT_TRUE(Answered(waits, {}).empty());
  EXPECT_TRUE(Answered({{7, {1, 8}, false}}, {}).empty()) << "of another lease";
  clock_.now += seconds(600);
  EXPECT_TRUE(Answered(begun, {}).empty());
  EXPECT_TRUE(Answered(waits, {}).empty()) << "its objects are files";
  EXPECT_EQ(made_, 4);
}

TEST_F(ObjectUrlsTest, ALeaseWithoutUrlsSaysWhy) {
  fails_ = true;
  const std::string work = WorkOf("photos");
  const std::vector<Told> told = Answered({}, Leases(work));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].seconds, 0u);
  EXPECT_EQ(told[0].why, "the keys have ended");
  EXPECT_TRUE(told[0].urls.empty());
  fails_ = false;
  clock_.now += seconds(9);
  EXPECT_TRUE(Answered({}, Leases(work))[0].urls.empty()) << "it is not asked for each answer";
  clock_.now += seconds(1);
  EXPECT_EQ(Answered({}, Leases(work))[0].urls.size(), 2u);
}

TEST_F(ObjectUrlsTest, WhatAnAnswerHasNoRoomForComesWithTheNextOne) {
  const std::string work = WorkOf("photos");
  length_ = job::kMaxUrlBytes / 3;
  job::ExchangeReply reply = Leases(work);
  reply.leased.push_back({8, {1, 10}, 1, work});
  std::vector<Told> told = Answered({}, reply);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, 7u);
  told = Answered({{7, {1, 9}, false}, {8, {1, 10}, false}}, {});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, 8u);
  EXPECT_EQ(told[0].urls.size(), 2u);
  EXPECT_TRUE(Answered({{7, {1, 9}, false}, {8, {1, 10}, false}}, {}).empty());
}

TEST_F(ObjectUrlsTest, AMiniBatchWhoseUrlsNoAnswerHasRoomForIsToldWhatToDo) {
  const std::string work = WorkOf("photos");
  length_ = job::kMaxUrlBytes / 2;  // and four bytes each
  const std::vector<Told> told = Answered({}, Leases(work));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].urls.empty());
  EXPECT_EQ(told[0].why, "the URLs of its 2 objects are more than 32 MiB: lower miniBatchSize");
}

TEST_F(ObjectUrlsTest, WhoeverAsksIsToldOthersOrThatThereAreNone) {
  const std::string work = WorkOf("photos");
  const std::vector<job::HeldLease> asks{{7, {1, 9}, false, true}};
  std::vector<Told> told = Answered(asks, {});
  ASSERT_EQ(told.size(), 1u) << "of a lease of a coordinator before this one";
  EXPECT_TRUE(told[0].urls.empty());
  EXPECT_EQ(told[0].why, "the coordinator knows nothing of its objects: it was replaced");
  Answered({}, Leases(work));
  told = Answered(asks, {});
  ASSERT_EQ(told.size(), 1u) << "though its clock says that the first ones count";
  EXPECT_EQ(told[0].urls.size(), 2u);
  EXPECT_EQ(made_, 4);
  fails_ = true;
  told = Answered(asks, {});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].why, "the keys have ended");
}

TEST_F(ObjectUrlsTest, ANodeIsToldNothingOfAnothersLease) {
  const std::string work = WorkOf("photos");
  Answered({}, Leases(work));
  const std::vector<job::HeldLease> asks{{7, {1, 9}, false, true}};
  job::ExchangeReply refuses;
  refuses.refused = {{7, {1, 9}}};
  EXPECT_TRUE(Answered(asks, refuses).empty());
  const std::vector<Told> told = Answered(asks, {});
  ASSERT_EQ(told.size(), 1u) << "whose it is has lost nothing by that";
  EXPECT_EQ(told[0].urls.size(), 2u);
}

// Those that it has count still, and whoever is told none hands the mini-batch back.
TEST_F(ObjectUrlsTest, ARenewalThatFailsIsTriedAgainAndNotTold) {
  const std::string work = WorkOf("photos");
  Answered({}, Leases(work));
  const std::vector<job::HeldLease> waits{{7, {1, 9}, false}};
  clock_.now += seconds(500);
  fails_ = true;
  EXPECT_TRUE(Answered(waits, {}).empty());
  fails_ = false;
  clock_.now += seconds(9);
  EXPECT_TRUE(Answered(waits, {}).empty());
  clock_.now += seconds(1);
  ASSERT_EQ(Answered(waits, {}).size(), 1u);
}

// A lease that goes on under a new fence has its URLs still.
TEST_F(ObjectUrlsTest, WhatIsAdoptedIsRenewed) {
  const std::string work = WorkOf("photos");
  Answered({}, Leases(work));
  job::ExchangeReply adopts;
  adopts.adopted = {{7, {1, 9}, {1, 11}}};
  EXPECT_TRUE(Answered({}, adopts).empty());
  clock_.now += seconds(500);
  const std::vector<Told> told = Answered({{7, {1, 11}, false}}, {});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].id, 7u);
}

// They are fetched before there is a lease to tell them with.
TEST_F(ObjectUrlsTest, OfASideInputSomeAreToldAtATime) {
  const Result<job::SideUrls> some = AskedFor("model", 0);
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_EQ(some->seconds, 1000u);
  ASSERT_EQ(some->urls.size(), job::kMostSideUrls);
  EXPECT_EQ(some->urls[7], "https://s3://bucket/m/7?v7&8");
  const Result<job::SideUrls> last = AskedFor("model", job::kMostSideUrls);
  ASSERT_TRUE(last.ok()) << last.error().message;
  EXPECT_EQ(last->urls.size(), 1u);
  for (const char* name : {"other", "none", ""}) {
    EXPECT_EQ(AskedFor(name, 0).error().code, Code::kNotFound) << name;
  }
  EXPECT_EQ(AskedFor("model", job::kMostSideUrls + 1).error().code, Code::kNotFound);
  fails_ = true;
  const Error none = AskedFor("model", 3).error();
  EXPECT_EQ(none.code, Code::kUnavailable);
  EXPECT_EQ(none.message, "the keys have ended");
}

}  // namespace
}  // namespace parallelrun::coordinator
