#include "job/mini_batches.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace parallelrun::job {
namespace {

using State = MiniBatch::State;

// Each field apart, with the largest value that a cell has room for and the largest there is.
struct Bound {
  const char* field;
  void (*set)(MiniBatch& batch, uint64_t value);
  uint64_t fits;
  uint64_t largest;
};

constexpr uint64_t k16 = std::numeric_limits<uint16_t>::max();
constexpr uint64_t k32 = std::numeric_limits<uint32_t>::max();
constexpr uint64_t k64 = std::numeric_limits<uint64_t>::max();

const Bound kBounds[] = {
    {"rows' epoch", [](MiniBatch& b, uint64_t v) { b.rows.epoch = static_cast<uint32_t>(v); },
     (1U << 12) - 1, k32},
    {"rows' offset", [](MiniBatch& b, uint64_t v) { b.rows.offset = v; }, (1ULL << 44) - 1, k64},
    {"rows' length", [](MiniBatch& b, uint64_t v) { b.rows.length = static_cast<uint32_t>(v); },
     (1U << 26) - 1, k32},
    {"fence's epoch", [](MiniBatch& b, uint64_t v) { b.fence.epoch = static_cast<uint32_t>(v); },
     (1U << 12) - 1, k32},
    {"fence's number", [](MiniBatch& b, uint64_t v) { b.fence.number = v; }, (1ULL << 36) - 1, k64},
    {"items", [](MiniBatch& b, uint64_t v) { b.items = static_cast<uint32_t>(v); }, (1U << 22) - 1,
     k32},
    {"items missing", [](MiniBatch& b, uint64_t v) { b.items_missing = static_cast<uint32_t>(v); },
     (1U << 16) - 1, k32},
    {"items skipped", [](MiniBatch& b, uint64_t v) { b.items_skipped = static_cast<uint32_t>(v); },
     (1U << 5) - 1, k32},
    {"failed attempts",
     [](MiniBatch& b, uint64_t v) { b.failed_attempts = static_cast<uint32_t>(v); }, (1U << 8) - 1,
     k32},
    {"losses", [](MiniBatch& b, uint64_t v) { b.losses = static_cast<uint16_t>(v); }, (1U << 8) - 1,
     k16},
    {"state", [](MiniBatch& b, uint64_t v) { b.state = static_cast<State>(v); },
     static_cast<uint64_t>(State::kSplit), static_cast<uint64_t>(State::kSplit)},
};

MiniBatch WithAll(uint64_t Bound::*value) {
  MiniBatch batch;
  for (const Bound& bound : kBounds) bound.set(batch, bound.*value);
  return batch;
}

TEST(MiniBatchesTest, ABatchThatWasAddedIsUntried) {
  MiniBatches batches;
  batches.Add(7);
  batches.Add(0);
  MiniBatch seven;
  seven.items = 7;
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[0], seven);
  EXPECT_EQ(batches[1], MiniBatch());
  EXPECT_EQ(batches.wide(), 0U);
}

TEST(MiniBatchesTest, EachFieldComesBackAtItsBounds) {
  for (const Bound& bound : kBounds) {
    SCOPED_TRACE(bound.field);
    MiniBatches batches;
    for (int i = 0; i < 3; ++i) batches.Add(1);  // neighbours on both sides
    MiniBatch batch;
    batch.items = 1;
    const auto there = [&](uint64_t value, size_t wide) {
      bound.set(batch, value);
      batches.Put(1, batch);
      EXPECT_EQ(batches[1], batch) << value;
      EXPECT_EQ(batches.wide(), wide) << value;
    };
    there(bound.fits, 0);
    if (bound.largest > bound.fits) {
      there(bound.fits + 1, 1);
      there(bound.largest, 1);
    }
    there(0, 0);  // no longer wide
    EXPECT_EQ(batches[0].items, 1U);
    EXPECT_EQ(batches[0], batches[2]);
  }
}

TEST(MiniBatchesTest, AllFieldsAtTheirBoundsAtOnce) {
  MiniBatches batches;
  batches.Add(1);
  const MiniBatch narrow = WithAll(&Bound::fits);
  batches.Put(0, narrow);
  EXPECT_EQ(batches[0], narrow);
  EXPECT_EQ(batches.wide(), 0U);
  const MiniBatch wide = WithAll(&Bound::largest);
  batches.Put(0, wide);
  EXPECT_EQ(batches[0], wide);
  EXPECT_EQ(batches.wide(), 1U);
}

TEST(MiniBatchesTest, ManyItemsAreWideFromTheStart) {
  MiniBatches batches;
  batches.Add(uint32_t{1} << 22);
  EXPECT_EQ(batches[0].items, uint32_t{1} << 22);
  EXPECT_EQ(batches.wide(), 1U);
}

TEST(MiniBatchesTest, ARandomWalkBesideAPlainArray) {
  std::mt19937_64 random(20'240'917);
  MiniBatches batches;
  std::vector<MiniBatch> plain;
  for (int step = 0; step < 200'000; ++step) {
    if (plain.empty() || random() % 4 == 0) {  // over several pages
      const auto items = static_cast<uint32_t>(random() >> (32 + random() % 32));
      batches.Add(items);
      plain.emplace_back().items = items;
      continue;
    }
    const size_t id = random() % plain.size();
    ASSERT_EQ(batches[id], plain[id]) << id;
    MiniBatch& batch = plain[id];
    if (random() % 16 == 0) batch = MiniBatch();
    const Bound& bound = kBounds[random() % std::size(kBounds)];
    const uint64_t most = random() % 8 == 0 ? bound.largest : bound.fits;
    bound.set(batch, most == k64 ? random() : random() % (most + 1));
    batches.Put(id, batch);
  }
  ASSERT_EQ(batches.size(), plain.size());
  size_t wide = 0;
  for (size_t id = 0; id < plain.size(); ++id) {
    ASSERT_EQ(batches[id], plain[id]) << id;
    MiniBatches alone;
    alone.Add(0);
    alone.Put(0, plain[id]);
    wide += alone.wide();
  }
  EXPECT_EQ(batches.wide(), wide);
  EXPECT_GT(wide, 0U);
}

}  // namespace
}  // namespace parallelrun::job
