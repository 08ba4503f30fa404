#include "output/store/store_reports.h"

#include <gmock/gmock.h>

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/memory_write_store.h"

namespace parallelrun::output {
namespace {

using ::testing::HasSubstr;
using Fault = MemoryWriteStore::Fault;

constexpr char kReported[] = "out/rows.txt";
constexpr char kReportObject[] = "out/rows.txt.run/report.html";

class StoreReportsTest : public ::testing::Test {
 protected:
  Status Tell(uint64_t run, const std::string& text, uint32_t generation = 1) {
    Report report = About(text);
    report.bytes = text.size();
    return PutReport(store_, {kReported, {run, generation}, newest_}, report);
  }
  // The logs have none.
  Status TellNothing(uint64_t run) {
    return PutReport(store_, {kReported, {run, 1}, newest_}, About(""));
  }
  std::string There() const {
    const MemoryWriteStore::Object* const object = store_.Find(kReportObject);
    return object == nullptr ? "(none)" : object->bytes;
  }
  void Output(uint64_t run) { store_.Write(kReported, "rows", MarksOf(OutputMark{run, 1})); }
  // Right before the first request of that kind.
  void Before(const std::string& kind, std::function<void()> action) {
    store_.SetFaults(
        [kind, action = std::move(action), met = false](size_t, const std::string& what) mutable {
          if (what == kind && !std::exchange(met, true)) action();
          return Fault::kNone;
        });
  }

  MemoryWriteStore store_;
  std::function<Status()> newest_ = [] { return Status(); };

 private:
  static Report About(const std::string& text) {
    Report report;
    report.name = "report.html";
    report.read = [text](uint64_t offset, std::span<char> to) -> Result<size_t> {
      return text.copy(to.data(), to.size(), static_cast<size_t>(offset));
    };
    return report;
  }
};

TEST_F(StoreReportsTest, AReportLiesBesideTheOutputWithTheMarksOfItsRun) {
  ASSERT_TRUE(Tell(7, "all is well").ok());
  EXPECT_EQ(There(), "all is well");
  EXPECT_EQ(MarkOf(store_.Find(kReportObject)->marks), (OutputMark{7, 1}));
  EXPECT_EQ(store_.Find(kReportObject)->marks.at("parallelrun-bytes"), "11");
  EXPECT_EQ(store_.requests(), (std::vector<std::string>{"look", "put"}));
}

TEST_F(StoreReportsTest, ALaterEpochAndALaterTryReplaceTheirOwn) {
  ASSERT_TRUE(Tell(7, "one", 1).ok());
  ASSERT_TRUE(Tell(7, "one, again", 1).ok());
  ASSERT_TRUE(Tell(7, "two", 2).ok());
  EXPECT_EQ(There(), "two");
  const Status older = Tell(7, "one", 1);
  EXPECT_EQ(older.error().code, Code::kExists);
  EXPECT_THAT(older.error().message, HasSubstr("of a later try of this run"));
  EXPECT_EQ(There(), "two");
}

TEST_F(StoreReportsTest, WhatNoRunHasPutThereStays) {
  store_.Write(kReportObject, "a user's");
  const Status told = Tell(7, "ours");
  EXPECT_EQ(told.error().code, Code::kExists);
  EXPECT_EQ(told.error().message,
            "s3://bucket/out/rows.txt.run/report.html is there, and no run has put it there: move "
            "it away");
  EXPECT_EQ(There(), "a user's");
  // A server that leaves marks with the next object of a name.
  store_.Drop(kReportObject);
  ASSERT_TRUE(Tell(7, "ours").ok());
  store_.Write(kReportObject, "a user's", store_.Find(kReportObject)->marks);
  EXPECT_EQ(Tell(7, "ours").error().code, Code::kExists);
  EXPECT_EQ(There(), "a user's");
}

TEST_F(StoreReportsTest, AnotherRunsReportStaysAsLongAsItsOutputDoes) {
  ASSERT_TRUE(Tell(7, "of the output").ok());
  Output(7);
  const Status failed = Tell(8, "to replace it, and failed");
  EXPECT_EQ(failed.error().code, Code::kExists);
  EXPECT_THAT(failed.error().message, HasSubstr("of the run whose output is there"));
  EXPECT_EQ(There(), "of the output");
  Output(8);
  EXPECT_TRUE(Tell(8, "has replaced it").ok());
  // A run that failed before has left no output.
  store_.Drop(kReported);
  EXPECT_TRUE(Tell(9, "the next one").ok());
  store_.Write(kReported, "somebody's");
  EXPECT_TRUE(Tell(10, "and the next").ok());
  EXPECT_EQ(There(), "and the next");
}

TEST_F(StoreReportsTest, WhatALaterTryHasNoneOfIsEmptied) {
  EXPECT_TRUE(TellNothing(7).ok());
  EXPECT_EQ(There(), "(none)");
  ASSERT_TRUE(Tell(7, "a failure").ok());
  EXPECT_TRUE(TellNothing(7).ok());
  EXPECT_EQ(There(), "");
  store_.Write(kReportObject, "a user's");
  EXPECT_TRUE(TellNothing(7).ok()) << "nothing is in the way of nothing";
  EXPECT_EQ(There(), "a user's");
}

TEST_F(StoreReportsTest, WhatAppearsInBetweenIsJudgedAnew) {
  Before("put", [this] { store_.Write(kReportObject, "a user's"); });
  EXPECT_EQ(Tell(7, "ours").error().code, Code::kExists);
  EXPECT_EQ(There(), "a user's");
  store_.Drop(kReportObject);
  ASSERT_TRUE(Tell(7, "ours").ok());
  Before("put", [this] { store_.Drop(kReportObject); });
  EXPECT_TRUE(Tell(7, "ours, again").ok());
  EXPECT_EQ(There(), "ours, again");
}

TEST_F(StoreReportsTest, ALostAnswerIsFoundToBeItsOwn) {
  bool lost = false;
  store_.SetFaults([&](size_t, const std::string& what) {
    return what == "put" && !std::exchange(lost, true) ? Fault::kLostAnswer : Fault::kNone;
  });
  EXPECT_TRUE(Tell(7, "ours").ok());
  EXPECT_EQ(There(), "ours");
}

TEST_F(StoreReportsTest, WhoIsNotTheNewestPutsNothing) {
  newest_ = [] { return Error{Code::kStale, "a newer coordinator has taken over"}; };
  EXPECT_EQ(Tell(7, "of the older one").error().code, Code::kStale);
  EXPECT_EQ(There(), "(none)");
}

TEST_F(StoreReportsTest, AStoreThatIsAwayIsTold) {
  for (const char* const at : {"look", "put"}) {
    store_.SetFaults([at](size_t, const std::string& what) {
      return what == at ? Fault::kRefused : Fault::kNone;
    });
    EXPECT_EQ(Tell(7, "ours").error().code, Code::kUnavailable) << at;
    EXPECT_EQ(There(), "(none)");
  }
}

TEST_F(StoreReportsTest, ALargeOneIsSentInPartsAndLeavesNoUpload) {
  const std::string large((size_t{16} << 20) + 1, 'x');
  ASSERT_TRUE(Tell(7, large).ok());
  EXPECT_EQ(There(), large);
  EXPECT_EQ(MarkOf(store_.Find(kReportObject)->marks), (OutputMark{7, 1}));
  EXPECT_EQ(store_.uploads(), 0u);
  ASSERT_TRUE(Tell(7, "small").ok());
  Before("complete", [this] { store_.Write(kReportObject, "a user's"); });
  EXPECT_EQ(Tell(7, large).error().code, Code::kExists);
  EXPECT_EQ(There(), "a user's");
  EXPECT_EQ(store_.uploads(), 0u);
}

TEST_F(StoreReportsTest, AFileThatBecomesShorterIsNotTaken) {
  Report report;
  report.name = "report.html";
  report.bytes = 10;
  report.read = [](uint64_t offset, std::span<char> to) -> Result<size_t> {
    return std::string("short").copy(to.data(), to.size(), static_cast<size_t>(offset));
  };
  EXPECT_EQ(PutReport(store_, {kReported, {7, 1}, newest_}, report).error().code, Code::kInvalid);
  EXPECT_EQ(There(), "(none)");
}

}  // namespace
}  // namespace parallelrun::output
