// What follows from a coordinator's configuration, and what it tells agents of the job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/version.h"
#include "coordinator/start/config.h"
#include "job/side_list.h"

namespace parallelrun::coordinator {
namespace {

TEST(CoordinatorConfigTest, SpeculationIsOffWhereTheScriptsEffectsAreTheResult) {
  const struct {
    api::OutputAction action;
    std::optional<bool> asked;
    bool speculation;
  } cases[] = {{api::OutputAction::kAppendRow, std::nullopt, true},
               {api::OutputAction::kSummaryOnly, std::nullopt, false},
               {api::OutputAction::kAppendRow, false, false},
               {api::OutputAction::kSummaryOnly, true, true}};
  for (const auto& c : cases) {
    CoordinatorConfig config;
    config.job.spec.output.action = c.action;
    config.job.spec.speculation = c.asked;
    EXPECT_EQ(config.speculation(), c.speculation);
    const Result<std::string> told = AgentJob(config, {});
    ASSERT_TRUE(told.ok()) << told.error().message;
    EXPECT_EQ(nlohmann::json::parse(*told)["speculation"], c.speculation);
  }
}

constexpr char kConfig[] = R"({
  "job": {"apiVersion": "parallelrun.dev/v1alpha1", "kind": "ParallelRunJob",
          "metadata": {"name": "digits"},
          "spec": {"entryScript": "score.py",
                   "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
                   "inputs": [{"name": "images", "files": {"volume": "data", "path": "images"}}],
                   "output": {"volume": "data", "path": "out"}}},
  "volumes": {"data": "/data"}, "key": "0123456789abcdef0123456789abcdef",
  "listen": {"address": "127.0.0.1:0"}, "resourceUid": "u", "nodes": 2, "processes": 1})";

// An agent and its coordinator may be of two releases that have one protocol.
TEST(CoordinatorConfigTest, WhatNodesHearOfAJobStaysAsItIs) {
  JobLayout layout;
  layout.output_folder = "/data/out";
  layout.placeholders = {{"inputs.images", "/data/images"}, {"output", "/data/out"}};
  const Result<CoordinatorConfig> plain = ParseConfig(kConfig);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(
      *AgentJob(*plain, layout),
      R"({"arguments":["--output","/data/out","--output_uri_file",)"
      R"("/data/out/parallel_run_step.txt","--append_row_file_name","parallel_run_step.txt",)"
      R"("--logging_level","INFO","--input_asset_images","/data/images"],)"
      R"("cacheBytes":10737418240,"entryScript":"score.py","environment":{},"image":"",)"
      R"("loggingLevel":"INFO","outputAction":"AppendRow","outputFolder":"/data/out",)"
      R"("overheadTimeoutSeconds":600,"processes":1,"processesPerGpu":1,"python":"python3",)"
      R"("resourceMonitorIntervalSeconds":600,"runTimeoutSeconds":60,)"
      R"("shutdownTimeoutSeconds":300,"sideInputs":[],"speculation":true,"stores":[],)"
      R"("worker":{"appendRowDataframeHeader":false,"appendRowSafeOutput":false,)"
      R"("asyncMode":false,"componentMode":false,"mixedTypes":false,"runId":"local.digits"}})");

  nlohmann::json config = nlohmann::json::parse(kConfig);
  config["job"]["metadata"]["namespace"] = "team";
  config["job"]["spec"].merge_patch(nlohmann::json::parse(R"json({
      "arguments": ["--weights", "$(inputs.images)", "${{inputs.model}}"],
      "environment": {"image": "images.example/digits:1", "python": "/usr/bin/python3",
                      "env": [{"name": "A", "value": "1"}]},
      "sideInputs": [{"name": "model", "volume": "data", "path": "model"}],
      "output": {"action": "SummaryOnly", "format": "jsonl", "nanAsNull": true},
      "loggingLevel": "DEBUG", "shortReturn": "Fail", "profiling": "cProfile",
      "cache": {"size": "5MB"}, "runInvocationTimeoutSeconds": 61,
      "taskOverheadTimeoutSeconds": 601, "shutdownTimeoutSeconds": 301,
      "resourceMonitorIntervalSeconds": 0, "speculation": true, "processesPerGpu": 2})json"));
  config["scriptFolderFirst"] = true;
  config["processes"] = 4;
  layout.placeholders["sideInputs.model"] = "/data/model";
  const Result<CoordinatorConfig> full = ParseConfig(config.dump());
  ASSERT_TRUE(full.ok()) << full.error().message;
  const std::string in_pod = *AgentJob(*full, layout);
  EXPECT_EQ(
      in_pod,
      R"({"arguments":["--weights","/data/images","/data/model","--output","/data/out",)"
      R"("--logging_level","DEBUG","--input_asset_images","/data/images"],)"
      R"("cacheBytes":5242880,"entryScript":"score.py","environment":{},)"
      R"("image":"images.example/digits:1","loggingLevel":"DEBUG","outputAction":"SummaryOnly",)"
      R"("outputFolder":"/data/out","overheadTimeoutSeconds":601,"processes":4,)"
      R"("processesPerGpu":2,)"
      R"("python":"/usr/bin/python3","resourceMonitorIntervalSeconds":0,)"
      R"("runTimeoutSeconds":61,"shutdownTimeoutSeconds":301,"sideInputs":[],)"
      R"("speculation":true,"stores":[],)"
      R"("worker":{"appendRowDataframeHeader":false,"appendRowSafeOutput":false,)"
      R"("asyncMode":false,"componentMode":false,"mixedTypes":false,)"
      R"("modelFolder":"/data/model","nanAsNull":true,"outputFormat":"jsonl",)"
      R"("profiling":"cProfile","runId":"team.digits","scriptFolderFirst":true,)"
      R"("shortReturn":"Fail","sideInputs":{"model":"/data/model"}}})");

  // On one machine no image runs, and the variables are the processes' own.
  config["listen"] = {{"fd", 3}};
  const Result<CoordinatorConfig> local = ParseConfig(config.dump());
  ASSERT_TRUE(local.ok()) << local.error().message;
  nlohmann::json changed = nlohmann::json::parse(in_pod);
  changed["image"] = "";
  changed["environment"]["A"] = "1";
  EXPECT_EQ(*AgentJob(*local, layout), changed.dump());
}

TEST(CoordinatorConfigTest, WithStagedSideFilesEachProcessIsToHaveAFolderOfItsOwn) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  nlohmann::json& spec = config["job"]["spec"];
  spec["output"]["sideFiles"] = "Staged";
  spec["arguments"] = {"--to=$(output)/models", "--text", "${{output}}/a/x.csv"};
  const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  Result<JobLayout> layout = LayOut(parsed->job, parsed->volumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  // A run that debugs one mini-batch has a folder of its own anyway.
  const auto told = [&] { return nlohmann::json::parse(*AgentJob(*parsed, *layout)); };
  EXPECT_FALSE(told().contains("staging"));
  layout->staging_folder = "/data/out/.parallelrun-staged-9f";
  const nlohmann::json job = told();
  EXPECT_EQ(job["staging"], "/data/out/.parallelrun-staged-9f");
  EXPECT_EQ(job["outputFolder"], "/data/out");
  const std::string mark = job::kOutputMark;
  EXPECT_EQ(job["arguments"][0], "--to=" + mark + "/models");
  EXPECT_EQ(job["arguments"][2], mark + "/a/x.csv");
  EXPECT_EQ(job["worker"]["outputFolders"], (nlohmann::json{"models", "a"}));
  EXPECT_EQ(job["worker"]["reservedNames"],
            (nlohmann::json{"parallel_run_step.txt", "parallel_run_step.txt.index.jsonl"}));

  spec["arguments"] = {"--amlbi_async_mode", "True"};
  const Result<CoordinatorConfig> async = ParseConfig(config.dump());
  ASSERT_TRUE(async.ok()) << async.error().message;
  const Result<std::string> refused = AgentJob(*async, *layout);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_NE(refused.error().message.find("spec.output.sideFiles"), std::string::npos);
}

TEST(CoordinatorConfigTest, SideFilesOfAnOutputInAStoreAreStagedOnTheNodes) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  nlohmann::json& spec = config["job"]["spec"];
  spec["stores"] = nlohmann::json::parse(R"([{"name": "results", "url": "s3://results/all"}])");
  spec["output"] = {
      {"store", "results"}, {"path", "job"}, {"action", "SummaryOnly"}, {"sideFiles", "Staged"}};
  spec["logs"] = spec["state"] = {{"volume", "data"}};
  spec["arguments"] = {"--to=$(output)/models"};
  const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  Result<JobLayout> layout = LayOut(parsed->job, parsed->volumes);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->published_path, "s3://results/all/job/_files.jsonl");
  EXPECT_EQ(layout->output_path, "") << "no file of rows";
  EXPECT_EQ(layout->output_name, "job/_files.jsonl");
  EXPECT_EQ(SideFolderOf(*layout), "job/");
  const auto told = [&] { return nlohmann::json::parse(*AgentJob(*parsed, *layout)); };
  EXPECT_FALSE(told().contains("sideStore"));
  layout->staging_folder = "/any";
  const nlohmann::json job = told();
  EXPECT_FALSE(job.contains("staging"));
  EXPECT_EQ(job["sideStore"], "s3://results/all/job");
  EXPECT_EQ(job["arguments"][0], "--to=" + std::string(job::kOutputMark) + "/models");
  EXPECT_EQ(job["worker"]["reservedNames"],
            (nlohmann::json{"_files.jsonl", "_files.jsonl.index.jsonl", "_files.jsonl.run"}));
}

TEST(CoordinatorConfigTest, NodesHearWhereTheKeysOfTheStoresAreThatTheyRead) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  nlohmann::json& spec = config["job"]["spec"];
  spec["stores"] = nlohmann::json::parse(R"([
      {"name": "photos", "url": "s3://photos", "credentials": {"secretName": "read-only"}},
      {"name": "results", "url": "s3://results", "credentials": {"secretName": "writer"}}])");
  spec["inputs"] = nlohmann::json::parse(R"([{"name": "images", "files": {"store": "photos"}}])");
  spec["output"] = {{"store", "results"}};
  spec["logs"] = spec["state"] = {{"volume", "data"}};
  config["storeKeys"] = {{"photos", "/keys/photos"}, {"results", "/keys/results"}};
  const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto layout = LayOut(parsed->job, parsed->volumes, parsed->store_keys);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  EXPECT_EQ(layout->stores.at("results").keys.folder, "/keys/results");
  const Result<std::string> told = AgentJob(*parsed, *layout);
  ASSERT_TRUE(told.ok()) << told.error().message;
  const nlohmann::json job = nlohmann::json::parse(*told);
  ASSERT_EQ(job["stores"].size(), 1u);
  EXPECT_EQ(job["stores"][0]["keys"],
            nlohmann::json::parse(R"({"folder": "/keys/photos", "of": "Secret read-only"})"));
  // No volume is mounted there for what the script writes itself.
  EXPECT_EQ(job["outputFolder"], "/var/lib/parallelrun/outputs");

  // Nodes that read by URLs hear of no keys, in whatever place these are.
  config["presign"] = true;
  spec["stores"].push_back(nlohmann::json::parse(
      R"({"name": "blobs", "url": "abfss://blobs@account.dfs.core.windows.net"})"));
  spec["inputs"].push_back(nlohmann::json::parse(R"({"name": "b", "files": {"store": "blobs"}})"));
  const Result<CoordinatorConfig> presigns = ParseConfig(config.dump());
  ASSERT_TRUE(presigns.ok()) << presigns.error().message;
  EXPECT_EQ(presigns->url_life, seconds(30 * 60));
  config["urlSeconds"] = 5;
  EXPECT_EQ(ParseConfig(config.dump())->url_life, seconds(5));
  config["urlSeconds"] = 30 * 60 + 1;
  EXPECT_FALSE(ParseConfig(config.dump()).ok());
  config.erase("urlSeconds");
  const auto signed_layout = LayOut(presigns->job, presigns->volumes, presigns->store_keys);
  ASSERT_TRUE(signed_layout.ok()) << signed_layout.error().message;
  const nlohmann::json by_urls = nlohmann::json::parse(*AgentJob(*presigns, *signed_layout));
  ASSERT_EQ(by_urls["stores"].size(), 2u);
  EXPECT_EQ(by_urls["stores"][0]["byUrls"], true);
  EXPECT_EQ(by_urls["stores"][0]["url"], "s3://photos");
  EXPECT_EQ(by_urls.dump().find("keys"), std::string::npos);
  EXPECT_FALSE(by_urls["stores"][1].contains("byUrls")) << "Azure's are not signed";

  // Those that the job gives the keys read by them.
  spec["stores"][0]["nodeCredentials"] = true;
  const Result<CoordinatorConfig> gives = ParseConfig(config.dump());
  ASSERT_TRUE(gives.ok()) << gives.error().message;
  const nlohmann::json by_keys = nlohmann::json::parse(*AgentJob(*gives, *signed_layout));
  EXPECT_FALSE(by_keys["stores"][0].contains("byUrls"));
  EXPECT_EQ(by_keys["stores"][0]["keys"]["folder"], "/keys/photos");

  config["storeKeys"]["photos"] = 5;
  EXPECT_THAT(ParseConfig(config.dump()).error().message, testing::HasSubstr("storeKeys.photos"));
}

TEST(CoordinatorConfigTest, NodesHearWhichObjectsOfASideInputTheyFetchAndWithWhichKeys) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  nlohmann::json& spec = config["job"]["spec"];
  spec["stores"] = nlohmann::json::parse(
      R"([{"name": "models", "url": "s3://models", "credentials": {"secretName": "reader"}}])");
  spec["sideInputs"] =
      nlohmann::json::parse(R"([{"name": "model", "store": "models", "path": "digits/"}])");
  spec["arguments"] = {"--model", "$(sideInputs.model)/weights.bin"};
  config["storeKeys"] = {{"models", "/keys/models"}};
  const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  const auto layout = LayOut(parsed->job, parsed->volumes, parsed->store_keys);
  ASSERT_TRUE(layout.ok()) << layout.error().message;
  const job::SideInput model{"model",
                             "models",
                             "s3://models/digits/",
                             "s3://models/digits",
                             false,
                             {{"weights.bin", 5, "\"e\""}}};
  const Result<std::string> told = AgentJob(*parsed, *layout, {model});
  ASSERT_TRUE(told.ok()) << told.error().message;
  const nlohmann::json job = nlohmann::json::parse(*told);
  EXPECT_EQ(job["sideInputs"], job::SideInputsJson({model}));
  EXPECT_EQ(job["arguments"][1], job::SideInputMark("model") + "/weights.bin");
  EXPECT_EQ(job["worker"]["sideInputs"]["model"], job::SideInputMark("model"));
  EXPECT_EQ(job["worker"]["modelFolder"], job::SideInputMark("model"));
  ASSERT_EQ(job["stores"].size(), 1u);
  EXPECT_EQ(job["stores"][0]["keys"]["folder"], "/keys/models");
}

TEST(CoordinatorConfigTest, EveryNodeMayKeepItsConnections) {
  const Result<CoordinatorConfig> few = ParseConfig(kConfig);
  ASSERT_TRUE(few.ok()) << few.error().message;
  EXPECT_EQ(few->http.max_connections, HttpServerOptions().max_connections);
  nlohmann::json config = nlohmann::json::parse(kConfig);
  config["nodes"] = 5000;
  const Result<CoordinatorConfig> many = ParseConfig(config.dump());
  ASSERT_TRUE(many.ok()) << many.error().message;
  EXPECT_GE(many->http.max_connections, 3U * 5000);
}

TEST(CoordinatorConfigTest, ListensWhereItIsTold) {
  struct Case {
    const char* address;
    const char* host;
    int port;
  };
  for (const Case& one :
       {Case{":8443", "", 8443}, Case{"[::1]:80", "::1", 80}, Case{"10.0.0.1:0", "10.0.0.1", 0}}) {
    nlohmann::json config = nlohmann::json::parse(kConfig);
    config["listen"]["address"] = one.address;
    config["metricsListen"] = one.address;
    const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    for (const HttpServerOptions& http : {parsed->http, *parsed->metrics_http}) {
      EXPECT_EQ(http.host, one.host) << one.address;
      EXPECT_EQ(http.port, one.port) << one.address;
    }
    EXPECT_THAT(parsed->metrics_http->always_answered, testing::ElementsAre("/healthz", "/readyz"));
    EXPECT_TRUE(parsed->http.always_answered.empty());
  }
}

TEST(CoordinatorConfigTest, WhatIsMissingOrOfAnotherTypeIsNamed) {
  const struct {
    const char* path;
    nlohmann::json value;  // null: it is taken away
    const char* why;
  } cases[] = {{"/nodes", {}, "\"nodes\" is missing"},
               {"/nodes", -1, "\"nodes\" is missing or has the wrong type"},
               {"/nodes", uint64_t{1} << 32, "\"nodes\" is above 4294967295"},
               {"/key", 7, "\"key\""},
               {"/key", "short", "key: needs at least 32"},
               {"/volumes", "x", "\"volumes\""},
               {"/volumes/data", 7, "volumes.data"},
               {"/resume", "yes", "\"resume\""},
               {"/listen", {}, "\"listen\""},
               {"/listen/address", {}, "needs fd, or address"},
               {"/listen/address", 80, "listen: \"address\""},
               {"/listen/certificate", "/tls.crt", "come together"},
               {"/codeDigest", "xyz", "hexadecimal"},
               {"/codeFiles", nlohmann::json::parse(R"({"a.py":7})"), "codeFiles.a.py"},
               {"/codeFiles", "a.py", "\"codeFiles\""}};
  for (const auto& one : cases) {
    nlohmann::json config = nlohmann::json::parse(kConfig);
    const nlohmann::json::json_pointer place(one.path);
    if (one.value.is_null()) {
      config[place.parent_pointer()].erase(place.back());
    } else {
      config[place] = one.value;
    }
    const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
    ASSERT_FALSE(parsed.ok()) << one.path;
    EXPECT_THAT(parsed.error().message, testing::StartsWith("configuration: ")) << one.path;
    EXPECT_THAT(parsed.error().message, testing::HasSubstr(one.why)) << one.path;
  }
}

// An operator that was upgraded while the job was suspended, or its pod was replaced.
TEST(CoordinatorConfigTest, WhatALaterReleaseAddsIsPassedOver) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  config["release"] = "9.8.7";
  config["of a later release"] = {{"any", 1}};
  config["listen"]["also"] = true;
  const Result<CoordinatorConfig> parsed = ParseConfig(config.dump());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->nodes, 2U);
}

TEST(CoordinatorConfigTest, WhatCannotBeReadIsRefusedNamingTheReleaseThatWroteIt) {
  nlohmann::json config = nlohmann::json::parse(kConfig);
  config["job"]["spec"]["ofALaterRelease"] = 1;
  EXPECT_EQ(ParseConfig(config.dump()).error().message.find("wrote this"), std::string::npos);
  config["release"] = "9.8.7\x1b[2J";
  const std::string message = ParseConfig(config.dump()).error().message;
  EXPECT_THAT(message,
              testing::AllOf(testing::HasSubstr("spec.ofALaterRelease"),
                             testing::HasSubstr("parallelrun 9.8.7"),
                             testing::HasSubstr(std::string("this is parallelrun ") + kVersion),
                             testing::Not(testing::HasSubstr("\x1b"))));
  config["release"] = kVersion;
  EXPECT_EQ(ParseConfig(config.dump()).error().message.find("wrote this"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::coordinator
