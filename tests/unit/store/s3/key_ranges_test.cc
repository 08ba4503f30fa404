// Several ranges of keys listed at once: whatever is asked at the same time, and whatever is
// answered first, what is read is the keys in their order, each once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "store/s3/key_ranges.h"

namespace parallelrun::store::s3 {
namespace {

using Names = std::vector<std::string>;

Names Sorted(const std::set<std::string>& keys) { return {keys.begin(), keys.end()}; }

// A bucket, as a server answers about it.
struct ServerKeys {
  Names keys;
  size_t page = 3;

  ListPage Answer(const KeyRanges::Ask& ask) const {
    return ask.folders ? Folders(*ask.folders, ask.after) : Page(ask.after);
  }
  ListPage Page(const std::string& after) const {
    ListPage out;
    auto at = std::upper_bound(keys.begin(), keys.end(), after);
    for (; at != keys.end() && out.keys.size() < page; ++at) out.keys.push_back({*at, 1, "e"});
    out.more = at != keys.end();
    return out;
  }
  ListPage Folders(const std::string& parent, const std::string& after) const {
    ListPage out;
    for (auto at = std::upper_bound(keys.begin(), keys.end(), after); at != keys.end(); ++at) {
      if (!at->starts_with(parent)) continue;
      const size_t slash = at->find('/', parent.size());
      const std::string folder = slash == std::string::npos ? "" : at->substr(0, slash + 1);
      if (!folder.empty() && !out.folders.empty() && out.folders.back() == folder) continue;
      if (out.keys.size() + out.folders.size() == page) return out.more = true, out;
      if (folder.empty()) {
        out.keys.push_back({*at, 1, "e"});
      } else {
        out.folders.push_back(folder);
      }
    }
    return out;
  }
};

void Append(Names& to, const std::optional<std::vector<ListedKey>>& page) {
  if (!page) return;
  for (const ListedKey& listed : *page) to.push_back(listed.key);
}

struct Rounds {
  Names read;
  size_t rounds = 0;  // in each of which all that was asked for at once is answered
  size_t requests = 0;
  size_t most_held = 0;
};

Rounds ListInRounds(const ServerKeys& server, const KeyRanges::Limits& limits,
                    const std::string& root = "") {
  Rounds out;
  KeyRanges ranges(root, "", limits);
  while (true) {
    for (auto page = ranges.Take(); page; page = ranges.Take()) Append(out.read, page);
    if (ranges.over()) return out;
    std::vector<KeyRanges::Ask> asked;
    for (auto ask = ranges.Next(); ask; ask = ranges.Next()) asked.push_back(*ask);
    if (asked.empty()) {
      ADD_FAILURE() << "nobody is asked";
      return out;
    }
    EXPECT_LE(asked.size(), limits.at_once);
    for (const KeyRanges::Ask& ask : asked) ranges.Came(ask, server.Answer(ask));
    ++out.rounds;
    out.requests += asked.size();
    out.most_held = std::max(out.most_held, ranges.held());
  }
}

using Random = std::mt19937;

std::string Text(Random& random, const Names& parts, size_t most) {
  std::string text;
  for (size_t i = 1 + random() % most; i > 0; --i) text += parts[random() % parts.size()];
  return text;
}

// The kinds of keys that ranges could go wrong with.
Names SomeKeys(Random& random, const std::string& root) {
  std::set<std::string> keys;
  const size_t many = random() % 200;
  switch (random() % 7) {
    case 0:  // few characters, folders, and marks of these
      for (size_t i = 0; i < many; ++i) keys.insert(root + Text(random, {"a", "b", "/", "."}, 8));
      break;
    case 1:  // a long common begin
      for (size_t i = 0; i < many; ++i) keys.insert(root + fmt::format("2026/11/part-{:06}", i));
      break;
    case 2:  // characters of several bytes, up to the last there is
      for (size_t i = 0; i < many; ++i) {
        keys.insert(root + Text(random,
                                {"\u00fc", "\u4e2d", "\u6587", "a", "/", " ", "\xf4\x8f\xbf\xbf"},
                                5));
      }
      break;
    case 3:  // each the begin of the next
      for (size_t i = 1; i <= many; ++i) keys.insert(root + std::string(i, 'a'));
      break;
    case 4:  // one large folder among small ones
      for (size_t i = 0; i < many; ++i) keys.insert(root + fmt::format("m/{}", i));
      for (size_t i = 0; i < many / 9; ++i)
        keys.insert(root + Text(random, {"k", "z", "m", "/"}, 3));
      break;
    case 5:  // hashes
      for (size_t i = 0; i < many; ++i) keys.insert(root + fmt::format("{:08x}", random()));
      break;
    default:  // hardly any, or none
      for (size_t i = 0; i < many % 4; ++i) keys.insert(root + Text(random, {"a", "b"}, 2));
  }
  return Sorted(keys);
}

struct Tried {
  Names read;
  bool failed = false;
};

// Asks, answers and reads in any order. Now and then a request fails.
Tried ListAtRandom(const ServerKeys& server, const std::string& root, const std::string& after,
                   const KeyRanges::Limits& limits, bool faults, Random& random) {
  Tried out;
  KeyRanges ranges(root, after, limits);
  std::vector<KeyRanges::Ask> asked;
  for (size_t step = 0; !ranges.over(); ++step) {
    if (ranges.error()) return out.failed = true, out;
    if (step == 1'000'000) {
      ADD_FAILURE() << "it does not end";
      return out;
    }
    switch (random() % 3) {
      case 0:
        if (auto ask = ranges.Next()) asked.push_back(std::move(*ask));
        EXPECT_LE(asked.size(), limits.at_once);
        break;
      case 1:
        if (!asked.empty()) {
          std::swap(asked[random() % asked.size()], asked.back());
          const KeyRanges::Ask ask = std::move(asked.back());
          asked.pop_back();
          if (faults && random() % 20 == 0) {
            ranges.Failed(ask, {Code::kUnavailable, "away"});
          } else {
            ranges.Came(ask, server.Answer(ask));
          }
        }
        break;
      default: Append(out.read, ranges.Take());
    }
  }
  return out;
}

KeyRanges::Limits SomeLimits(Random& random) {
  return {1 + random() % 9, random() % 5, size_t{1} << (10 + random() % 12)};
}

TEST(S3KeyRanges, WhateverIsAskedAtOnceTheKeysComeInOrderAndEachOnce) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::string root = random() % 2 == 0 ? "" : "in/";
    const Names keys = SomeKeys(random, root);
    const ServerKeys server{keys, 1 + random() % 9};
    // Behind a key, or behind one that is gone.
    std::string after;
    if (!keys.empty() && random() % 3 == 0) after = keys[random() % keys.size()];
    if (!after.empty() && random() % 2 == 0) after += "x";
    const Names want(std::upper_bound(keys.begin(), keys.end(), after), keys.end());
    const Tried tried = ListAtRandom(server, root, after, SomeLimits(random), false, random);
    ASSERT_EQ(tried.read, want) << "seed " << seed;
    ASSERT_FALSE(tried.failed);
  }
}

TEST(S3KeyRanges, WhereARequestFailsNothingIsLeftOutBeforeIt) {
  size_t failed = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const Names keys = SomeKeys(random, "in/");
    const ServerKeys server{keys, 1 + random() % 9};
    const Tried tried = ListAtRandom(server, "in/", "", SomeLimits(random), true, random);
    failed += tried.failed ? 1 : 0;
    ASSERT_LE(tried.read.size(), keys.size()) << "seed " << seed;
    const Names front(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(tried.read.size()));
    ASSERT_EQ(tried.read, front) << "seed " << seed;
    ASSERT_TRUE(tried.failed || tried.read == keys) << "seed " << seed;
  }
  EXPECT_GT(failed, 0u);
  EXPECT_LT(failed, 1000u);
}

Names Numbered(const std::string& format, size_t count) {
  std::set<std::string> keys;
  for (size_t i = 0; i < count; ++i) keys.insert(fmt::format(fmt::runtime(format), i));
  return Sorted(keys);
}

// 100 pages each: one after the other they would take 100 rounds.
TEST(S3KeyRanges, LongListingsAreCutWhateverTheKeysAreCalled) {
  Random random(1);
  std::set<std::string> hashes, classes, days, small;
  for (size_t i = 0; i < 30'000; ++i)
    hashes.insert(fmt::format("{:08x}{:08x}", random(), random()));
  for (size_t i = 0; i < 30; ++i) {
    for (size_t k = 0; k < 1000; ++k)
      classes.insert(fmt::format("train/n{:08}/{}.jpg", i * 7919, k));
  }
  for (size_t day = 0; day < 12 * 28; ++day) {
    for (size_t i = 0; i < 90; ++i) {
      days.insert(fmt::format("2026/{:02}/{:02}/{:05}", 1 + day / 28, 1 + day % 28, i));
    }
  }
  for (size_t i = 0; i < 7500; ++i) {
    for (const char* name : {"a", "b", "c", "d"})
      small.insert(fmt::format("{:05}/{}.txt", i, name));
  }
  const std::pair<const char*, Names> all[] = {
      {"numbers of one length", Numbered("img_{:07}.jpg", 30'000)},
      {"numbers", Numbered("img_{}.jpg", 30'000)},
      {"hashes", Sorted(hashes)},
      {"folders", Sorted(classes)},
      {"days", Sorted(days)},
      {"small folders", Sorted(small)}};
  for (const auto& [name, keys] : all) {
    const Rounds listed = ListInRounds({keys, 300}, {});
    ASSERT_EQ(listed.read, keys) << name;
    EXPECT_LE(listed.rounds, 40u) << name;
    EXPECT_LE(listed.requests, 200u) << name;
  }
}

TEST(S3KeyRanges, WhatWaitsForTheFirstRangeStaysWithinItsBound) {
  const ServerKeys server{Numbered("{:07}", 30'000), 100};
  KeyRanges::Limits limits;
  // A page of these keys has at most 100 * (sizeof(ListedKey) + 2 * 31) bytes.
  const size_t page = 100 * (sizeof(ListedKey) + 62);
  limits.bytes = 40 * page;
  const Rounds listed = ListInRounds(server, limits);
  EXPECT_EQ(listed.read, server.keys);
  EXPECT_LE(listed.most_held, limits.bytes + page);
  EXPECT_LE(listed.rounds, 200u) << "of 300 pages";
}

// The reader is slow: what is ahead of it stays bounded, the first range's as well.
TEST(S3KeyRanges, NothingIsAskedForPastTheBoundWhileNobodyReads) {
  const ServerKeys server{Numbered("{:07}", 30'000), 100};
  const size_t page = 100 * (sizeof(ListedKey) + 62);
  KeyRanges ranges("", "", {4, 1, 10 * page});
  size_t answers = 0;
  while (auto ask = ranges.Next()) {
    ranges.Came(*ask, server.Answer(*ask));
    ASSERT_LE(++answers, 300u);
  }
  EXPECT_GT(answers, 1u);
  EXPECT_LE(ranges.held(), 11 * page);
  EXPECT_FALSE(ranges.over());
}

TEST(S3KeyRanges, ASmallListingCostsNoRequestMore) {
  const ServerKeys server{Numbered("{:02}", 12), 3};
  KeyRanges ranges("", "", {});
  Names read;
  for (size_t page = 0; page < 4; ++page) {
    const auto ask = ranges.Next();
    ASSERT_TRUE(ask);
    EXPECT_FALSE(ranges.Next()) << "one at a time";
    ranges.Came(*ask, server.Answer(*ask));
    Append(read, ranges.Take());
  }
  EXPECT_TRUE(ranges.over());
  EXPECT_EQ(read, server.keys);
}

// What failed for a later range is asked for again when the reader is there, by itself.
TEST(S3KeyRanges, AfterAFailureInALaterRangeItGoesOnAlone) {
  const ServerKeys server{Numbered("{:04}", 1000), 10};
  KeyRanges ranges("", "", {4, 1, size_t{1} << 20});
  Names read;
  const auto first = ranges.Next();
  ranges.Came(*first, server.Answer(*first));
  Append(read, ranges.Take());
  const auto next = ranges.Next();
  const auto later = ranges.Next();
  ASSERT_TRUE(next && later);
  EXPECT_EQ(next->after, "0009");
  EXPECT_GT(later->after, "0010");
  ranges.Failed(*later, {Code::kUnavailable, "away"});
  EXPECT_FALSE(ranges.Together());
  EXPECT_FALSE(ranges.error());
  ranges.Came(*next, server.Answer(*next));
  while (!ranges.over()) {
    Append(read, ranges.Take());
    const auto ask = ranges.Next();
    if (!ask) continue;
    EXPECT_FALSE(ranges.Next()) << "one at a time";
    ranges.Came(*ask, server.Answer(*ask));
  }
  EXPECT_EQ(read, server.keys);
}

TEST(S3KeyRanges, WhatTheReaderWaitsForAndFailsIsTheError) {
  const ServerKeys server{Numbered("{:04}", 100), 10};
  KeyRanges ranges("", "", {4, 1, size_t{1} << 20});
  const auto first = ranges.Next();
  ranges.Came(*first, server.Answer(*first));
  EXPECT_TRUE(ranges.Take());
  const auto next = ranges.Next();
  ranges.Failed(*next, {Code::kPermission, "no right"});
  ASSERT_TRUE(ranges.error());
  EXPECT_EQ(ranges.error()->message, "no right");
  EXPECT_FALSE(ranges.Next());
}

TEST(S3KeyRanges, WhatIsPassedOverIsNotRead) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const ServerKeys server{Numbered("a/{:04}", 300), 1 + random() % 9};
    KeyRanges ranges("", "", SomeLimits(random));
    std::vector<KeyRanges::Ask> asked;
    Names read;
    std::string passed;
    while (!ranges.over()) {
      if (auto ask = ranges.Next()) asked.push_back(std::move(*ask));
      if (!asked.empty() && random() % 2 == 0) {
        std::swap(asked[random() % asked.size()], asked.back());
        ranges.Came(asked.back(), server.Answer(asked.back()));
        asked.pop_back();
      }
      if (passed.empty() && read.size() > 50) ranges.PassOver(passed = "a/0200");
      Append(read, ranges.Take());
    }
    // A page that was asked for before may come with some of them, as the page at hand does.
    std::erase_if(read, [&](const std::string& key) { return key <= passed; });
    ASSERT_EQ(read, Names(server.keys.begin() + 201, server.keys.end())) << "seed " << seed;
  }
}

// A server that tells no folders, or not so deep: the rest is guessed.
TEST(S3KeyRanges, RefusedFoldersAreNotAskedForAgain) {
  const ServerKeys server{Numbered("a/b/{:05}", 3000), 10};
  KeyRanges ranges("", "", {});
  Names read;
  size_t refused = 0;
  while (!ranges.over()) {
    std::vector<KeyRanges::Ask> asked;
    for (auto ask = ranges.Next(); ask; ask = ranges.Next()) asked.push_back(*ask);
    for (const KeyRanges::Ask& ask : asked) {
      if (ask.folders) {
        ++refused;
        ranges.Failed(ask, {Code::kPermission, "no right"});
      } else {
        ranges.Came(ask, server.Answer(ask));
      }
    }
    for (auto page = ranges.Take(); page; page = ranges.Take()) Append(read, page);
  }
  EXPECT_EQ(read, server.keys);
  EXPECT_TRUE(ranges.Together());
  EXPECT_GE(refused, 1u);
  EXPECT_LE(refused, 2u) << "those that were on their way already";
}

}  // namespace
}  // namespace parallelrun::store::s3
