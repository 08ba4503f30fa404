// Inputs in a store whose objects a manifest names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <spdlog/fmt/fmt.h>

#include <string>
#include <string_view>
#include <vector>

#include "plan/input_changes.h"
#include "plan/manifest_store.h"
#include "store/objects/object_version.h"
#include "tests/support/memory_store.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Names = std::vector<std::string>;

// Objects and their manifest, in memory.
class StoredManifestTest : public ::testing::Test {
 protected:
  StoredManifestTest() {
    for (const char* name : {"a", "b/c", "z", "other"}) objects_.Put(At(name), name);
  }
  static std::string At(const std::string& name) { return "memory://bucket/in/" + name; }
  PlanInput Input(const std::string& manifest) {
    objects_.Put("memory://bucket/lists/today.txt", manifest);
    PlanInput input = FilesInput("memory://bucket/in", 2);
    input.store = "memory";
    input.manifest.path = "memory://bucket/lists/today.txt";
    input.manifest.below = "memory://bucket/in/";
    return input;
  }
  OpenStore Stores() {
    return [this](const PlanInput& input) {
      return MakeManifestStore(input, {objects_.Open(input.root, input.stop),
                                       objects_.Open("memory://bucket/lists", input.stop)});
    };
  }

  MemoryObjects objects_;
};

TEST_F(StoredManifestTest, KeysAndUrlsInTheirOrder) {
  const Plan plan = PlanFromEverywhere({Input("z\nmemory://bucket/in/b/c\ngone\na\n")}, Stores());
  EXPECT_EQ(NamesOf(plan), (Names{"z", "b/c", "gone", "a"}));
  EXPECT_EQ(plan.files(0).root, "memory://bucket/in");
  EXPECT_NE(plan.files(0).versions[0], "not there");
  // Nobody takes it for an object of no bytes.
  EXPECT_EQ(plan.files(0).versions[2], "not there");
}

TEST_F(StoredManifestTest, MoreThanAreLookedAtAtOnce) {
  std::string manifest;
  Names expected;
  for (int i = 200; i > 0; --i) {
    expected.push_back(fmt::format("f{}", i));
    objects_.Put(At(expected.back()), "x");
    manifest += expected.back() + "\n";
  }
  EXPECT_EQ(NamesOf(PlanFromEverywhere({Input(manifest)}, Stores())), expected);
}

TEST_F(StoredManifestTest, OtherObjectsAreRefusedWithTheLine) {
  const auto error = [&](const std::string& line) {
    return MakePlanOn(Stores(), {Input("a\n" + line + "\n")}).error;
  };
  EXPECT_EQ(error("memory://bucket/secret"),
            "Invalid: inputs[images]: memory://bucket/lists/today.txt:2: "
            "\"memory://bucket/secret\" is not below memory://bucket/in/: an input names what lies "
            "below its own path; write another input for other objects");
  EXPECT_THAT(error("memory://other/in/a"), HasSubstr("is not below"));
  EXPECT_THAT(error("memory://bucket/in/../secret"), HasSubstr("leaves the folder"));
  EXPECT_THAT(error("memory://bucket/in/memory://x"), HasSubstr("is a URL"));
  EXPECT_THAT(error("memory://bucket/in/a"), HasSubstr("stands in line 1 too"));
  EXPECT_THAT(error("http://169.254.169.254/x"), HasSubstr("is not below"));
}

// One that it tells whole is not looked at, and none of them keeps the job from planning.
TEST_F(StoredManifestTest, PinsStandInThePlan) {
  PlanInput input =
      Input("path,size,etag\na,17,abc\nb/c,18,\nz,,def\nother,,\ngone,1,\nnever,2,ghi\n");
  input.batch_size = 6;
  input.manifest.format = api::ManifestFormat::kCsv;
  input.manifest.size_column = "size";
  input.manifest.etag_column = "etag";
  const Plan plan = PlanFromEverywhere({input}, Stores());
  EXPECT_EQ(NamesOf(plan), (Names{"a", "b/c", "z", "other", "gone", "never"}));
  const auto version = [](std::string_view etag, uint64_t size) {
    return std::string(store::VersionOf(etag, size).bytes());
  };
  // What was put third is "z", of one byte.
  EXPECT_THAT(plan.files(0).versions,
              ElementsAre(version("abc", 17), version("put 2", 18), version("def", 1), "put 4",
                          "not there", version("ghi", 2)));
}

TEST_F(StoredManifestTest, OneThatIsNotThereIsAnEmptyDayWhereThatIsAllowed) {
  PlanInput input = Input("");
  objects_.Remove("memory://bucket/lists/today.txt");
  EXPECT_EQ(MakePlanOn(Stores(), {input}).error,
            "NotFound: inputs[images]: memory://bucket/lists/today.txt: the manifest is not there, "
            "or is no file; correct manifest.path");
  input.allow_empty = api::AllowEmpty::kExisting;
  EXPECT_THAT(MakePlanOn(Stores(), {input}).error, HasSubstr("the manifest is not there"));
  input.allow_empty = api::AllowEmpty::kMissing;
  const Plan plan = MakePlanOn(Stores(), {input});
  EXPECT_EQ(plan.error, "");
  EXPECT_EQ(plan.items, 0U);
}

// Nobody has read it: a run that goes on takes what came since.
TEST_F(StoredManifestTest, AnObjectThatCameSinceIsNoDifference) {
  PlanInput input = Input("z\ngone\na\n");
  const Plan plan = MakePlanOn(Stores(), {input});
  const auto differ = [&] {
    const Result<InputChanges> found = FindInputChanges(
        [&](const auto& visit) -> Status {
          for (const auto& chunk : plan.chunks) visit(chunk->record);
          return {};
        },
        true, {input}, Stores(), [] {});
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? found->differ.named : Names();
  };
  EXPECT_THAT(differ(), IsEmpty());
  objects_.Put(At("gone"), "by now");
  EXPECT_THAT(differ(), IsEmpty());
  objects_.Remove(At("a"));
  EXPECT_THAT(differ(), ElementsAre("inputs[images]: memory://bucket/in/a is gone"));
}

TEST_F(StoredManifestTest, OfUrlsNothingIsLookedAt) {
  PlanInput input = Input("z\ngone\n");
  input.urls = true;
  const Plan plan = PlanFromEverywhere({input}, Stores());
  EXPECT_EQ(NamesOf(plan), (Names{"z", "gone"}));
  EXPECT_THAT(plan.files(0).versions, ElementsAre(job::kNoVersion, job::kNoVersion));
}

}  // namespace
}  // namespace parallelrun::plan
