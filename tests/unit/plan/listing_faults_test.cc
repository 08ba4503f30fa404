// A listing on a disk that fails: it says so, or it has listed everything. Names that are left out
// in silence would be data that no mini-batch has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/input_store.h"
#include "plan/listing.h"
#include "plan/planner.h"
#include "tests/support/fault_files.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void Fill(FaultFiles& files) {
  for (const char* name : {"a/1.csv", "a/2.csv", "a/deep/er/3.csv", "b/4.csv", "5.csv"}) {
    files.Put(std::string("/in/") + name, "x,y\n1,2\n3,4\n");
  }
  files.Put("/out/rows.txt", "");
}

PlanInput RowsInput() {
  PlanInput input;
  input.name = "rows";
  input.root = "/in";
  return input;
}

OpenStore StoresOn(const Files& files) { return FolderStores(files, {"/out", "/not/there"}); }

// Names with their sizes, or the error.
Result<std::vector<std::string>> Listed(const Files& files) {
  const PlanInput input = RowsInput();
  const auto store = StoresOn(files)(input);
  Listing listing(input, *store);
  std::vector<std::string> names;
  while (true) {
    const auto name = listing.Next();
    if (!name.ok()) return name.error();
    if (!*name) return names;
    std::string line((*name)->name);
    const auto found = Look(input, *store, line);
    if (!found.ok()) return found.error();
    if (*found) line += " " + std::to_string((*found)->size);
    names.push_back(line);
  }
}

TEST(PlanListingFaultsTest, EveryOperationFailsOnceAndNothingIsLeftOutInSilence) {
  FaultFiles healthy;
  Fill(healthy);
  const auto all = Listed(healthy);
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_THAT(*all, ElementsAre("5.csv 12", "a/1.csv 12", "a/2.csv 12", "a/deep/er/3.csv 12",
                                "b/4.csv 12"));
  for (uint64_t n = 1; n <= healthy.operations(); ++n) {
    FaultFiles files;
    Fill(files);
    files.FailOperation(n, Error{Code::kInternal, "injected"});
    const auto listed = Listed(files);
    ASSERT_FALSE(listed.ok()) << n;
    EXPECT_THAT(listed.error().message, HasSubstr("injected")) << n;
    EXPECT_THAT(listed.error().message, HasSubstr("inputs[rows]")) << n;
  }
}

// The input may lie below a folder of the job's own: not to know is not to allow.
TEST(PlanListingFaultsTest, AFolderThatMustNotBeMetAndCannotBeLookedAtIsAnError) {
  FaultFiles files;
  files.Put("/out/in/1", "x");
  PlanInput input = RowsInput();
  input.root = "/out/in";
  for (uint64_t n = 1; n <= 8; ++n) {
    files.FailOperation(n, Error{Code::kInternal, "injected"});
    EXPECT_FALSE(Listing(input, *StoresOn(files)(input)).Start().ok()) << n;
    files.ClearFaults();
  }
}

Result<std::vector<std::string>> Planned(const Files& files, const std::vector<PlanInput>& inputs) {
  Planner planner(inputs, FolderStores(files, {"/out"}), {});
  std::vector<std::string> chunks;
  while (true) {
    auto chunk = planner.Next();
    if (!chunk.ok()) return chunk.error();
    if (!*chunk) return chunks;
    chunks.push_back(std::move(**chunk));
  }
}

// Files, rows of text and groups: a plan is whole, or it is none.
TEST(PlanListingFaultsTest, APlanIsWholeOrFails) {
  PlanInput files_input = RowsInput();
  files_input.batch_size = 2;
  PlanInput rows = files_input;
  rows.kind = PlanKind::kDelimited;
  rows.batch_size = 1;
  PlanInput typed = rows;
  typed.decide_types = true;
  PlanInput groups = rows;
  groups.partition_format = "{n}/{rest}.csv";
  groups.partition_keys = {"n"};
  groups.pattern = "?/?.csv";
  for (const PlanInput& input : {files_input, rows, typed, groups}) {
    FaultFiles healthy;
    Fill(healthy);
    const auto whole = Planned(healthy, {input});
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    for (uint64_t n = 1; n <= healthy.operations(); ++n) {
      FaultFiles files;
      Fill(files);
      files.FailOperation(n, Error{Code::kInternal, "injected"});
      const auto planned = Planned(files, {input});
      ASSERT_FALSE(planned.ok()) << n;
      EXPECT_THAT(planned.error().message, HasSubstr("injected"));
    }
  }
}

}  // namespace
}  // namespace parallelrun::plan
