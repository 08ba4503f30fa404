// Sizes, processes, arguments, plan settings and names: the small pure functions of src/api.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "api/arguments.h"
#include "api/defaults.h"
#include "api/devices.h"
#include "api/node.h"
#include "api/output_address.h"
#include "api/problem.h"
#include "api/processes.h"
#include "api/settings.h"
#include "api/sizes.h"
#include "api/text.h"
#include "api/to_json.h"

namespace parallelrun::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OutputAddress, IsTheSameForTwoJobsThatPublishToOneObject) {
  JobSpec spec;
  spec.stores = {{"a", "s3://bucket/of/", "", "http://h", {}, {}},
                 {"b", "s3://bucket", "", "http://h", {}, {}}};
  spec.output.store = "a";
  spec.output.to.path = "2026";
  spec.output.file_name = "rows.txt";
  const std::string address = OutputAddress("one", spec);
  EXPECT_EQ(address, R"(["store","http://h","s3://bucket/of/2026/rows.txt"])");
  EXPECT_EQ(OutputAddress("other", spec), address) << "a bucket is not a namespace's";
  spec.output.store = "b";
  EXPECT_NE(OutputAddress("one", spec), address);
  spec.output.to.path = "of/2026";
  EXPECT_EQ(OutputAddress("one", spec), address);
  spec.stores[1].endpoint = "http://other";
  EXPECT_NE(OutputAddress("one", spec), address);
}

TEST(LogPlace, IsAFolderOfAVolumeOrAUrl) {
  JobSpec spec;
  spec.logs.to = {"out", "digits/logs"};
  EXPECT_EQ(LogPlace(spec), "out/digits/logs");
  spec.stores = {{"a", "s3://bucket/of/", "", "", {}, {}}};
  spec.logs = {{"", "digits/logs"}, "a"};
  EXPECT_EQ(LogPlace(spec), "s3://bucket/of/digits/logs");
  spec.logs.to.path = ".";
  EXPECT_EQ(LogPlace(spec), "s3://bucket/of");
}

TEST(Sizes, MiniBatchSize) {
  const struct {
    const char* text;
    uint64_t value;
    bool has_unit;
  } good[] = {{"1", 1, false},
              {"010", 10, false},
              {"1024", 1024, false},
              {"1KB", 1024, true},
              {"10mb", 10485760, true},
              {"1gB", 1073741824, true},
              {"8589934591GB", 9223372035781033984U, true}};
  for (const auto& [text, value, has_unit] : good) {
    const auto size = ParseSize(text);
    ASSERT_TRUE(size.ok()) << text;
    EXPECT_EQ(size->value, value) << text;
    EXPECT_EQ(size->has_unit, has_unit) << text;
  }
  const struct {
    const char* text;
    const char* says;
  } bad[] = {{"10Mi", "write 10MB (powers of 1024)"},
             {"10 MB", "write 10MB"},
             {"10k", "write 10KB"},
             {"10GiB", "write 10GB"},
             {"10B", "write 10"},
             {"", "write a number"},
             {"-1", "write a number"},
             {"1.5MB", "write a number"},
             {"MB", "write a number"},
             {"10TB", "write a number"},
             {"1KBKB", "write a number"},
             {"0", "at least 1"},
             {"0MB", "at least 1"},
             {"8589934592GB", "too large"},
             {"99999999999999999999", "too large"}};
  for (const auto& [text, says] : bad) {
    const auto size = ParseSize(text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(size.error().message, HasSubstr(says)) << text;
  }
}

TEST(Sizes, Quantities) {
  const struct {
    const char* text;
    int64_t scale;
    int64_t value;
  } good[] = {{"500m", 1000, 500},
              {"2", 1000, 2000},
              {"0.1", 1000, 100},
              {"0.0001", 1000, 1},
              {"1e3", 1, 1000},
              {"1E3", 1, 1000},
              {"1E", 1, 1000000000000000000},
              {"4Gi", 1, 4294967296},
              {"1.5Gi", 1, 1610612736},
              {"128M", 1, 128000000},
              {"1k", 1, 1000},
              {"100n", 1, 1},
              {".5", 1000, 500},
              {"5.", 1, 5},
              {"+3", 1, 3},
              {"1e-100", 1, 1},
              {"0e99", 1, 0},
              {"7Ei", 1, 8070450532247928832}};
  for (const auto& [text, scale, value] : good) {
    const auto quantity = ParseQuantity(text, scale);
    ASSERT_TRUE(quantity.ok()) << text << ": " << quantity.error().message;
    EXPECT_EQ(*quantity, value) << text;
  }
  for (const char* text : {"", "Gi", "512MB", "4GiB", "-1", "1 Gi", "1K", "1e", "1e+", "1..2", ".",
                           "8Ei", "1e30", "1e999999999999", "1234567890123456789", "0x10", "mi"}) {
    EXPECT_FALSE(ParseQuantity(text, 1).ok()) << text;
  }
}

TEST(Processes, WhereTheCountComesFrom) {
  const struct {
    const char* resources;
    int32_t count;
    const char* source;
  } table[] = {
      {"null", 1, "default"},
      {R"({"limits": {"memory": "4Gi"}})", 1, "default"},
      {R"({"limits": {"nvidia.com/gpu": 2, "cpu": "8"}})", 2, "nvidia.com/gpu limit"},
      {R"({"limits": {"nvidia.com/gpu": "4"}})", 4, "nvidia.com/gpu limit"},
      {R"({"limits": {"amd.com/gpu": 1, "cpu": "8"}})", 1, "amd.com/gpu limit"},
      {R"({"limits": {"nvidia.com/gpu": 0, "cpu": "3"}})", 3, "cpu limit"},
      {R"({"limits": {"nvidia.com/gpu.shared": 4, "cpu": "8"}})", 4, "nvidia.com/gpu.shared limit"},
      {R"({"limits": {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/mig-2g.10gb": "1"}})", 3,
       "nvidia.com/mig-1g.5gb and nvidia.com/mig-2g.10gb limit"},
      {R"({"limits": {"gpu.intel.com/xe": 2, "gpu.intel.com/millicores": 500}})", 2,
       "gpu.intel.com/xe limit"},
      {R"({"limits": {"cpu": "3", "aliyun.com/gpu-mem": 16}})", 3, "cpu limit"},
      {R"({"limits": {"cpu": "2500m"}, "requests": {"cpu": "1"}})", 2, "cpu limit"},
      {R"({"limits": {"cpu": "500m"}})", 1, "cpu limit"},
      {R"({"requests": {"cpu": "2500m"}})", 3, "cpu request, rounded up"},
      {R"({"requests": {"cpu": 4}})", 4, "cpu request, rounded up"},
  };
  for (const auto& [resources, count, source] : table) {
    JobSpec spec;
    spec.resources = nlohmann::json::parse(resources);
    const ProcessCount found = EffectiveProcessCount(spec);
    EXPECT_EQ(found.count, count) << resources;
    EXPECT_EQ(found.source, source) << resources;
    spec.processes_per_gpu = 3;
    const bool devices = ProcessesOnDevices(spec) > 0;
    EXPECT_EQ(EffectiveProcessCount(spec).count, devices ? 3 * count : count) << resources;
    EXPECT_EQ(EffectiveProcessCount(spec).source,
              source + std::string(devices ? ", times processesPerGpu" : ""));
    spec.process_count_per_node = 7;
    EXPECT_EQ(EffectiveProcessCount(spec).count, 7);
    EXPECT_EQ(EffectiveProcessCount(spec).source, "spec.processCountPerNode");
  }
  JobSpec spec;
  spec.resources = {{"limits", {{"cpu", "2"}}}};
  spec.pod_template = nlohmann::json::parse(
      R"({"spec": {"containers": [{"name": "side", "resources": {"limits": {"cpu": "9"}}},
                                  {"name": "worker", "resources": {"limits": {"cpu": "6"}}}]}})");
  EXPECT_EQ(EffectiveProcessCount(spec).count, 6);
}

TEST(Devices, AreKnownByTheirNames) {
  for (const char* device :
       {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb",
        "nvidia.com/mig-1g.5gb.shared", "amd.com/gpu", "gpu.intel.com/i915", "habana.ai/gaudi"}) {
    EXPECT_TRUE(IsDevice(device)) << device;
  }
  for (const char* other : {"cpu", "memory", "gpu", "hugepages-2Mi", "gpu.intel.com/millicores",
                            "gpu.intel.com/i915_monitoring", "nvidia.com/gpumem", "google.com/tpu",
                            "example.com/gpu-quota", ""}) {
    EXPECT_FALSE(IsDevice(other)) << other;
  }
  JobSpec none;
  EXPECT_EQ(DevicesOf(none).count, 0);
  none.resources =
      nlohmann::json::parse(R"({"limits": {"nvidia.com/gpu": "x", "amd.com/gpu": -1}})");
  EXPECT_EQ(DevicesOf(none).count, 0);
}

// Requests and limits of a cluster's nodes say nothing of this machine; a GPU holds no more models
// here than there.
TEST(Processes, OnOneMachineAreOneForEachCore) {
  JobSpec spec;
  EXPECT_EQ(LocalProcessCount(spec, 8).count, 8);
  EXPECT_EQ(LocalProcessCount(spec, 8).source, "cores of this machine");
  EXPECT_EQ(LocalProcessCount(spec, 0).count, 1) << "where nobody knows";
  spec.resources = {{"limits", {{"cpu", "2"}}}};
  EXPECT_EQ(LocalProcessCount(spec, 8).count, 8);
  spec.resources = {{"limits", {{"cpu", "2"}, {"nvidia.com/gpu", 1}}}};
  EXPECT_EQ(LocalProcessCount(spec, 8).count, 1);
  spec.processes_per_gpu = std::numeric_limits<int32_t>::max();
  EXPECT_EQ(LocalProcessCount(spec, 8).count, std::numeric_limits<int32_t>::max());
  spec.resources["limits"]["nvidia.com/gpu"] = 2;
  EXPECT_EQ(LocalProcessCount(spec, 8).count, std::numeric_limits<int32_t>::max());
  spec.process_count_per_node = 7;
  EXPECT_EQ(LocalProcessCount(spec, 8).count, 7);
}

TEST(Arguments, FoldersOfTheOutput) {
  EXPECT_THAT(FoldersOfOutput({"--out", "$(output)/models", "--log=$(output)/a/b/", "$(output)",
                               "$(output)/a/x.csv", "$(output)/x.csv", "$(inputs.a)/b",
                               "$(output)/../elsewhere", "$(output)//etc", "x$(output)/c"}),
              ElementsAre("models", "a/b", "a"));
  // As a script finds the argument: with blanks around the name, without a doubled dollar sign.
  EXPECT_THAT(FoldersOfOutput({"$( output )/a", "$(output)/b$$(c)", "$$(output)/d", "$(output)e",
                               "$(output)/$(output)", "$(output)/$(inputs.a)/f", "$(output)/"}),
              ElementsAre("a", "b$(c)"));
}

TEST(Arguments, FoldersOfTheOutputByAnotherFormOfPlaceholders) {
  const PlaceholderForms others = {{.open = "${{", .close = "}}"}};
  EXPECT_THAT(FoldersOfOutput({"${{output}}/models", "--log=${{ output }}/a/", "$(output)/b",
                               "$${{output}}/c", "${{inputs.a}}/d", "${{output}}/x.csv"},
                              others),
              ElementsAre("models", "a", "b"));
  EXPECT_THAT(FoldersOfOutput({"${{output}}/models"}), ElementsAre());
}

TEST(Arguments, OfTheOutput) {
  const PlaceholderForms others = {{.open = "${{", .close = "}}"}};
  for (const char* text : {"$(output)", "--to=$( output )/x", "${{output}}/x", "a${{ output }}"}) {
    EXPECT_TRUE(NamesOutput(text, others)) << text;
  }
  for (const char* text : {"", "output", "$$(output)", "$${{output}}", "$(outputs)", "$(output"}) {
    EXPECT_FALSE(NamesOutput(text, others)) << text;
  }
}

TEST(Arguments, Placeholders) {
  const std::map<std::string, std::string> paths = {
      {"inputs.images", "/mnt/data/images"}, {"sideInputs.model", "/models"}, {"output", "/out"}};
  const struct {
    const char* text;
    const char* result;
  } good[] = {
      {"--model", "--model"},
      {"$(sideInputs.model)/digits.pkl", "/models/digits.pkl"},
      {"a=$(inputs.images):$(output)", "a=/mnt/data/images:/out"},
      {"$$(output)", "$(output)"},
      {"${{inputs.images}}", "${{inputs.images}}"},
      {"^a$|b$$", "^a$|b$$"},
      {"$(unclosed", "$(unclosed"},
      {"${HOME}", "${HOME}"},
      {"$", "$"},
      {"", ""},
  };
  for (const auto& [text, result] : good) {
    const auto substituted = SubstituteArgument(text, paths);
    ASSERT_TRUE(substituted.ok()) << text << ": " << substituted.error().message;
    EXPECT_EQ(*substituted, result);
  }
  for (const char* text : {"$(inputs.model)", "$(image)", "$()", "$(date +%s)"}) {
    const auto substituted = SubstituteArgument(text, paths);
    ASSERT_FALSE(substituted.ok()) << text;
    EXPECT_THAT(substituted.error().message,
                HasSubstr("known are $(inputs.images), $(output), $(sideInputs.model)"));
  }
}

TEST(Arguments, PlaceholdersInAnotherForm) {
  const std::map<std::string, std::string> paths = {{"a", "/a"}, {"also.b", "/b"}};
  const PlaceholderForms forms = {
      {.open = "$<", .close = ">>", .otherwise = [](std::string_view name) {
         return "also." + std::string(name);
       }}};
  const auto substituted = SubstituteArgument("$< a >>$(a) $<b>> $$<a>> $<a> $", paths, forms);
  ASSERT_TRUE(substituted.ok()) << substituted.error().message;
  EXPECT_EQ(*substituted, "/a/a /b $<a>> $<a> $");
  EXPECT_THAT(UnknownPlaceholders("$<c>> $(b) $<b>>", {"a", "also.b"}, forms),
              ElementsAre("$<c>>", "$(b)"));
  EXPECT_THAT(UnknownPlaceholders("$<c>>", {}), ElementsAre());
}

const std::map<std::string, std::string> kFolders = {{"data", "/a"}, {"out", "/b"}};

Job PlanJob() {
  Job job;
  job.metadata.name = "digits";
  job.spec.inputs.push_back({.name = "images", .from = {"data", "images"}, .pattern = "*.png"});
  FillDefaults(job, Target::kCluster);
  return job;
}

TEST(Settings, OnlyWhatDecidesAMiniBatchId) {
  const Job job = PlanJob();
  Job other = job;
  other.spec.node_count = 9;
  other.spec.arguments = {"x"};
  other.spec.output.to.path = "elsewhere";
  other.metadata.name = "other";
  EXPECT_EQ(PlanSettings(other, kFolders), PlanSettings(job, kFolders));
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre());
  EXPECT_EQ(PlanSettings(job, {{"data", "/a"}, {"out", "/c"}}), PlanSettings(job, kFolders));

  other.spec.mini_batch_size = 20;
  other.spec.inputs[0].pattern = "*.jpg";
  other.spec.inputs[0].exclude = {"x"};
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre("spec.inputs[0].files.exclude[0]: (none) -> \"x\"",
                          "spec.inputs[0].files.pattern: \"*.png\" -> \"*.jpg\"",
                          "spec.miniBatchSize: 10 -> 20"));
  // Rows of two formats are not one output; what was always there stays unsaid, as in older
  // ledgers.
  other = job;
  other.spec.output.format = OutputFormat::kJsonl;
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre("spec.output.format: (none) -> \"jsonl\""));
  other.spec.output.provenance = true;
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre("spec.output.format: (none) -> \"jsonl\"",
                          "spec.output.provenance: (none) -> true"));
  EXPECT_EQ(PlanSettings(job, kFolders).find("output"), std::string::npos);
  other = job;
  other.spec.output.side_files = SideFiles::kStaged;
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre("spec.output.sideFiles: (none) -> \"Staged\""));
  // What may be said anew is no part of it, so a ledger of before there was such a field fits too.
  other = job;
  other.spec.inputs[0].kind = InputKind::kTabular;
  const Job table = other;
  other.spec.inputs[0].tabular.max_field_size = 5;
  other.spec.inputs[0].tabular.dtypes = {{"a", ColumnType::kText}};
  other.spec.inputs[0].tabular.bad_rows = BadRows::kSkip;
  other.spec.inputs[0].allow_empty = AllowEmpty::kExisting;
  EXPECT_EQ(PlanSettings(other, kFolders), PlanSettings(table, kFolders));
  EXPECT_EQ(PlanSettings(table, kFolders).find("maxFieldSize"), std::string::npos);

  other = job;
  other.spec.partition_keys = {"user"};
  EXPECT_THAT(
      *Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
      ElementsAre("spec.miniBatchSize: 10 -> (none)", "spec.partitionKeys[0]: (none) -> \"user\""));
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(job, {{"data", "/b"}})),
              ElementsAre("spec.volumes.data: \"/a\" -> \"/b\""));
}

TEST(Settings, WhatATrialTakes) {
  const Job job = PlanJob();
  const std::string all = PlanSettings(job, kFolders);
  Selection some;
  EXPECT_EQ(PlanSettings(job, kFolders, some), all);
  some.limit = 20;
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders, some), all),
              ElementsAre("--limit: 20 -> (none)"));
  // An input that nothing is taken of may be named or not.
  Selection chosen;
  chosen.files = {{"images", {1, 2}}, {"masks", {}}};
  Selection same;
  same.files = {{"images", {1, 2}}};
  EXPECT_EQ(PlanSettings(job, kFolders, chosen), PlanSettings(job, kFolders, same));
  Selection other;
  other.files = {{"images", {1, 3}}};
  EXPECT_NE(PlanSettings(job, kFolders, chosen), PlanSettings(job, kFolders, other));
  EXPECT_NE(PlanSettings(job, kFolders, chosen), all);
}

TEST(Settings, ATrialSaysWhatItTakes) {
  const Job job = PlanJob();
  EXPECT_EQ(TrialOf(PlanSettings(job, kFolders)), "");
  EXPECT_EQ(TrialOf(PlanSettings(job, kFolders, {.limit = 1, .files = {}})),
            "the first item (--limit)");
  EXPECT_EQ(TrialOf(PlanSettings(job, kFolders, {.limit = 20, .files = {}})),
            "the first 20 items (--limit)");
  Selection chosen;
  chosen.files = {{"images", {1, 2}}};
  EXPECT_EQ(TrialOf(PlanSettings(job, kFolders, chosen)), "2 files (--sample or --only)");
  EXPECT_EQ(TrialOf("no JSON"), "");
}

TEST(Settings, HowColumnsAreReadButNotTheTypesThatPeopleWrite) {
  Job job = PlanJob();
  job.spec.inputs = {{.name = "rows", .kind = InputKind::kTabular, .from = {"data", "t"}}};
  FillDefaults(job, Target::kCluster);
  // A plan of before says nothing of it.
  EXPECT_EQ(PlanSettings(job, kFolders).find("typing"), std::string::npos);
  EXPECT_EQ(PlanSettings(job, kFolders).find("eepDefaultNa"), std::string::npos);
  Job other = job;
  other.spec.inputs[0].tabular.dtypes = {{"zip", ColumnType::kText}};
  EXPECT_EQ(PlanSettings(other, kFolders), PlanSettings(job, kFolders));
  EXPECT_THAT(*Differences(WrittenTypes(CanonicalText(ToJson(job))),
                           WrittenTypes(CanonicalText(ToJson(other)))),
              ElementsAre("spec.rows.dtypes.zip: (none) -> \"text\""));
  other.spec.inputs[0].tabular.na_values = {"-"};
  EXPECT_THAT(*Differences(PlanSettings(job, kFolders), PlanSettings(other, kFolders)),
              ElementsAre("spec.inputs[0].tabular.naValues[0]: (none) -> \"-\""));
}

TEST(Settings, OnlyWhatDecidesWhatRunDoes) {
  Job job = PlanJob();
  job.spec.entry_script = "a.py";
  Job other = job;
  other.spec.node_count = 9;
  other.spec.run_max_try = 9;
  const std::string before = ScriptSettings(CanonicalText(ToJson(job)));
  EXPECT_EQ(ScriptSettings(CanonicalText(ToJson(other))), before);
  other.spec.entry_script = "b.py";
  other.spec.arguments = {"--top", "5"};
  EXPECT_THAT(
      *Differences(before, ScriptSettings(CanonicalText(ToJson(other)))),
      ElementsAre("spec.arguments[0]: (none) -> \"--top\"", "spec.arguments[1]: (none) -> \"5\"",
                  "spec.entryScript: \"a.py\" -> \"b.py\""));
  for (const char* bad : {"", "[]", "{", "{\"spec\": 7}"}) EXPECT_EQ(ScriptSettings(bad), "{}");
}

TEST(Settings, RefusesWhatIsNoSettings) {
  const std::string good = PlanSettings(PlanJob(), kFolders);
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{"), good + "}", std::string(100000, '[')}) {
    const auto differences = Differences(bad, good);
    ASSERT_FALSE(differences.ok()) << bad.substr(0, 20);
    EXPECT_EQ(differences.error().code, Code::kCorrupt);
  }
}

TEST(Defaults, AreIdempotentAndKeepWhatIsSet) {
  Job job = PlanJob();
  const Job once = job;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job, once);
  EXPECT_EQ(NodeRestartLimit(job.spec, 4, 0), 12 + 22);
  EXPECT_EQ(NodeRestartLimit(job.spec, 1, 2), 3 + 66);
  job.spec.node_restart_limit = 1;
  EXPECT_EQ(NodeRestartLimit(job.spec, 4, 2), 1);
}

// A model of six minutes could never be loaded, since init() had the time of a mini-batch.
TEST(Defaults, InitMayTakeHalfAnHourAndNoLessThanAnythingElse) {
  JobSpec spec = DefaultSpec();
  EXPECT_EQ(InitTimeout(spec), seconds(1800));
  spec.run_invocation_timeout = seconds(600);
  EXPECT_EQ(InitTimeout(spec), seconds(1830));
  spec.progress_update_timeout = seconds(7200);
  EXPECT_EQ(InitTimeout(spec), seconds(7200));
  spec.init_timeout = seconds(40);
  EXPECT_EQ(InitTimeout(spec), seconds(40));
}

Job WithOutputInStore() {
  Job job = PlanJob();
  job.spec.output.to = {"", "scores"};
  job.spec.output.store = "results";
  job.spec.state = {};
  job.spec.logs = {};
  return job;
}

// Such a job was refused for want of a volume, which most clusters do not have for all of its pods.
TEST(Defaults, TheStateIsWhereTheOutputIs) {
  const Job bare = WithOutputInStore();
  Job job = bare;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.store, "results");
  EXPECT_TRUE(job.spec.state.claim_template.is_null());
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "scores/.parallelrun"}));
  EXPECT_EQ(job.spec.logs.store, "results");
  const Job once = job;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job, once);

  // What is said stays: volumes of one's own, in part too.
  job = bare;
  job.spec.logs.to.volume = "data";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.logs.to.volume, "data");
  EXPECT_EQ(job.spec.state.store, "results");
  job = bare;
  job.spec.state.in.volume = "data";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.store, "");
  EXPECT_EQ(job.spec.state.in.volume, "data");
  EXPECT_EQ(job.spec.logs.to, (VolumePath{"data", job.metadata.name + "/logs"}));

  // Nobody else's is in a store.
  job = bare;
  job.spec.output = {};
  job.spec.output.to = {"data", "out"};
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.store, "");
  EXPECT_EQ(job.spec.state.in.volume, "data");
  job = bare;
  job.spec.state.ephemeral = true;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.store, "");
}

// As it is written into run.json and read again by the coordinator.
TEST(Defaults, OnThisMachineTheStateIsInItsFolder) {
  Job job = WithOutputInStore();
  FillDefaults(job, Target::kLocal);
  EXPECT_EQ(job.spec.state.store, "");
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "state"}));
  EXPECT_EQ(job.spec.logs.to, (VolumePath{kStateVolume, "logs"}));
  ASSERT_EQ(job.spec.volumes.back().name, kStateVolume);
  EXPECT_EQ(job.spec.volumes.back().source, (nlohmann::json{{"path", job.metadata.name + ".run"}}));
  const Job once = job;
  job.spec.volumes.pop_back();  // no text names it
  FillDefaults(job, Target::kLocal);
  EXPECT_EQ(job, once);
}

TEST(Defaults, AClaimOfTheStateHasItsLogsToo) {
  const Job bare = WithOutputInStore();
  Job job = bare;
  job.spec.state.claim_template = {{"spec", {{"storageClassName", "fast"}}}};
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.store, "");
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "state"}));
  EXPECT_EQ(job.spec.logs.to, (VolumePath{kStateVolume, "logs"}));
  EXPECT_EQ(job.spec.volumes.back().name, kStateVolume);
  const Job once = job;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job, once);

  // A folder on it; logs in a store have a path there, and no volume.
  job = bare;
  job.spec.state.claim_template = once.spec.state.claim_template;
  job.spec.state.in.path = "here";
  job.spec.logs.store = "results";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "here"}));
  EXPECT_EQ(job.spec.logs.to, (VolumePath{"", job.metadata.name + "/logs"}));
}

TEST(Defaults, AStateInAStoreNeedsNoVolume) {
  Job job = WithOutputInStore();
  job.spec.state.store = "results";
  const Job bare = job;
  FillDefaults(job, Target::kCluster);
  EXPECT_TRUE(job.spec.state.claim_template.is_null());
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "scores/.parallelrun"}));
  EXPECT_EQ(job.spec.logs.store, "results");
  EXPECT_EQ(job.spec.logs.to, (VolumePath{"", job.metadata.name + "/logs"}));
  ASSERT_EQ(job.spec.volumes.back().name, kStateVolume);
  EXPECT_EQ(job.spec.volumes.back().kind, "emptyDir");
  const Job once = job;
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job, once);

  // In another store than the output's, or where the output has no prefix, it has one of its own.
  job = bare;
  job.spec.state.store = "states";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.in.path, ".parallelrun");
  job = bare;
  job.spec.output.to.path = ".";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.in.path, ".parallelrun");

  // What is said stays.
  job = bare;
  job.spec.state.in.path = "states";
  job.spec.logs.to.volume = "data";
  FillDefaults(job, Target::kCluster);
  EXPECT_EQ(job.spec.state.in, (VolumePath{kStateVolume, "states"}));
  EXPECT_EQ(job.spec.logs.store, "");
  EXPECT_EQ(job.spec.logs.to.volume, "data");
}

TEST(Names, DidYouMean) {
  const std::vector<std::string> known = {"nodeCount", "entryScript", "code",
                                          "logs",      "state",       "runInvocationTimeoutSeconds",
                                          "suspend"};
  EXPECT_EQ(ClosestName("nodecount", known), "nodeCount");
  EXPECT_EQ(ClosestName("node_count", known), "nodeCount");
  EXPECT_EQ(ClosestName("ndoeCount", known), "nodeCount");
  EXPECT_EQ(ClosestName("run_invocation_timeout", known), "runInvocationTimeoutSeconds");
  EXPECT_EQ(ClosestName("log", known), "logs");
  EXPECT_EQ(ClosestName("replicas", known), "");
  EXPECT_EQ(ClosestName(std::string(100000, 'x'), known), "");
}

TEST(Paths, RoundTrip) {
  for (const char* path : {"spec", "spec.inputs[0].files.pattern",
                           "spec.resources.limits[\"nvidia.com/gpu\"]", "a[0][1].b"}) {
    const auto steps = ParsePath(path);
    ASSERT_TRUE(steps.ok()) << path;
    std::string joined;
    for (const PathStep& step : *steps) {
      joined = step.key.empty() ? JoinPath(joined, step.index) : JoinPath(joined, step.key);
    }
    EXPECT_EQ(joined, path);
  }
  for (const char* path : {"", ".", "a.", "a..b", "a[", "a[]", "a[x]", "a[-1]", "a[1", "a[\"b\"",
                           "a[\"\"]", "a[99999999999999999999]", "a[0]b"}) {
    EXPECT_FALSE(ParsePath(path).ok()) << path;
  }
}

TEST(Problem, IsSafeToPrint) {
  const Problem problem = {.field = "spec[\"\x1b[2J\"]", .what = "\u009b1m is\nno field"};
  EXPECT_EQ(FormatProblem(problem, "job.yaml"),
            "job.yaml: spec[\"\\x1b[2J\"]: \\u009b1m is\\nno field");
}

TEST(Names, OfLabels) {
  for (const char* good : {"a", "A_b.c-9", "example.com/a", "a.b.c/A"}) {
    EXPECT_TRUE(IsLabelName(good)) << good;
  }
  for (const char* bad : {"", "-a", "a-", "a b", "a%", "/a", "a/", "a/b/c", "A.example/x", "a..b/c",
                          "\u00e4", "a\n"}) {
    EXPECT_FALSE(IsLabelName(bad)) << bad;
  }
  EXPECT_TRUE(IsLabelName(std::string(63, 'a')));
  EXPECT_FALSE(IsLabelName(std::string(64, 'a')));
  EXPECT_FALSE(IsLabelName(std::string(254, 'a') + "/a"));
  EXPECT_TRUE(IsLabelValue(""));
  EXPECT_FALSE(IsLabelValue("example.com/a"));
}

TEST(Text, Utf8) {
  for (const char* good : {"", "a", "ü", "€", "😀", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xC0\x80", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80",
                          "\xF5\x80\x80\x80", "\xF4\x90\x80\x80", "a\xFF", "\xE2\x82"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
  EXPECT_EQ(Utf8Length("aü€😀"), 4U);
  // Never cut inside a character.
  EXPECT_TRUE(IsUtf8(Quoted(std::string(59, 'x') + "üüü")));
}

}  // namespace
}  // namespace parallelrun::api
