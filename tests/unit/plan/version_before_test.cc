// A run that goes on under a later release has versions of objects in its plan as the earlier one
// wrote them: whatever stands before a store must pass on what that says of them, or each file
// counts as changed.
#include <gtest/gtest.h>

#include "plan/object_or_prefix.h"
#include "plan/table_logs.h"
#include "tests/support/memory_store.h"
#include "tests/unit/plan/folder.h"
#include "tests/unit/plan/plans.h"

namespace parallelrun::plan {
namespace {

using store::Version;

TEST(VersionBefore, WhatStandsBeforeAStoreSaysTheSame) {
  MemoryObjects objects;
  objects.Put("memory://bucket/in/a.csv", "id\n1\n");
  const auto open = [&](const PlanInput& input) { return objects.Open(input.root); };
  const auto checked = RefusingTableLogs(open)(Rows("memory://bucket/in", 1));
  EXPECT_EQ(checked->AsBefore(Version("put 1")), Version("earlier put 1"));
  const auto either =
      ObjectOrPrefix(objects.Open("memory://bucket/in"), objects.Open("memory://bucket"), "in");
  EXPECT_EQ(either->AsBefore(Version("put 1")), Version("earlier put 1"));
  EXPECT_TRUE(either->IsStill(Version("earlier put 1"), Version("put 1")));
}

TEST(VersionBefore, ThatOfAFileHasStayedAsItIs) {
  PlanFolder folder;
  folder.Write("a", "x");
  const auto store = FolderStores(DiskFiles())(FilesInput(folder.path(), 1));
  const Version version = store->Stat("a").value()->version;
  EXPECT_EQ(store->AsBefore(version), version);
}

}  // namespace
}  // namespace parallelrun::plan
