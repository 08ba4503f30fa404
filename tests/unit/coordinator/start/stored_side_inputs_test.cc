#include "coordinator/start/stored_side_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "plan/object_or_prefix.h"
#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRoom = 1000;

class StoredSideInputs : public ::testing::Test {
 protected:
  StoredSideInputs() { EXPECT_TRUE(files_.MakeFolders("/state").ok()); }

  void Put(const std::string& name, const std::string& bytes) {
    objects_.Put("memory://bucket/" + name, bytes);
  }
  // As plan::InputStores opens what lies in a bucket.
  plan::OpenStore Open() {
    return [this](const plan::PlanInput& input) -> std::unique_ptr<store::Store> {
      auto below = objects_.Open(input.root);
      if (input.is_prefix) return below;
      const size_t slash = input.root.rfind('/');
      return plan::ObjectOrPrefix(std::move(below), objects_.Open(input.root.substr(0, slash)),
                                  input.root.substr(slash + 1));
    };
  }
  static plan::PlanInput Input(const std::string& name, const std::string& path,
                               bool is_prefix = false) {
    plan::PlanInput input;
    input.name = name;
    input.store = "bucket";
    input.root = "memory://bucket/" + path;
    input.is_prefix = is_prefix;
    return input;
  }
  Result<std::vector<job::SideInput>> List(const std::vector<plan::PlanInput>& inputs) {
    return ListSideInputs(inputs, Open(), kRoom);
  }
  std::string Refused(const plan::PlanInput& input) {
    const auto listed = List({input});
    return listed.ok() ? "" : listed.error().message;
  }

  FaultFiles files_;
  const std::unique_ptr<ledger::StateNotes> notes_ = ledger::MakeFolderNotes(files_, "/state");
  MemoryObjects objects_;
};

TEST_F(StoredSideInputs, APrefixIsAllBelowItAndAKeyIsThatObject) {
  Put("m/config.json", "{}");
  Put("m/deep/w.bin", "weights");
  Put("m-2/other", "x");
  Put("words.txt", "words");
  const auto listed =
      List({Input("model", "m"), Input("again", "m", true), Input("w", "words.txt")});
  ASSERT_TRUE(listed.ok()) << listed.error().message;
  ASSERT_EQ(listed->size(), 3U);
  const job::SideInput& model = listed->at(0);
  EXPECT_EQ(model.name, "model");
  EXPECT_EQ(model.store, "bucket");
  EXPECT_EQ(model.url, "memory://bucket/m");
  EXPECT_EQ(model.root, "memory://bucket/m");
  EXPECT_FALSE(model.one_object);
  ASSERT_EQ(model.objects.size(), 2U);
  EXPECT_EQ(model.objects[0].name, "config.json");
  EXPECT_EQ(model.objects[1].name, "deep/w.bin");
  EXPECT_EQ(model.objects[1].size, 7U);
  EXPECT_NE(model.objects[1].version, "");
  EXPECT_EQ(listed->at(1).url, "memory://bucket/m/");
  EXPECT_EQ(listed->at(1).objects, model.objects);
  const job::SideInput& words = listed->at(2);
  EXPECT_TRUE(words.one_object);
  EXPECT_EQ(words.root, "memory://bucket");
  ASSERT_EQ(words.objects.size(), 1U);
  EXPECT_EQ(words.objects[0].name, "words.txt");
}

TEST_F(StoredSideInputs, WhatNoNodeCouldHaveIsRefusedOnce) {
  Put("both/a", "1");
  Put("both/a/b", "2");
  Put("dots/../x", "1");
  Put("bytes/a\xff", "1");
  Put("large/a", std::string(kRoom, 'a'));
  Put("large/b", "b");
  EXPECT_EQ(Refused(Input("model", "nothing")),
            "spec.sideInputs (model): memory://bucket/nothing does not exist");
  EXPECT_THAT(Refused(Input("model", "both")),
              HasSubstr("\"a\" is an object, and others lie below"));
  EXPECT_THAT(Refused(Input("model", "dots")), HasSubstr("cannot be the name of a file"));
  EXPECT_THAT(Refused(Input("model", "bytes")), HasSubstr("cannot be the name of a file"));
  EXPECT_THAT(Refused(Input("model", "large")),
              HasSubstr("take 1001 bytes or more, and a node keeps 1000 of objects: raise "
                        "spec.cache.size"));
  EXPECT_EQ(Refused(Input("model", "large/a")), "");
  // All of them share the room.
  EXPECT_THAT(List({Input("a", "large/a"), Input("b", "large/b")}).error().message,
              HasSubstr("spec.sideInputs (b): side inputs in stores take 1001 bytes"));
}

// A byte that JSON escapes takes six.
TEST_F(StoredSideInputs, NamesThatNoAnswerToANodeHasRoomForAreRefused) {
  const std::string part = "/" + std::string(250, '\x01');
  const size_t most = job::kMostSideBytes / (6 * 4 * 250);
  for (size_t i = 0; i <= most; ++i) {
    Put("m/" + std::to_string(i) + part + part + part + part, "");
  }
  EXPECT_THAT(
      Refused(Input("model", "m")),
      HasSubstr("spec.sideInputs (model): the names of its objects and of those before take "
                "more than the 16 MiB that a node is told"));
}

TEST_F(StoredSideInputs, ARunGoesOnWithTheVersionsThatItBeganWith) {
  Put("m", "weights");
  Put("n", "words");
  const std::vector<plan::PlanInput> one = {Input("model", "m")};
  const auto begun = List(one);
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  ASSERT_TRUE(KeepSideInputs(*notes_, 7, *begun).ok());
  Put("m", "WEIGHTS");
  const auto next = GoOnWithSideInputs(*notes_, 7, one, Open(), kRoom);
  ASSERT_TRUE(next.ok()) << next.error().message;
  EXPECT_EQ(*next, *begun);

  // One that the job names anew is listed.
  const std::vector<plan::PlanInput> two = {Input("words", "n"), one[0]};
  const auto both = GoOnWithSideInputs(*notes_, 7, two, Open(), kRoom);
  ASSERT_TRUE(both.ok()) << both.error().message;
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(both->at(0).name, "words");
  EXPECT_EQ(both->at(1), begun->at(0));

  // Another run has other bytes, and another place is another side input.
  const auto other = GoOnWithSideInputs(*notes_, 8, one, Open(), kRoom);
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_NE(*other, *begun);
  const auto moved = GoOnWithSideInputs(*notes_, 7, {Input("model", "n")}, Open(), kRoom);
  ASSERT_TRUE(moved.ok()) << moved.error().message;
  EXPECT_EQ(moved->at(0).objects[0].name, "n");

  EXPECT_TRUE(KeptSideInputs(*ledger::MakeFolderNotes(files_, "/nowhere"), 7, one)->empty());
  files_.Put("/state/side_inputs.json",
             R"({"run": "0000000000000007", "sideInputs": [{"name": 1}]})");
  EXPECT_EQ(KeptSideInputs(*notes_, 7, one).error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace parallelrun::coordinator
