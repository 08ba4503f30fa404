#include "output/side_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hex.h"
#include "output/folder_sink.h"
#include "output/listed_files.h"
#include "output/output_file.h"
#include "output/publisher.h"
#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/output/ledger_of_three.h"

namespace parallelrun::output {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Contents = std::map<std::string, std::string>;  // by name

constexpr char kStagedSettings[] = R"({"output":{"sideFiles":"Staged"}})";

std::string DigestOf(const std::string& bytes) {
  Sha256 digest;
  digest.Add(bytes);
  return Hex(digest.Finish());
}

std::vector<json> JsonLines(const std::string& text) {
  std::vector<json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

// A job that stages side files: mini-batch 0 has left two and a row, 1 has failed, 2 has left a
// row.
class StagedJob : protected LedgerOfThree {
 public:
  struct Rows {
    std::string zero = "zero\n";
    std::string two = "two\n";
  };

  explicit StagedJob(bool list_alone) : StagedJob(list_alone, list_alone ? Rows{"", ""} : Rows()) {}
  StagedJob(bool list_alone, const Rows& rows)
      : LedgerOfThree(list_alone ? "_files.jsonl" : "rows.txt", kStagedSettings),
        list_alone_(list_alone) {
    Append(job::PlanEndRecord{3, 3});
    Succeed(2, {1, 11}, 1, "{}\n" + rows.two);
    for (const auto& [name, bytes] : FilesOfZero())
      files_.Put(Staged("process000-1f/7/" + name), bytes);
    const std::string zero = ListOfFiles() + "\n" + rows.zero;
    Append(job::RowsRecord{0, {1, 9}, std::string_view(zero).substr(0, 30)});  // within the list
    Succeed(0, {1, 9}, 1, zero.substr(30));
    Fail(1, {1, 3});
    EXPECT_TRUE(ledger_->Flush().ok());
    // An attempt that counts nowhere.
    files_.Put(Staged("process001-2e/4/a.txt"), "of nobody");
  }

  static Contents FilesOfZero() { return {{"a.txt", "one"}, {"models/deep/b.txt", "second"}}; }

  std::string Location() const { return list_alone_ ? "/out/_files.jsonl" : "/out/rows.txt"; }
  std::string Staged(const std::string& name) const {
    return "/out/" + StagingNameOf(7) + "/" + name;
  }
  using LedgerOfThree::files_;
  using LedgerOfThree::Reopen;
  void MayReplace() {
    job::SettingsRecord settings;
    settings.generation = 1;
    settings.plan_settings = kStagedSettings;
    settings.may_replace = true;
    Append(settings);
  }
  Result<Publication> Publish(api::OutputFormat format = api::OutputFormat::kText) {
    const std::unique_ptr<Sink> sink =
        MakeFolderSink(files_, Location(), ledger_->token_path(), {});
    PublishOptions options;
    options.format = format;
    StagedOutput& staged = options.staged.emplace();
    staged.files = &files_;
    staged.places = {"/out", StagingNameOf(7), {}, ReservedNames(list_alone_ ? "" : "rows.txt")};
    staged.list_alone = list_alone_;
    staged.newest = [this] { return newest_; };
    return PublishOutput(*sink, *ledger_, state_, options);
  }
  // Whether all side files are where they belong.
  bool AllThere() const {
    bool all = true;
    for (const auto& [name, bytes] : FilesOfZero()) {
      const std::string path = "/out/" + name;
      all = all && files_.Has(path) && files_.Contents(path) == bytes;
    }
    return all;
  }
  bool NoneThere() const {
    return !files_.Has("/out/a.txt") && !files_.Has("/out/models/deep/b.txt");
  }

  Status newest_;

 private:
  static std::string ListOfFiles() {
    std::string files;
    for (const auto& [name, bytes] : FilesOfZero()) {
      files += fmt::format(R"({}["{}",{},"{}"])", files.empty() ? "" : ",", name, bytes.size(),
                           DigestOf(bytes));
    }
    return fmt::format(R"({{"folder":"process000-1f/7","files":[{}]}})", files);
  }

  const bool list_alone_;
};

TEST(StagedPublisher, FilesOfAttemptsThatCountAreInTheirPlacesAndInTheIndex) {
  StagedJob job(false);
  const auto published = job.Publish();
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_TRUE(job.AllThere());
  EXPECT_EQ(job.files_.Contents("/out/rows.txt"), "zero\ntwo\n");
  EXPECT_EQ(published->published.rows, 2u);
  EXPECT_TRUE(job.files_.Has(job.Staged("process001-2e/4/a.txt"))) << "of nobody";
  const std::vector<json> index = JsonLines(job.files_.Contents("/out/rows.txt.index.jsonl"));
  ASSERT_EQ(index.size(), 4u);
  EXPECT_EQ(index[1]["miniBatch"], 0);
  EXPECT_EQ(index[1]["bytes"], 5);
  EXPECT_EQ(index[1]["files"],
            (json{{{"name", "a.txt"}, {"bytes", 3}, {"sha256", DigestOf("one")}},
                  {{"name", "models/deep/b.txt"}, {"bytes", 6}, {"sha256", DigestOf("second")}}}));
  EXPECT_FALSE(index[2].contains("files"));
}

TEST(StagedPublisher, WithSummaryOnlyTheListIsTheOutput) {
  StagedJob job(true);
  const auto published = job.Publish();
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_TRUE(job.AllThere());
  EXPECT_EQ(published->published.path, "/out/_files.jsonl");
  EXPECT_EQ(published->published.rows, 2u);
  EXPECT_EQ(published->lines, 0u);
  EXPECT_THAT(
      JsonLines(job.files_.Contents("/out/_files.jsonl")),
      ElementsAre(
          json{{"name", "a.txt"}, {"bytes", 3}, {"sha256", DigestOf("one")}, {"miniBatch", 0}},
          json{{"name", "models/deep/b.txt"},
               {"bytes", 6},
               {"sha256", DigestOf("second")},
               {"miniBatch", 0}}));
  const std::vector<json> index = JsonLines(job.files_.Contents("/out/_files.jsonl.index.jsonl"));
  ASSERT_EQ(index.size(), 4u);
  EXPECT_EQ(index[1]["rows"], 2);
  EXPECT_FALSE(index[1].contains("files"));
  EXPECT_EQ(index[2]["rows"], 0);
}

TEST(StagedPublisher, OnWhatIsNotThisRunsNothingIsMoved) {
  for (const bool list_alone : {false, true}) {
    StagedJob job(list_alone);
    job.files_.Put("/out/models/deep/b.txt", "a user's");
    const auto refused = job.Publish();
    EXPECT_EQ(refused.error().code, Code::kExists);
    EXPECT_THAT(refused.error().message, HasSubstr("/out/models/deep/b.txt is there, and is not"));
    EXPECT_FALSE(job.files_.Has("/out/a.txt"));
    EXPECT_FALSE(job.files_.Has(job.Location()));
    job.MayReplace();
    EXPECT_TRUE(job.Publish().ok());
    EXPECT_TRUE(job.AllThere());
  }
}

TEST(StagedPublisher, AFileThatIsGoneOrWasChangedIsToldBeforeAnythingIsMoved) {
  const auto refused = [](const std::function<void(StagedJob&)>& spoil) {
    StagedJob job(true);
    spoil(job);
    const auto published = job.Publish();
    EXPECT_FALSE(published.ok());
    EXPECT_FALSE(job.files_.Has(job.Location()));
    EXPECT_FALSE(job.files_.Has("/out/a.txt"));
    return published.ok() ? "" : published.error().message;
  };
  const std::string b = "process000-1f/7/models/deep/b.txt";
  EXPECT_THAT(
      refused([&](StagedJob& job) { job.files_.Drop(job.Staged(b)); }),
      HasSubstr("models/deep/b.txt of mini-batch 0 is neither in /out/.parallelrun-staged-"));
  EXPECT_THAT(refused([&](StagedJob& job) { job.files_.Put(job.Staged(b), "longer than it was"); }),
              HasSubstr("models/deep/b.txt of mini-batch 0 is not what that has left"));
  EXPECT_THAT(refused([&](StagedJob& job) {
                job.files_.Drop(job.Staged(b));
                job.files_.Put("/out/models/deep/b.txt", "SECOND");
              }),
              HasSubstr("nor, as it was, in its place"));
}

TEST(StagedPublisher, WhatAnEarlierEpochHasMovedStays) {
  StagedJob job(true);
  job.files_.Drop(job.Staged("process000-1f/7/a.txt"));
  job.files_.Put("/out/a.txt", "one");
  EXPECT_TRUE(job.Publish().ok());
  EXPECT_TRUE(job.AllThere());
  // All of it, and the list, once more: another epoch, which finds no folder any more.
  for (const auto& [name, bytes] : StagedJob::FilesOfZero()) {
    EXPECT_FALSE(job.files_.Has(job.Staged("process000-1f/7/" + name))) << name;
  }
  const std::string list = job.files_.Contents(job.Location());
  job.Reopen();
  EXPECT_TRUE(job.Publish().ok());
  EXPECT_EQ(job.files_.Contents(job.Location()), list);
}

TEST(StagedPublisher, WhoIsSupersededMovesNothing) {
  StagedJob job(false);
  job.newest_ = Error{Code::kStale, "a newer epoch"};
  EXPECT_EQ(job.Publish().error().code, Code::kStale);
  EXPECT_TRUE(job.NoneThere());
}

// The first mini-batch of the input has side files, and no row.
TEST(StagedPublisher, ColumnsAreThoseOfTheFirstRows) {
  StagedJob job(false, {"", "[\"x\", \"y\"]\n1,2\n"});
  const auto published = job.Publish(api::OutputFormat::kCsv);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(job.files_.Contents("/out/rows.txt"), "x,y\n1,2\n");
  StagedJob both(false, {"[\"y\"]\n3\n", "[\"y\"]\n4\n"});
  ASSERT_TRUE(both.Publish(api::OutputFormat::kCsv).ok());
  EXPECT_EQ(both.files_.Contents("/out/rows.txt"), "y\n3\n4\n");
}

TEST(StagedPublisher, RowGroupsStandBehindTheLists) {
  const std::string head = R"({"rows":1,"codec":"none","columns":[{"name":"a","type":"null"}]})";
  StagedJob job(false, {head + "\n", ""});
  const auto published = job.Publish(api::OutputFormat::kParquet);
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_TRUE(job.files_.Contents("/out/rows.txt").starts_with("PAR1"));
}

// Every operation fails once, before or after it happens, and then the machine crashes: where the
// list is, all files are; and the next epoch publishes the same.
TEST(StagedPublisherFaults, AListIsNowhereWithoutItsFiles) {
  const Error injected{Code::kInternal, "injected"};
  for (const bool list_alone : {false, true}) {
    for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
      for (const CrashMode mode :
           {CrashMode::kLoseAll, CrashMode::kKeepAll, CrashMode::kLoseSome}) {
        for (uint64_t n = 1;; ++n) {
          StagedJob job(list_alone);
          FaultFiles& files = job.files_;
          const uint64_t before = files.operations();
          files.FailOperation(n, injected, moment);
          const bool published = job.Publish().ok();
          const bool untouched = files.operations() - before < n;
          files.ClearFaults();
          if (!untouched) files.Crash(mode);
          const bool there = files.Has(job.Location());
          EXPECT_TRUE(there || !published) << n;
          EXPECT_TRUE(!there || job.AllThere()) << n;
          if (untouched) {
            EXPECT_GT(n, 20U);
            break;
          }
          job.Reopen();
          const auto again = job.Publish();
          ASSERT_TRUE(again.ok()) << n << ": " << again.error().message;
          EXPECT_TRUE(job.AllThere()) << n;
        }
      }
    }
  }
}

TEST(StagedPublisher, SideFilesOfTheOutputThatIsReplacedGo) {
  for (const bool list_alone : {false, true}) {
    StagedJob job(list_alone);
    json of_before = json::array();
    for (const char* name : {"a.txt", "old/deep/x.txt", "changed.txt", "gone.txt"}) {
      of_before.push_back({{"name", name}, {"bytes", 3}, {"sha256", DigestOf("abc")}});
    }
    std::string list;
    for (const json& file : of_before) list += file.dump() + "\n";
    job.files_.Put(job.Location(), list_alone ? list : "rows\n");
    if (!list_alone) {
      job.files_.Put("/out/rows.txt.index.jsonl",
                     R"({"parallelrunIndex":1,"output":"rows.txt"})"
                     "\n" +
                         json{{"miniBatch", 0}, {"files", of_before}}.dump() + "\n");
    }
    job.files_.Put("/out/a.txt", "abc");
    job.files_.Put("/out/old/deep/x.txt", "abc");
    job.files_.Put("/out/changed.txt", "by a user");
    job.files_.Put("/out/of-a-user.txt", "abc");
    EXPECT_EQ(job.Publish().error().code, Code::kExists);
    EXPECT_TRUE(job.files_.Has("/out/old/deep/x.txt"));
    job.MayReplace();
    const auto published = job.Publish();
    ASSERT_TRUE(published.ok()) << published.error().message;
    EXPECT_TRUE(job.AllThere());
    EXPECT_FALSE(job.files_.Has("/out/old/deep/x.txt"));
    EXPECT_FALSE(job.files_.HasFolder("/out/old"));
    EXPECT_TRUE(job.files_.Has("/out/changed.txt"));
    EXPECT_TRUE(job.files_.Has("/out/of-a-user.txt"));
  }
}

TEST(StagedList, IsComparedWithWhatIsThere) {
  for (const bool list_alone : {false, true}) {
    StagedJob job(list_alone);
    ASSERT_TRUE(job.Publish().ok());
    const auto check = [&job] {
      const auto found = CheckListedFiles(job.files_, job.Location());
      EXPECT_TRUE(found.ok());
      return *found;
    };
    EXPECT_EQ(check().files, 2u);
    EXPECT_EQ(check().bytes, 9u);
    EXPECT_EQ(check().damaged, 0u);
    job.files_.Put("/out/models/deep/b.txt", "SECOND");
    EXPECT_EQ(check().first, "models/deep/b.txt has other bytes than were published");
    job.files_.Put("/out/models/deep/b.txt", "s");
    EXPECT_EQ(check().first, "models/deep/b.txt has 1 byte, 6 were published");
    job.files_.Drop("/out/a.txt");
    EXPECT_EQ(check().damaged, 2u);
    EXPECT_EQ(check().first, "a.txt is not there");
  }
}

job::SideList ListOnDisk(const std::string& name, const std::string& bytes) {
  Sha256 digest;
  digest.Add(bytes);
  job::SideList list;
  list.folder = "process000-1f/7";
  list.files = {{name, bytes.size(), digest.Finish()}};
  return list;
}

class StagedFilesTest : public ::testing::Test {
 protected:
  Status Check(const job::SideList& list) const {
    OwnPlaces own;
    own.folders = {folder_.path("logs")};
    const auto files =
        StagedFiles::Open(DiskFiles(), {folder_.path(), kStaging, own, ReservedNames("rows.txt")});
    return files.ok() ? (*files)->Check(0, list, false) : Status(files.error());
  }
  void Stage(const std::string& name, const std::string& bytes) const {
    folder_.Write(kStaging + "/process000-1f/7/" + name, bytes);
  }

  const std::string kStaging = StagingNameOf(7);
  const TempFolder folder_{};
};

TEST_F(StagedFilesTest, NamesOfTheJobAreRefused) {
  for (const char* const name : {"rows.txt", "rows.txt.index.jsonl", ".rows.txt.parallelrun-claim",
                                 "logs/a.txt", "lost+found", ".parallelrun-claim",
                                 ".parallelrun-staged-0000000000000008/a", "rows.txt/a"}) {
    Stage(name, "x");
    const Status refused = Check(ListOnDisk(name, "x"));
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalid) << name;
    std::filesystem::remove_all(folder_.path(kStaging));
  }
  Stage("rows.txt.gz", "x");
  EXPECT_TRUE(Check(ListOnDisk("rows.txt.gz", "x")).ok());
}

TEST_F(StagedFilesTest, NoLinkIsFollowed) {
  folder_.Write("secret/7/a.txt", "x");
  std::filesystem::create_directories(folder_.path(kStaging));
  std::filesystem::create_directory_symlink(folder_.path("secret"),
                                            folder_.path(kStaging + "/process000-1f"));
  EXPECT_EQ(Check(ListOnDisk("a.txt", "x")).error().code, Code::kPermission);
  std::filesystem::remove(folder_.path(kStaging + "/process000-1f"));
  Stage("b.txt", "x");
  std::filesystem::create_symlink(folder_.path("secret/7/a.txt"),
                                  folder_.path(kStaging + "/process000-1f/7/a.txt"));
  EXPECT_FALSE(Check(ListOnDisk("a.txt", "x")).ok());
}

TEST(StagedPublisher, WhatIsForbiddenIsForAPerson) {
  StagedJob job(true);
  job.newest_ = Error{Code::kPermission, "rename /out/a.txt: not permitted"};
  const auto refused = job.Publish();
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_THAT(refused.error().message, HasSubstr("must run as the user of the nodes"));
}

TEST_F(StagedFilesTest, WhatIsNoFolderIsInTheWay) {
  Stage("a/b/c.txt", "x");
  folder_.Write("a/b", "a file");
  EXPECT_EQ(Check(ListOnDisk("a/b/c.txt", "x")).error().code, Code::kExists);
  std::filesystem::remove(folder_.path("a/b"));
  EXPECT_TRUE(Check(ListOnDisk("a/b/c.txt", "x")).ok());
  std::filesystem::create_directory_symlink("/tmp", folder_.path("a/b"));
  EXPECT_EQ(Check(ListOnDisk("a/b/c.txt", "x")).error().code, Code::kExists);
  std::filesystem::remove(folder_.path("a/b"));
  std::filesystem::create_directories(folder_.path("a/b/c.txt"));
  EXPECT_EQ(Check(ListOnDisk("a/b/c.txt", "x")).error().code, Code::kExists) << "it is a folder";
}

TEST_F(StagedFilesTest, AFileMovesWithTheFoldersThatItNeeds) {
  Stage("a/b/c.txt", "x");
  folder_.Write("a/there.txt", "");
  const auto files = StagedFiles::Open(DiskFiles(), {folder_.path(), kStaging, {}, {}});
  ASSERT_TRUE(files.ok());
  const job::SideList list = ListOnDisk("a/b/c.txt", "x");
  ASSERT_TRUE((*files)->Check(0, list, false).ok());
  ASSERT_TRUE((*files)->Move(list).ok());
  ASSERT_TRUE((*files)->Sync().ok());
  EXPECT_EQ(folder_.Read("a/b/c.txt"), "x");
  EXPECT_TRUE((*files)->Check(0, list, false).ok()) << "it is in its place";
  Stage("a/b/c.txt", "x");
  EXPECT_TRUE((*files)->Check(0, list, false).ok()) << "under both names";
  EXPECT_TRUE((*files)->Move(list).ok());
  EXPECT_FALSE(folder_.Exists(kStaging + "/process000-1f/7/a/b/c.txt"));
  EXPECT_TRUE((*files)->Move(list).ok());
}

TEST_F(StagedFilesTest, WhatAttemptsHaveLeftGoesAndNothingElse) {
  const std::string other = StagingNameOf(8);
  Stage("a/b/c.txt", "x");
  folder_.Write(other + "/a", "x");
  folder_.Write("kept/a.txt", "x");
  folder_.Write(kStaging + ".gone/a", "half removed");
  std::filesystem::create_directory_symlink(folder_.path("kept"),
                                            folder_.path(kStaging + "/process000-1f/link"));
  ASSERT_TRUE(RemoveStaged(DiskFiles(), folder_.path(), 7).ok());
  EXPECT_FALSE(folder_.Exists(kStaging));
  EXPECT_FALSE(folder_.Exists(kStaging + ".gone"));
  EXPECT_TRUE(folder_.Exists(other + "/a"));
  EXPECT_TRUE(folder_.Exists("kept/a.txt"));
  EXPECT_TRUE(RemoveStaged(DiskFiles(), folder_.path(), 7).ok()) << "nothing is there";
  EXPECT_TRUE(RemoveStaged(DiskFiles(), folder_.path("none"), 7).ok());
}

TEST(StagedNames, AreOfTheJob) {
  EXPECT_EQ(StagingNameOf(0x9f), ".parallelrun-staged-000000000000009f");
  const OwnPlaces own;
  for (const char* name :
       {".parallelrun-staged-000000000000009f/p/1/a", "._files.jsonl.00.1.tmp"}) {
    EXPECT_TRUE(IsOwn(own, "/out", name)) << name;
  }
  // A run that starts over removes its list.
  EXPECT_FALSE(IsOwn(own, "/out", "_files.jsonl"));
  EXPECT_THAT(ReservedNames(""), ElementsAre("_files.jsonl", "_files.jsonl.index.jsonl"));
  EXPECT_THAT(ReservedNames("r.txt"), ElementsAre("r.txt", "r.txt.index.jsonl"));
}

}  // namespace
}  // namespace parallelrun::output
