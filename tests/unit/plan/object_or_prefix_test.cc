#include "plan/object_or_prefix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/store/azure_blob/small_azure.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::plan {
namespace {

using store::ListAll;
using store::s3::QuickOptions;
using store::s3::SmallS3;
using store::s3::StoreAt;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "in/NAME" of that server.
std::unique_ptr<store::Store> PathOf(const SmallS3& server, const std::string& name) {
  return ObjectOrPrefix(StoreAt(QuickOptions(server, "s3://bucket/in/" + name)),
                        StoreAt(QuickOptions(server, "s3://bucket/in")), name);
}

TEST(ObjectOrPrefix, AnObjectOfThatKeyIsAll) {
  SmallS3 server;
  for (const char* key : {"in/a", "in/a.old", "in/a/b", "in/b"}) server.Put(key, key);
  const auto store = PathOf(server, "a");
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_THAT(ListAll(*store, "a").names, IsEmpty()) << "it goes on behind it";
  EXPECT_EQ(store->Location("a"), "s3://bucket/in/a");
  EXPECT_EQ(store->Location(""), "s3://bucket/in");
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  EXPECT_EQ((*object)->found().size, 4U);
  const auto found = store->Stat("a");
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->version, (*object)->found().version);
  const auto unwanted = store->List({[](auto) { return false; }, [](auto) { return true; }}, "");
  ASSERT_TRUE(unwanted.ok());
  EXPECT_FALSE(*(*unwanted)->Next());
}

TEST(ObjectOrPrefix, TheVersionInThePlanOfAnEarlierReleaseIsKnown) {
  SmallS3 server;
  server.PutAs("in/a", "12345678", "one");
  for (const char* name : {"a", "b"}) {
    const auto store = PathOf(server, name);
    const store::Version now =
        StoreAt(QuickOptions(server, "s3://bucket/in"))->Stat("a").value()->version;
    EXPECT_TRUE(store->IsStill(store::Version("one"), now));
    EXPECT_FALSE(store->IsStill(store::Version("two"), now));
  }
}

TEST(ObjectOrPrefix, ElseItIsAPrefix) {
  SmallS3 server;
  for (const char* key : {"in/a.old", "in/a/b", "in/a/c/d", "in/b"}) server.Put(key, key);
  const auto store = PathOf(server, "a");
  const auto found = store->Stat("b");
  ASSERT_TRUE(found.ok() && *found) << "the first call may be any";
  EXPECT_THAT(ListAll(*store).names, ElementsAre("b", "c/d"));
  EXPECT_EQ(store->Location("b"), "s3://bucket/in/a/b");
  EXPECT_THAT(ListAll(*PathOf(server, "none")).names, IsEmpty());
}

TEST(ObjectOrPrefix, AnEmptyObjectIsTheMarkOfAFolderWhereSomethingIsBelow) {
  SmallS3 server;
  server.Put("in/a", "");
  EXPECT_THAT(ListAll(*PathOf(server, "a")).names, ElementsAre("a"));
  server.Put("in/a/b", "b");
  EXPECT_THAT(ListAll(*PathOf(server, "a")).names, ElementsAre("b"));
}

TEST(ObjectOrPrefix, WhetherThereIsOneIsKnown) {
  SmallS3 server;
  server.Put("in/a", "a");
  server.Put("in/b/", "");
  server.Put("in/c", "");
  server.Put("in/c/", "");
  for (const auto& [name, there] : {std::pair{"a", true}, {"b", true}, {"c", true}, {"d", false}}) {
    EXPECT_EQ(PathOf(server, name)->IsThere().value(), there) << name;
  }
  EXPECT_THAT(ListAll(*PathOf(server, "c")).names, IsEmpty()) << "both are marks of one folder";
}

// In an account with a hierarchical namespace each prefix is there by itself.
TEST(ObjectOrPrefix, AFolderOfAzureIsNoObject) {
  namespace azure = store::azure_blob;
  for (const bool hierarchical : {false, true}) {
    azure::SmallAzure server;
    if (hierarchical) server.SetHierarchical();
    server.Put("in/a/b", "b");
    server.Put("in/b", "", true);
    const auto path_of = [&](const std::string& name) {
      return ObjectOrPrefix(azure::StoreAt(azure::QuickOptions(server, "in/" + name)),
                            azure::StoreAt(azure::QuickOptions(server, "in")), name);
    };
    EXPECT_THAT(ListAll(*path_of("a")).names, ElementsAre("b"));
    EXPECT_THAT(ListAll(*path_of("b")).names, IsEmpty()) << "the mark of a folder";
    server.Put("in/c", "");
    EXPECT_THAT(ListAll(*path_of("c")).names, ElementsAre("c"));
  }
}

TEST(ObjectOrPrefix, WhoMayNotAskForAnObjectMayListThem) {
  SmallS3 server([](PlainConnection& connection, const store::Heard& heard, size_t) {
    if (heard.method != "HEAD") return false;
    connection.Write("HTTP/1.1 403 X\r\nContent-Length: 0\r\n\r\n");
    return true;
  });
  server.Put("in/a/b", "b");
  EXPECT_THAT(ListAll(*PathOf(server, "a")).names, ElementsAre("b"));
}

TEST(ObjectOrPrefix, ItIsAskedOnce) {
  SmallS3 server;
  server.Put("in/a/b", "b");
  const auto store = PathOf(server, "a");
  for (int i = 0; i < 3; ++i) EXPECT_THAT(ListAll(*store).names, ElementsAre("b"));
  size_t asked = 0;
  for (const store::Heard& heard : server.heard()) asked += heard.method == "HEAD" ? 1 : 0;
  EXPECT_EQ(asked, 1U);
}

}  // namespace
}  // namespace parallelrun::plan
