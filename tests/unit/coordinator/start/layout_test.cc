#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/start/layout.h"
#include "job/side_inputs.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

api::Job JobOf(api::InputKind kind) {
  api::Job job;
  api::Input input;
  input.name = "in";
  input.kind = kind;
  input.from = {"data", "a/b"};
  input.partition_format = "{user}/{n}.x";
  job.spec.inputs = {input};
  job.spec.mini_batch_size = 7;
  job.spec.output.to = {"data", "out"};
  job.spec.logs.to = {"data", "logs"};
  job.spec.state.in = {"data", "state"};
  return job;
}

const Volumes kVolumes = {{"data", "/volumes/data"}};

TEST(PlanLayoutTest, EveryKindOfInput) {
  const auto kind_of = [](const api::Job& job) {
    const auto layout = LayOut(job, kVolumes);
    EXPECT_TRUE(layout.ok());
    return layout->inputs.at(0).kind;
  };
  EXPECT_EQ(kind_of(JobOf(api::InputKind::kFiles)), plan::PlanKind::kFiles);
  EXPECT_EQ(kind_of(JobOf(api::InputKind::kJsonLines)), plan::PlanKind::kJsonLines);
  EXPECT_EQ(kind_of(JobOf(api::InputKind::kTabular)), plan::PlanKind::kDelimited);
  api::Job parquet = JobOf(api::InputKind::kTabular);
  parquet.spec.inputs[0].tabular.format = api::TabularFormat::kParquet;
  EXPECT_EQ(kind_of(parquet), plan::PlanKind::kParquet);
}

TEST(PlanLayoutTest, AnInputMayLieBelowTheFolderOfAnOutputThatIsOneFile) {
  const auto forbidden = [](const api::Job& job) { return LayOut(job, kVolumes)->forbidden; };
  const std::string logs = "/volumes/data/logs";
  const std::string state = "/volumes/data/state";
  api::Job job = JobOf(api::InputKind::kFiles);
  EXPECT_THAT(forbidden(job), ElementsAre(logs, state, "/volumes/data/out"));
  job.spec.output.to.path = "a";
  EXPECT_THAT(forbidden(job), ElementsAre(logs, state));
  job.spec.output.action = api::OutputAction::kSummaryOnly;
  EXPECT_THAT(forbidden(job), ElementsAre(logs, state, "/volumes/data/a"));
  job.spec.output.action = api::OutputAction::kAppendRow;
  job.spec.output.to.path = "a/b";
  EXPECT_THAT(forbidden(job), ElementsAre(logs, state, "/volumes/data/a/b")) << "it is the input";
  job.spec.output.to.path = "a";
  job.spec.inputs.push_back(job.spec.inputs[0]);
  job.spec.inputs[1].from.path = "";
  EXPECT_THAT(forbidden(job), ElementsAre(logs, state, "/volumes/data/a"))
      << "and another holds it";
}

TEST(PlanLayoutTest, WithSummaryOnlyTheListOfStagedSideFilesIsPublished) {
  api::Job job = JobOf(api::InputKind::kFiles);
  const std::string folder = "/volumes/data/out";
  const std::string file = folder + "/" + job.spec.output.file_name;
  EXPECT_EQ(LayOut(job, kVolumes)->published_path, file);
  EXPECT_FALSE(LayOut(job, kVolumes)->stages);
  job.spec.output.side_files = api::SideFiles::kStaged;
  EXPECT_TRUE(LayOut(job, kVolumes)->stages);
  EXPECT_EQ(LayOut(job, kVolumes)->published_path, file);
  job.spec.output.action = api::OutputAction::kSummaryOnly;
  EXPECT_EQ(LayOut(job, kVolumes)->published_path, folder + "/_files.jsonl");
  EXPECT_EQ(LayOut(job, kVolumes)->output_path, "");
  job.spec.output.side_files = api::SideFiles::kDirect;
  EXPECT_EQ(LayOut(job, kVolumes)->published_path, "");
}

// The script and messages get one form of it.
TEST(PlanLayoutTest, APathInAStoreThatEndsInASlashIsAPrefix) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://b0b/x/", "", "", std::nullopt}};
  job.spec.inputs[0].store = "bucket";
  for (const bool prefix : {false, true}) {
    job.spec.inputs[0].from = {"", prefix ? "a/b/" : "a/b"};
    const auto layout = LayOut(job, kVolumes);
    ASSERT_TRUE(layout.ok()) << layout.error().message;
    EXPECT_EQ(layout->inputs[0].root, "s3://b0b/x/a/b");
    EXPECT_EQ(layout->inputs[0].is_prefix, prefix);
    EXPECT_EQ(layout->placeholders.at("inputs.in"), "s3://b0b/x/a/b");
  }
}

TEST(PlanLayoutTest, ASideInputInAStoreIsWhereEachNodePutsIt) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://b0b/x/", "", "", std::nullopt}};
  for (const bool prefix : {false, true}) {
    api::SideInput side;
    side.name = "model";
    side.store = "bucket";
    side.from = {"", prefix ? "m/v1/" : "m/v1"};
    job.spec.side_inputs = {side};
    const auto layout = LayOut(job, kVolumes);
    ASSERT_TRUE(layout.ok()) << layout.error().message;
    ASSERT_EQ(layout->side_inputs.size(), 1u);
    EXPECT_EQ(layout->side_inputs[0].name, "model");
    EXPECT_EQ(layout->side_inputs[0].store, "bucket");
    EXPECT_EQ(layout->side_inputs[0].root, "s3://b0b/x/m/v1");
    EXPECT_EQ(layout->side_inputs[0].is_prefix, prefix);
    EXPECT_EQ(layout->placeholders.at("sideInputs.model"), job::SideInputMark("model"));
  }
  job.spec.side_inputs[0].store = "other";
  EXPECT_THAT(LayOut(job, kVolumes).error().message, HasSubstr("spec.sideInputs[0] (model)"));
}

TEST(PlanLayoutTest, LogsThatGoToAStoreAreGatheredBesideTheState) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://b0b/x/", "", "", std::nullopt}};
  job.spec.logs.to = {"", "job/logs"};
  job.spec.logs.store = "bucket";
  job.spec.state.in = {"data", "job/state"};
  auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->log_store, "bucket");
  EXPECT_EQ(layout->log_url, "s3://b0b/x/job/logs");
  EXPECT_EQ(layout->log_folder, "/volumes/data/job/logs");

  // Nothing of a volume lies beside its root.
  job.spec.state.in.path = ".";
  layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->log_folder, "/volumes/data/logs");
  job.spec.logs.store = "other";
  EXPECT_THAT(LayOut(job, kVolumes).error().message, HasSubstr("spec.logs"));
}

// The folder has what is of this machine alone, whatever the path in the store is.
TEST(PlanLayoutTest, AStateInAStoreHasAFolderBesideIt) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"results", "s3://results/of", "", "", {}, {}}};
  job.spec.output.to = {"", "scores"};
  job.spec.output.store = "results";
  job.spec.state.store = "results";
  job.spec.state.in = {"data", "scores/.parallelrun"};
  job.spec.logs = {{"", "logs"}, "results"};
  const Result<JobLayout> layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->state_folder, "/volumes/data/state");
  EXPECT_EQ(layout->state_store, "results");
  EXPECT_EQ(layout->state_url, "s3://results/of/scores/.parallelrun");
  EXPECT_EQ(layout->log_folder, "/volumes/data/logs");
  EXPECT_EQ(layout->output_folder, "/volumes/data/outputs");
  job.spec.state.store = "others";
  EXPECT_THAT(LayOut(job, kVolumes).error().message,
              HasSubstr("spec.state: there is no store \"others\""));
}

TEST(PlanLayoutTest, D8PartitionKeysWinOverTheSize) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.partition_keys = {"user"};
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->inputs[0].root, "/volumes/data/a/b");
  EXPECT_EQ(layout->inputs[0].partition_format, "{user}/{n}.x");
  EXPECT_THAT(layout->inputs[0].partition_keys, ElementsAre("user"));
}

TEST(PlanLayoutTest, RankMiniBatchesLeaveTheInputsWhole) {
  api::Job job = JobOf(api::InputKind::kJsonLines);
  job.spec.rank_mini_batch_count = 12;
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok());
  ASSERT_EQ(layout->inputs.size(), 1u);
  EXPECT_EQ(layout->inputs[0].kind, plan::PlanKind::kRanks);
  EXPECT_EQ(layout->inputs[0].batch_size, 12u);
  EXPECT_EQ(layout->placeholders.at("inputs.in"), "/volumes/data/a/b");
}

TEST(PlanLayoutTest, AnInputInAStoreIsBelowItsUrl) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://bucket/in/", "", "", {}, {}}};
  job.spec.inputs[0].from = {"", "a/b"};
  job.spec.inputs[0].store = "bucket";
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->inputs[0].root, "s3://bucket/in/a/b");
  EXPECT_EQ(layout->inputs[0].store, "bucket");
  EXPECT_EQ(layout->placeholders.at("inputs.in"), "s3://bucket/in/a/b");
  job.spec.inputs[0].from.path = ".";
  EXPECT_EQ(LayOut(job, kVolumes)->inputs[0].root, "s3://bucket/in");
  job.spec.stores[0].url = "s3://B_/in";
  const auto refused = LayOut(job, kVolumes);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("spec.inputs[0] (in)"));
}

TEST(PlanLayoutTest, AManifestLiesWhereItsInputLies) {
  api::Job job = JobOf(api::InputKind::kFiles);
  api::Input& input = job.spec.inputs[0];
  input.partition_format = "";
  input.manifest =
      api::Manifest{"lists/today.csv",     api::ManifestFormat::kCsv, "file", "bytes", "etag",
                    api::Duplicates::kKeep};
  auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  const plan::PlanManifest& here = layout->inputs[0].manifest;
  EXPECT_EQ(here.path, "/volumes/data/lists/today.csv");
  EXPECT_EQ(here.below, "") << "it has no URLs";
  EXPECT_EQ(here.format, api::ManifestFormat::kCsv);
  EXPECT_EQ(here.column + " " + here.size_column + " " + here.etag_column, "file bytes etag");
  EXPECT_TRUE(here.keeps_twice);
  EXPECT_TRUE(layout->inputs[0].decide_types) << "which one it is stands in the ledger";

  job.spec.stores = {{"bucket", "s3://bucket/in/", "", "", {}, {}}};
  input.from = {"", "a/b/"};
  input.store = "bucket";
  layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->inputs[0].manifest.path, "s3://bucket/in/lists/today.csv");
  EXPECT_EQ(layout->inputs[0].manifest.below, "s3://bucket/in/a/b/");
}

TEST(PlanLayoutTest, AnOutputInAStoreLeavesAFolderBesideTheState) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"bucket", "s3://bucket/of/results/", "", "", {}, {}}};
  job.spec.output.to = {"", "2026"};
  job.spec.output.store = "bucket";
  job.spec.output.file_name = "rows.txt";
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->output_path, "s3://bucket/of/results/2026/rows.txt");
  EXPECT_EQ(layout->output_store, "bucket");
  EXPECT_EQ(layout->output_name, "2026/rows.txt");
  EXPECT_EQ(layout->output_folder, "/volumes/data/outputs");
  EXPECT_FALSE(layout->placeholders.contains("output"));
  job.spec.output.to.path = ".";
  EXPECT_EQ(LayOut(job, kVolumes)->output_name, "rows.txt");
}

TEST(PlanLayoutTest, WhatIsWrittenToAStoreIsEncryptedAsTheJobSays) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"out", "s3://out", "", "", {}, {}}};
  job.spec.stores[0].encryption = {api::Encryption::kKms, "alias/results"};
  const auto layout = LayOut(job, kVolumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->stores.at("out").encryption.algorithm, "aws:kms");
  EXPECT_EQ(layout->stores.at("out").encryption.kms_key_id, "alias/results");
}

TEST(PlanLayoutTest, AStoreWhoseKeysAreFilesIsAskedWithThem) {
  api::Job job = JobOf(api::InputKind::kFiles);
  job.spec.stores = {{"in", "s3://in", "eu", "http://h", true, {"photos-keys", "id", "key", ""}},
                     {"out", "s3://out", "", "", {}, {}}};
  const auto layout = LayOut(job, kVolumes, {{"in", "/keys/in"}});
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  const store::Wished& in = layout->stores.at("in");
  EXPECT_EQ(in.url, "s3://in");
  EXPECT_EQ(in.region, "eu");
  EXPECT_EQ(in.endpoint, "http://h");
  EXPECT_EQ(in.path_style, true);
  EXPECT_EQ(in.keys.folder, "/keys/in");
  EXPECT_EQ(in.keys.of, "Secret photos-keys");
  EXPECT_EQ(layout->stores.at("out").keys.folder, "");
  EXPECT_EQ(in.encryption.algorithm, "");
  // A run on this machine has no such files, whatever its job says.
  EXPECT_EQ(LayOut(job, kVolumes)->stores.at("in").keys.folder, "");
}

TEST(PlanLayoutTest, JsonLinesCannotBeGrouped) {
  api::Job job = JobOf(api::InputKind::kJsonLines);
  job.spec.partition_keys = {"user"};
  const auto layout = LayOut(job, kVolumes);
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code, Code::kInvalid);
  EXPECT_THAT(layout.error().message, HasSubstr("spec.inputs[0] (in): JSON lines cannot be"));
}

}  // namespace
}  // namespace parallelrun::coordinator
