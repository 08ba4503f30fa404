// What an informer holds, and what it has seen.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kube/indexed_objects.h"
#include "kube/scopes_seen.h"

namespace parallelrun::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointee;

using Objects = IndexedObjects<std::string>;

Objects::Held Of(const std::string& digest) {
  return {std::make_shared<const std::string>(digest), 1, nullptr};
}

// By the first letter.
Objects ByLetter() {
  return Objects([](const std::string& digest) { return digest.substr(0, 1); });
}

TEST(IndexedObjects, AnObjectStandsUnderOneValueAtATime) {
  Objects objects = ByLetter();
  objects.Put("ns/b", Of("apple"));
  objects.Put("ns/a", Of("ant"));
  EXPECT_THAT(objects.Indexed("a"),
              ElementsAre(Pointee(std::string("ant")), Pointee(std::string("apple"))));
  objects.Put("ns/b", Of("bee"));
  EXPECT_THAT(objects.Indexed("a"), ElementsAre(Pointee(std::string("ant"))));
  EXPECT_THAT(objects.Indexed("b"), ElementsAre(Pointee(std::string("bee"))));
  objects.Remove("ns/b");
  objects.Remove("ns/b");
  EXPECT_THAT(objects.Indexed("b"), IsEmpty());
  EXPECT_EQ(objects.Find("ns/b"), nullptr);
  EXPECT_EQ(objects.all().size(), 1U);
}

TEST(IndexedObjects, WithoutAnIndexTheyAreFoundByKeyOnly) {
  Objects objects{nullptr};
  objects.Put("ns/a", Of("ant"));
  EXPECT_THAT(objects.Indexed("a"), IsEmpty());
  ASSERT_NE(objects.Find("ns/a"), nullptr);
  objects.Remove("ns/a");
  EXPECT_TRUE(objects.all().empty());
}

TEST(ScopesSeen, AllScopesMustBeListed) {
  ScopesSeen seen;
  seen.Add("a");
  seen.Add("b");
  seen.Synced("a");
  EXPECT_FALSE(seen.AllSynced());
  seen.Synced("b");
  EXPECT_TRUE(seen.AllSynced());
}

TEST(ScopesSeen, AVersionIsOfItsScopeOrOfTheCluster) {
  ScopesSeen seen;
  seen.Add("a");
  seen.Reached("a", 7);
  seen.Reached("a", 5);
  EXPECT_TRUE(seen.HasSeen("a", 7));
  EXPECT_FALSE(seen.HasSeen("a", 8));
  EXPECT_FALSE(seen.HasSeen("b", 1)) << "nobody watches it";
  ScopesSeen cluster;
  cluster.Add("");
  cluster.Reached("", 9);
  EXPECT_TRUE(cluster.HasSeen("b", 9));
}

}  // namespace
}  // namespace parallelrun::kube
