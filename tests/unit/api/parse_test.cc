#include "api/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/document.h"
#include "api/override.h"
#include "api/to_json.h"

namespace parallelrun::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kExample[] = R"(apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata: {name: digits}
spec:
  entryScript: score.py
  code: {configMap: {name: digits-code}}
  arguments: [--model, $(sideInputs.model)/digits.pkl]
  environment: {image: "images.example/digits:1"}
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: digits, readOnly: true}}
    - {name: out, persistentVolumeClaim: {claimName: results}}
  inputs:
    - {name: images, files: {volume: data, path: images, pattern: "**/*.png"}}
  sideInputs:
    - {name: model, volume: data, path: model}
  output: {volume: out}
  nodeCount: 2
  processCountPerNode: 2
  miniBatchSize: "10"
  errorThreshold: 10
  resources: {limits: {nvidia.com/gpu: 2, memory: 4Gi}}
)";

std::vector<std::string> Lines(const ParsedJob& parsed) {
  std::vector<std::string> lines;
  for (const Problem& problem : parsed.problems)
    lines.push_back(FormatProblem(problem, "job.yaml"));
  return lines;
}

TEST(Parse, ReadsTheExampleWithItsDefaults) {
  const ParsedJob parsed = ReadJob(kExample, {}, Target::kCluster);
  ASSERT_THAT(Lines(parsed), ElementsAre());
  const JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(parsed.job.metadata.name, "digits");
  EXPECT_EQ(spec.entry_script, "score.py");
  EXPECT_EQ(spec.code.kind, CodeKind::kConfigMap);
  EXPECT_EQ(spec.code.name, "digits-code");
  EXPECT_THAT(spec.arguments, ElementsAre("--model", "$(sideInputs.model)/digits.pkl"));
  ASSERT_EQ(spec.inputs.size(), 1U);
  EXPECT_EQ(spec.inputs[0].kind, InputKind::kFiles);
  EXPECT_EQ(spec.inputs[0].from.path, "images");
  EXPECT_EQ(spec.inputs[0].pattern, "**/*.png");
  EXPECT_EQ(spec.volumes[1].kind, "persistentVolumeClaim");
  EXPECT_EQ(spec.output.to, (VolumePath{"out", "digits/output"}));
  EXPECT_EQ(spec.output.action, OutputAction::kAppendRow);
  EXPECT_EQ(spec.output.file_name, "parallel_run_step.txt");
  EXPECT_EQ(spec.logs.to, (VolumePath{"out", "digits/logs"}));
  EXPECT_EQ(spec.state.in, (VolumePath{"out", "digits/state"}));
  EXPECT_EQ(spec.node_count, 2);
  EXPECT_EQ(spec.process_count_per_node, 2);
  EXPECT_EQ(spec.mini_batch_size, 10U);
  EXPECT_EQ(spec.error_threshold, 10);
  EXPECT_EQ(spec.run_max_try, 3);
  EXPECT_EQ(spec.run_invocation_timeout, seconds(60));
  EXPECT_EQ(spec.task_overhead_timeout, seconds(600));
  EXPECT_EQ(spec.progress_update_timeout, seconds(300));
  EXPECT_EQ(spec.shutdown_timeout, seconds(300));
  EXPECT_EQ(spec.coordinator.resources["limits"]["memory"], "512Mi");
}

TEST(Parse, RoundTrip) {
  const char* full = R"yaml(
apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata:
  {name: full, namespace: team, uid: u-1, generation: 3, labels: {a: b}, annotations: {c: d}}
spec:
  entryScript: scoring.main
  code: {volume: code, path: ./scoring/}
  arguments: ["${{inputs.rows}}", "${{ inputs.model }}", "$$(date)", "", $(output)]
  environment:
    image: i
    python: /usr/bin/python3.11
    imagePullPolicy: Always
    env: [{name: A, value: "1"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    envFrom: [{configMapRef: {name: c}, prefix: P_}]
    imagePullSecrets: [{name: s}]
  volumes:
    - {name: data, nfs: {server: s, path: /x}}
    - {name: code, configMap: {name: c}}
    - {name: out, hostPath: {path: /out}}
  inputs:
    - name: rows
      tabular: {volume: data, path: a//b/, pattern: "*.tsv", exclude: [x, z], format: TSV,
                header: None, encoding: latin-1, quotedNewlines: off}
      partitionFormat: "{user}/{day:yyyy-MM}.tsv"
    - name: others
      tabular: {volume: data, path: c, format: Parquet}
      partitionFormat: "{user}/{day}/{}.p"
  sideInputs: [{name: model, volume: data, path: m, mountPath: /models}]
  output: {volume: out, path: ., action: SummaryOnly, fileName: r.csv, order: Completion,
           format: csv, columns: [a, "b c"], provenance: true, ifExists: Resume, mountOnNodes: false}
  logs: {path: l}
  state: {volume: out, path: s}
  nodeCount: 0
  partitionKeys: [user, day]
  errorThreshold: 0
  allowedFailedCount: 5
  allowedFailedPercent: 12.5
  shortReturn: Fail
  runMaxTry: 1
  runInvocationTimeoutSeconds: 3600
  taskOverheadTimeoutSeconds: 1
  firstTaskCreationTimeoutSeconds: 1e3
  shutdownTimeoutSeconds: 45
  loggingLevel: DEBUG
  profiling: cProfile
  resourceMonitorIntervalSeconds: 0
  nodeRestartLimit: 7
  cancel: no
  suspend: yes
  activeDeadlineSeconds: 10
  ttlSecondsAfterFinished: 0
  deleteAfterFinished: true
  startupDeadlineSeconds: 30
  managedBy: kueue.x-k8s.io/multikueue
  resources: {requests: {cpu: 500m, memory: 1e9}}
  sharedMemory: 2Gi
  disruption: Avoid
  onOutputTaken: Fail
  podTemplate: {metadata: {labels: {x: "y"}}, spec: {tolerations: [{key: k}]}}
  coordinator:
    {resources: {requests: {cpu: 1}}, podTemplate: {spec: {nodeSelector: {a: b}}}, restartLimit: 9}
status: {phase: Running}
)yaml";
  for (const char* text : {kExample, full}) {
    const ParsedJob first = ReadJob(text, {}, Target::kCluster);
    ASSERT_THAT(Lines(first), ElementsAre());
    const nlohmann::json canonical = ToJson(first.job);
    const ParsedJob second = ReadJob(canonical, Target::kCluster);
    ASSERT_THAT(Lines(second), ElementsAre());
    EXPECT_EQ(second.job, first.job);
    EXPECT_EQ(CanonicalText(ToJson(second.job)), CanonicalText(canonical));
    const ParsedJob third = ReadJob(canonical.dump(2), {}, Target::kCluster);
    EXPECT_EQ(third.job, first.job);
  }
  const ParsedJob parsed = ReadJob(full, {}, Target::kCluster);
  const JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(spec.inputs[0].from.path, "a/b");
  EXPECT_EQ(spec.inputs[0].tabular.delimiter, "\t");
  EXPECT_EQ(spec.code.path, "scoring");
  EXPECT_EQ(spec.output.to.path, ".");
  EXPECT_EQ(spec.logs.to, (VolumePath{"out", "l"}));
  EXPECT_EQ(spec.progress_update_timeout, seconds(3 * 3600 + 30));
  EXPECT_EQ(spec.first_task_creation_timeout, seconds(1000));
  EXPECT_EQ(spec.shared_memory, 2147483648U);
  EXPECT_EQ(spec.ttl_after_finished, seconds(0));
  EXPECT_TRUE(spec.suspend);
}

TEST(Parse, AllProblemsAtOnceInFileOrder) {
  const ParsedJob parsed = ReadJob(R"(apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata: {name: Digits}
spec:
  entry_script: score.py
  arguments: [--ratio, 0.5]
  volumes:
    - {name: out, persistentVolumeClam: {claimName: results}}
  inputs:
    - name: rows
      tabular: {volume: out, path: rows}
  output: {volume: out}
  miniBatchSize: 10Mi
  loggingLevel: info
)",
                                   {}, Target::kLocal);
  EXPECT_THAT(
      Lines(parsed),
      ElementsAre(
          "job.yaml:3: metadata.name: \"Digits\" cannot name a job: write 3 to 40 lower-case "
          "letters, digits and \"-\", a letter first and no \"-\" last",
          "job.yaml:4: spec.entryScript: is required: write the file with run(), as in score.py",
          "job.yaml:5: spec.entry_script: unknown field: did you mean entryScript?",
          "job.yaml:6: spec.arguments[1]: write \"0.5\" in quotes: without them it is the number "
          "0.5",
          "job.yaml:8: spec.volumes[0].persistentVolumeClam: unknown field: did you mean "
          "persistentVolumeClaim?",
          "job.yaml:13: spec.miniBatchSize: \"10Mi\" is not a size: write 10MB (powers of 1024)",
          "job.yaml:14: spec.loggingLevel: \"info\" is not one of WARNING, INFO or DEBUG: write "
          "INFO"));
}

TEST(Parse, ALocalRunNeedsNeitherImageNorCode) {
  std::string text = kExample;
  text.erase(text.find("  code:"), text.find("  arguments:") - text.find("  code:"));
  text.erase(text.find("  environment:"), text.find("  volumes:") - text.find("  environment:"));
  const ParsedJob local = ReadJob(text, {}, Target::kLocal);
  EXPECT_THAT(Lines(local), ElementsAre());
  EXPECT_EQ(local.job.spec.code.kind, CodeKind::kJobFolder);
  EXPECT_THAT(
      Lines(ReadJob(text, {}, Target::kCluster)),
      ElementsAre(HasSubstr("spec.code: is required"), HasSubstr("spec.environment: is required")));
  EXPECT_TRUE(ReadJob(text, {"spec.code.path=../src"}, Target::kLocal).ok());
}

TEST(Parse, MiniBatchSizeMeansWhatTheInputIs) {
  const std::string base =
      std::string(kExample).substr(0, std::string(kExample).find("  inputs:")) +
      "  output: {volume: out}\n  sideInputs: [{name: model, volume: data}]\n";
  const auto size = [&](const std::string& input, const std::string& line) {
    const ParsedJob parsed =
        ReadJob(base + "  inputs: [{name: in, " + input + ": {volume: data}}]\n" + line, {},
                Target::kCluster);
    EXPECT_THAT(Lines(parsed), ElementsAre());
    return parsed.job.spec.mini_batch_size;
  };
  EXPECT_EQ(size("files", ""), 10U);
  EXPECT_EQ(size("tabular", ""), 1048576U);
  EXPECT_EQ(size("jsonLines", ""), 10U);
  EXPECT_EQ(size("tabular", "  miniBatchSize: 10kb\n"), 10240U);
  EXPECT_EQ(size("tabular", "  miniBatchSize: 5000\n"), 5000U);
  EXPECT_EQ(size("files", "  miniBatchSize: 010\n"), 8U);
  EXPECT_EQ(size("files", "  miniBatchSize: '010'\n"), 10U);
}

TEST(Parse, PartitionKeysWinWithAWarning) {
  std::string text = kExample;
  text.replace(text.find("\"**/*.png\"}"), 11,
               "\"**/*.png\"}, partitionFormat: \"{user}/{n}.png\"");
  const ParsedJob parsed = ReadJob(text, {"spec.partitionKeys[0]=user"}, Target::kCluster);
  EXPECT_TRUE(parsed.ok());
  EXPECT_THAT(Lines(parsed), ElementsAre("job.yaml:19: warning: spec.miniBatchSize: has no effect "
                                         "beside partitionKeys, which win: remove one of them"));
}

TEST(Parse, AManifestThatLooksLikeATableIsATextWithAWarning) {
  const auto lines = [](const std::string& manifest) {
    std::string text = kExample;
    const std::string pattern = ", pattern: \"**/*.png\"}";
    text.replace(text.find(pattern), pattern.size(), "}, manifest: {" + manifest + "}");
    const ParsedJob parsed = ReadJob(text, {}, Target::kCluster);
    EXPECT_TRUE(parsed.ok());
    return Lines(parsed);
  };
  EXPECT_THAT(lines("path: lists/today.csv"),
              ElementsAre("job.yaml:13: warning: spec.inputs[0].manifest.path: \"lists/today.csv\" "
                          "is read as a text, whose lines are paths: write format: CSV, or give a "
                          "text another name"));
  EXPECT_THAT(lines("path: today.jsonl.gz"), ElementsAre(HasSubstr("write format: JSONLines, or")));
  EXPECT_THAT(lines("path: today.csv, format: CSV"), ElementsAre());
  EXPECT_THAT(lines("path: today.jsonl, format: JSONLines"), ElementsAre());
  EXPECT_THAT(lines("path: csv"), ElementsAre());
}

TEST(Parse, RankMiniBatchesNeedNoInput) {
  EXPECT_TRUE(
      ReadJob(kExample, {"spec.inputs=", "spec.rankMiniBatchCount=4"}, Target::kCluster).ok());
}

// One that is looked at with others and once more by itself was listed twice.
TEST(Parse, EachFieldThatIsKnownIsNamedOnce) {
  nlohmann::json job = ReadForeignDocument(kExample).job.ToJson();
  job["spec"]["state"] = {{"xyz", 1}};
  const ParsedJob parsed = ReadJob(job, Target::kCluster);
  ASSERT_EQ(parsed.problems.size(), 1U);
  EXPECT_EQ(parsed.problems[0].field, "spec.state.xyz");
  EXPECT_EQ(parsed.problems[0].mend,
            "known here: volume, store, path, ephemeral or volumeClaimTemplate");
}

TEST(Parse, EphemeralStateAllowsAnEmptyDir) {
  const std::vector<std::string> lost = {"spec.volumes[1].persistentVolumeClaim=",
                                         "spec.volumes[1].emptyDir.medium=Memory"};
  EXPECT_THAT(Lines(ReadJob(kExample, lost, Target::kCluster)),
              ElementsAre(HasSubstr("is an emptyDir, which is lost with its pod")));
  std::vector<std::string> meant = lost;
  meant.emplace_back("spec.state.ephemeral=true");
  const ParsedJob parsed = ReadJob(kExample, meant, Target::kCluster);
  EXPECT_THAT(Lines(parsed), ElementsAre());
  EXPECT_EQ(parsed.job.spec.state.in, VolumePath());
}

TEST(Parse, BoundsOnListsAndText) {
  nlohmann::json job = ToJson(ReadJob(kExample, {}, Target::kCluster).job);
  job["spec"]["arguments"] = std::vector<std::string>(100, std::string(4096, 'x'));
  EXPECT_TRUE(ReadJob(job, Target::kCluster).ok());
  // Characters count, not bytes.
  std::string umlauts;
  for (int i = 0; i < 4096; ++i) umlauts += "ü";
  job["spec"]["arguments"][0] = umlauts;
  EXPECT_TRUE(ReadJob(job, Target::kCluster).ok());
  job["spec"]["arguments"][0] = "-" + umlauts;
  EXPECT_THAT(Lines(ReadJob(job, Target::kCluster)),
              ElementsAre(HasSubstr("spec.arguments[0]: is longer than 4096 characters")));
  job["spec"]["arguments"] = std::vector<std::string>(101, "x");
  EXPECT_THAT(Lines(ReadJob(job, Target::kCluster)), ElementsAre(HasSubstr("101 items")));
  job["spec"]["arguments"] = {std::string("a\0b", 3)};
  EXPECT_THAT(Lines(ReadJob(job, Target::kCluster)), ElementsAre(HasSubstr("NUL")));
  job["spec"]["arguments"] = nlohmann::json::array();
  for (int i = 0; i < 33; ++i) {
    job["spec"]["inputs"][static_cast<size_t>(i)] = {{"name", "in" + std::to_string(i)},
                                                     {"files", {{"volume", "data"}}}};
  }
  EXPECT_THAT(Lines(ReadJob(job, Target::kCluster)),
              ElementsAre(HasSubstr("spec.inputs: 33 items")));
}

// As the API server keeps it, so that a job file and the object that comes of it are the same.
TEST(Parse, WhatIsNullIsNotThere) {
  const auto canonical = [](const std::string& more) {
    const ParsedJob parsed = ReadJob(kExample + more, {}, Target::kCluster);
    EXPECT_THAT(Lines(parsed), ElementsAre());
    return CanonicalText(ToJson(parsed.job));
  };
  EXPECT_EQ(
      canonical("  coordinator: {resources: {limits: {cpu: 1}, claims: null}}\n"
                "  podTemplate: {metadata: {labels: null}, spec: {tolerations: [{key: null}]}}\n"),
      canonical("  coordinator: {resources: {limits: {cpu: 1}}}\n"
                "  podTemplate: {metadata: {}, spec: {tolerations: [{}]}}\n"));
}

TEST(Parse, MoreProcessesThanDevicesAreAWarning) {
  const auto said = [](const std::string& text, const std::vector<std::string>& sets) {
    const ParsedJob parsed = ReadJob(text, sets, Target::kCluster);
    EXPECT_TRUE(parsed.ok());
    std::string lines;
    for (const Problem& problem : parsed.problems) lines += FormatProblem(problem, "") + "\n";
    return lines;
  };
  const std::string few = "spec.resources.limits[\"nvidia.com/gpu\"]=1";
  EXPECT_THAT(
      said(kExample, {few}),
      HasSubstr("spec.processCountPerNode: is 2, and a node has 1 device (nvidia.com/gpu): "
                "processes beyond that get none of their own, and see them all: write 1, share "
                "them out on purpose by a higher processesPerGpu, or have the script choose which "
                "one it uses"));
  EXPECT_EQ(said(kExample, {few, "spec.processesPerGpu=2"}), "") << "on purpose";
  EXPECT_THAT(
      said(kExample, {few, "spec.processesPerGpu=2", "spec.processCountPerNode=3"}),
      HasSubstr("has 1 device (nvidia.com/gpu) for 2 processes each: processes beyond that get "
                "none of their own, and see them all: write 2, "));
  const std::string worker = "{name: worker, resources: {limits: {nvidia.com/gpu: 2}}}";
  EXPECT_EQ(said(std::string(kExample) + "  podTemplate: {spec: {containers: [" + worker + "]}}\n",
                 {few}),
            "")
      << "as the pod has it";
  EXPECT_EQ(said(kExample, {}), "");
  EXPECT_EQ(said(kExample, {few, "spec.processCountPerNode="}), "") << "as many as devices then";
  EXPECT_EQ(said(kExample, {"spec.resources.limits[\"nvidia.com/gpu\"]=0"}), "");
}

TEST(Override, SetsBeforeTheCheck) {
  const ParsedJob parsed =
      ReadJob(kExample,
              {"spec.environment.python=/usr/bin/python3", "spec.inputs[0].files.pattern=*.png",
               "spec.nodeCount=5", "spec.arguments[2]=\"0.5\"",
               "spec.processCountPerNode=", "spec.resources.limits[\"nvidia.com/gpu\"]=4",
               "metadata.name=other", "spec.podTemplate.spec.nodeSelector.a\\.b/c=x=y"},
              Target::kCluster);
  ASSERT_THAT(Lines(parsed), ElementsAre());
  EXPECT_EQ(parsed.job.spec.environment.python, "/usr/bin/python3");
  EXPECT_EQ(parsed.job.spec.inputs[0].pattern, "*.png");
  EXPECT_EQ(parsed.job.spec.node_count, 5);
  EXPECT_EQ(parsed.job.spec.arguments.at(2), "0.5");
  EXPECT_FALSE(parsed.job.spec.process_count_per_node);
  EXPECT_EQ(parsed.job.spec.resources["limits"]["nvidia.com/gpu"], 4);
  EXPECT_EQ(parsed.job.spec.output.to.path, "other/output");
  EXPECT_EQ(parsed.job.spec.pod_template["spec"]["nodeSelector"]["a.b/c"], "x=y");
}

TEST(Override, AnotherSourceOfAVolumeTakesThePlaceOfTheFirst) {
  const ParsedJob parsed =
      ReadJob(kExample, {"spec.volumes[0].hostPath.path=/here"}, Target::kLocal);
  ASSERT_THAT(Lines(parsed), ElementsAre());
  EXPECT_EQ(parsed.job.spec.volumes[0].kind, "hostPath");
  EXPECT_EQ(parsed.job.spec.volumes[0].source, nlohmann::json({{"path", "/here"}}));
  // To remove a field is no choice of another source.
  const ParsedJob removed = ReadJob(kExample, {"spec.volumes[0].hostPath="}, Target::kLocal);
  EXPECT_THAT(Lines(removed), ElementsAre());
  EXPECT_NE(removed.job.spec.volumes[0].kind, "hostPath");
}

TEST(Override, OnOneMachineAVolumeNeedsNoSource) {
  const std::vector<std::string> none = {"spec.volumes[0].persistentVolumeClaim="};
  const ParsedJob local = ReadJob(kExample, none, Target::kLocal);
  EXPECT_THAT(Lines(local), ElementsAre());
  EXPECT_EQ(local.job.spec.volumes[0].kind, "");
  EXPECT_FALSE(ReadJob(kExample, none, Target::kCluster).ok());
  EXPECT_TRUE(ReadJob(ToJson(local.job), Target::kLocal).ok());
}

TEST(Override, ErrorsNameTheFlag) {
  const struct {
    const char* flag;
    const char* problem;
  } table[] = {
      {"spec.nodeCount=-1",
       "--set spec.nodeCount=-1: spec.nodeCount: -1 is out of range: must be at least 0"},
      {"spec.nodCount=1",
       "--set spec.nodCount=1: spec.nodCount: unknown field: did you mean nodeCount?"},
      {"spec.inputs[0].files.patern=x",
       "--set spec.inputs[0].files.patern=x: spec.inputs[0].files.patern: unknown field: did you "
       "mean pattern?"},
      {"spec.arguments[1]=0.5",
       "--set spec.arguments[1]=0.5: spec.arguments[1]: write \"0.5\" in quotes: without them it "
       "is the number 0.5; a shell takes one pair away: '\"0.5\"'"},
      {R"(spec.inputs[0].files.exclude=["*.tmp", x])",
       R"(--set spec.inputs[0].files.exclude=["*.tmp", x]: spec.inputs[0].files.exclude: must be a )"
       R"(list, not the string "[\"*.tmp\", x]": set one item each, as in --set )"
       R"('spec.inputs[0].files.exclude[0]="*.tmp"')"},
      {"spec.inputs[0].files.exclude=*.tmp",
       "--set spec.inputs[0].files.exclude=*.tmp: spec.inputs[0].files.exclude: must be a list, "
       "not "
       "the string \"*.tmp\": set one item each, as in --set "
       "'spec.inputs[0].files.exclude[0]=*.tmp'"},
      {"spec.inputs[0].files.exclude=[]",
       "--set spec.inputs[0].files.exclude=[]: spec.inputs[0].files.exclude: must be a list, not "
       "the string \"[]\": set one item each, as in --set "
       "'spec.inputs[0].files.exclude[0]=VALUE'"},
      {R"(spec.inputs[0].files.exclude=["a]b"])",
       R"(--set spec.inputs[0].files.exclude=["a]b"]: spec.inputs[0].files.exclude: must be a list, )"
       R"(not the string "[\"a]b\"]": set one item each, as in --set )"
       R"('spec.inputs[0].files.exclude[0]=VALUE')"},
      {"spec.cache=1GB",
       "--set spec.cache=1GB: spec.cache: must be a map of fields, not the string \"1GB\": set one "
       "field each, as in --set 'spec.cache.FIELD=VALUE'"},
      {"spec.nodeCount", "--set spec.nodeCount: no \"=\" in it: write --set spec.FIELD=VALUE"},
      {"nodeCount=1",
       "--set nodeCount=1: only fields below spec and metadata can be set: write --set "
       "spec.FIELD=VALUE"},
      {"spec.inputs[5].name=x",
       "--set spec.inputs[5].name=x: spec.inputs has 1 items: the index counts from 0; the next is "
       "1"},
      {"spec.nodeCount.x=1", "--set spec.nodeCount.x=1: spec.nodeCount is the number 2, not a map"},
      {"spec.output=out",
       "--set spec.output=out: spec.output is a map, and can only be set piece by piece: set one "
       "field each, as in --set 'spec.output.volume=VALUE'"},
      {"spec.inputs=[a]",
       "--set spec.inputs=[a]: spec.inputs is a list, and can only be set piece by piece: set one "
       "field each, as in --set 'spec.inputs[0].name=VALUE'"},
      {"spec.arguments=[--fast, x]",
       "--set spec.arguments=[--fast, x]: spec.arguments is a list, and can only be set piece by "
       "piece: set one item each, as in --set 'spec.arguments[0]=--fast'"},
      {"spec.code=here",
       "--set spec.code=here: spec.code is a map, and can only be set piece by piece: set one "
       "field each, as in --set 'spec.code.configMap.name=VALUE'"},
      {"spec.resources.limits=1",
       "--set spec.resources.limits=1: spec.resources.limits is a map, and can only be set piece "
       "by piece: set one field each, as in --set "
       "'spec.resources.limits[\"nvidia.com/gpu\"]=VALUE'"},
      {"spec.nodeCount=.inf", "--set spec.nodeCount=.inf: \".inf\" cannot be a value"},
  };
  for (const auto& [flag, problem] : table) {
    EXPECT_THAT(Lines(ReadJob(kExample, {flag}, Target::kCluster)), ElementsAre(problem));
  }
  EXPECT_THAT(Lines(ReadJob(kExample, {"spec..x=1"}, Target::kCluster)),
              ElementsAre(HasSubstr("is not a field path")));
}

TEST(Override, WhatIsSetByPiecesIsNamedByWordsThatAShellTakes) {
  const auto map = [](const std::string& key, Node value) {
    Node node;
    node.kind = Node::Kind::kMap;
    node.fields.push_back({key, {}, std::move(value)});
    return node;
  };
  const auto list = [](Node item) {
    Node node;
    node.kind = Node::Kind::kList;
    node.items.push_back(std::move(item));
    return node;
  };
  const std::string flag = "--set a=[b, c]";
  EXPECT_EQ(SetByPieces(flag, "a", map("it's", {})),
            "set one field each, as in --set 'a.FIELD=VALUE'");
  EXPECT_EQ(SetByPieces(flag, "a", map("b", list({}))),
            "set one item each, as in --set 'a.b[0]=VALUE'");
  EXPECT_EQ(SetByPieces(flag, "a", list(list({}))), "set one item each, as in --set 'a[0][0]=b'");
  EXPECT_EQ(SetByPieces(flag, "a", list(map("b", {}))),
            "set one field each, as in --set 'a[0].b=VALUE'");
}

// What is said of a job that names stores.
std::string SaidOfStores(const std::string& stores, const std::string& files, Target target,
                         const std::string& output = "output: {volume: out}") {
  const ParsedJob parsed = ReadJob(
      "apiVersion: parallelrun.dev/v1alpha1\nkind: ParallelRunJob\nmetadata: {name: digits}\n"
      "spec:\n  entryScript: score.py\n  volumes: [{name: out, hostPath: {path: /o}}]\n"
      "  " +
          output + "\n  stores: [" + stores + "]\n  inputs: [{name: images, files: {" + files +
          "}}]\n",
      {}, target);
  std::string said;
  for (const Problem& problem : parsed.problems) said += FormatProblem(problem, "") + "\n";
  return said;
}

TEST(Stores, UrlsAreOfObjectsAlone) {
  const std::string bucket = "{name: bucket, url: 's3://b/a/'}";
  EXPECT_EQ(SaidOfStores(bucket, "store: bucket, access: Uri", Target::kLocal), "");
  EXPECT_THAT(SaidOfStores(bucket, "volume: in, access: Uri", Target::kLocal),
              AllOf(HasSubstr("spec.inputs[0].files.access"), HasSubstr("Uri is for inputs in")));
}

TEST(Stores, AnOutputInAStoreNeedsNoVolume) {
  const std::string bucket = "{name: bucket, url: 's3://b/a/'}, {name: all, url: 's3://b'}";
  const std::string folders = "\n  logs: {volume: out}\n  state: {volume: out}\n";
  const auto said = [&](const std::string& output,
                        const std::string& files = "volume: out, path: i") {
    return SaidOfStores(bucket, files, Target::kLocal, output);
  };
  EXPECT_EQ(said("output: {store: bucket}" + folders), "");
  EXPECT_EQ(said("output: {store: bucket}"), "");
  EXPECT_THAT(said("output: {store: bucket, volume: out}" + folders),
              HasSubstr("stands beside a store: keep one of the two"));
  EXPECT_THAT(said("output: {path: a}" + folders), HasSubstr("is required"));
  EXPECT_THAT(said("output: {store: none}" + folders), HasSubstr("there is no store \"none\""));
  EXPECT_EQ(said("output: {store: bucket, sideFiles: Staged}" + folders), "");
  EXPECT_THAT(said("output: {store: bucket, action: SummaryOnly}" + folders),
              HasSubstr("SummaryOnly leaves files, which go to a store with sideFiles: Staged"));
  EXPECT_EQ(said("output: {store: bucket, action: SummaryOnly, sideFiles: Staged}" + folders), "");
  EXPECT_EQ(said("arguments: ['--to=$(output)/x']\n"
                 "  output: {store: bucket, sideFiles: Staged}" +
                 folders),
            "");
  EXPECT_THAT(said("arguments: ['--to=$(output)/x']\n  output: {store: bucket}" + folders),
              HasSubstr("$(output) is a folder for the script"));
  EXPECT_THAT(said("output: {store: bucket, path: x}" + folders, "store: all, path: a"),
              HasSubstr("the output is inside the input \"images\""));
  EXPECT_EQ(said("output: {store: bucket, path: x}" + folders, "store: all, path: ab"), "");
  EXPECT_THAT(said("output: {store: bucket, path: x}" + folders, "store: all, path: a/"),
              HasSubstr("the output is inside the input \"images\""));
}

TEST(Stores, AnInputLiesOnAVolumeOrInAStore) {
  const std::string bucket = "{name: bucket, url: 's3://b/in'}";
  EXPECT_EQ(SaidOfStores(bucket, "store: bucket, path: a", Target::kLocal), "");
  EXPECT_THAT(SaidOfStores(bucket, "store: bukket", Target::kLocal),
              HasSubstr("there is no store \"bukket\": write bucket"));
  EXPECT_THAT(SaidOfStores("", "store: bucket", Target::kLocal),
              HasSubstr("add it to spec.stores"));
  EXPECT_THAT(SaidOfStores(bucket, "store: bucket, volume: out", Target::kLocal),
              HasSubstr("keep one of the two"));
  EXPECT_THAT(SaidOfStores(bucket, "path: a", Target::kLocal),
              HasSubstr("is required: write the name of one of spec.volumes, or store"));
  EXPECT_THAT(SaidOfStores("{name: bucket, url: 'ftp://b'}", "store: bucket", Target::kLocal),
              HasSubstr("write s3://BUCKET/PREFIX"));
  EXPECT_THAT(SaidOfStores("{name: bucket, url: 's3://b0b/p?versionId=SECRET'}", "store: bucket",
                           Target::kLocal),
              AllOf(HasSubstr("s3://b0b/p"), HasSubstr("leave out what follows it"),
                    Not(HasSubstr("SECRET"))));
  EXPECT_THAT(SaidOfStores(bucket + ", " + bucket, "store: bucket", Target::kLocal),
              HasSubstr("bucket"));
}

// Without one it may be the key of one object.
TEST(Stores, ASlashAtTheEndOfAPathInAStoreIsKept) {
  const auto path = [](const std::string& from) {
    const ParsedJob parsed = ReadJob(
        "apiVersion: parallelrun.dev/v1alpha1\nkind: ParallelRunJob\nmetadata: {name: digits}\n"
        "spec:\n  entryScript: score.py\n  volumes: [{name: out, hostPath: {path: /o}}]\n"
        "  output: {volume: out}\n  stores: [{name: bucket, url: 's3://b0b'}]\n"
        "  inputs: [{name: images, files: {" +
            from + "}}]\n",
        {}, Target::kLocal);
    EXPECT_THAT(Lines(parsed), ElementsAre());
    return parsed.job.spec.inputs[0].from.path;
  };
  EXPECT_EQ(path("store: bucket, path: a/b"), "a/b");
  EXPECT_EQ(path("store: bucket, path: a//b//"), "a/b/");
  EXPECT_EQ(path("path: a/, store: bucket"), "a/");
  EXPECT_EQ(path("store: bucket, path: ./"), ".");
  EXPECT_EQ(path("volume: out, path: a/"), "a");
}

TEST(Stores, APathAndThePrefixOfThatNameAreNotTwoInputsOfOneStore) {
  const std::string bucket = "{name: bucket, url: 's3://b0b'}, {name: other, url: 's3://b0b'}";
  const auto said = [&](const std::string& first, const std::string& second) {
    return SaidOfStores(bucket, first + "}}, {name: more, files: {" + second, Target::kLocal);
  };
  for (const auto& [first, second] : {std::pair{"a", "a/"}, std::pair{"a/", "a"}}) {
    const std::string one = std::string("store: bucket, path: ") + first;
    EXPECT_THAT(said(one, std::string("store: bucket, path: ") + second),
                HasSubstr("spec.inputs[1].files.path"));
    EXPECT_EQ(said(one, std::string("store: other, path: ") + second), "");
    EXPECT_EQ(said(one, std::string("store: bucket, pattern: '*.png', path: ") + second), "");
  }
  EXPECT_EQ(said("store: bucket, path: a", "store: bucket, path: ab/"), "");
}

TEST(Stores, AContainerOfAzureIsReadAndHasNoSignatureInItsUrl) {
  const auto said = [](const std::string& url, const std::string& more = "",
                       const std::string& output = "output: {volume: out}\n") {
    return SaidOfStores("{name: blobs, url: '" + url + "'" + more + "}", "store: blobs",
                        Target::kLocal, output);
  };
  const std::string url = "abfss://photos@data.dfs.core.windows.net/2026";
  EXPECT_EQ(said(url), "");
  EXPECT_EQ(said("https://data.blob.core.windows.net/photos/2026"), "");
  for (const std::string& with :
       {url + "?sv=1&sig=SECRET", std::string("https://data.blob.core.windows.net/p?sig=SECRET")}) {
    EXPECT_THAT(said(with), AllOf(HasSubstr("AZURE_STORAGE_SAS_TOKEN"), Not(HasSubstr("SECRET"))));
  }
  EXPECT_THAT(said(url, ", region: eu-west-1"), HasSubstr("which buckets of S3 have"));
  EXPECT_THAT(said(url, ", credentials: {secretName: keys}"), HasSubstr("are keys of S3"));
  EXPECT_THAT(said(url, "",
                   "output: {store: blobs, path: o}\n  logs: {volume: out}\n  state: {volume: "
                   "out}\n"),
              HasSubstr("of Azure Blob Storage only inputs are read"));
}

TEST(Stores, ASecretOfTheClusterHoldsTheKeysOfOne) {
  const auto read = [](const std::string& credentials) {
    return ReadJob(
        "apiVersion: parallelrun.dev/v1alpha1\nkind: ParallelRunJob\nmetadata: {name: digits}\n"
        "spec:\n  entryScript: score.py\n  volumes: [{name: out, hostPath: {path: /o}}]\n"
        "  code: {image: {path: /app}}\n  environment: {image: i}\n  output: {volume: out}\n"
        "  stores: [{name: bucket, url: 's3://b', credentials: {" +
            credentials + "}}]\n  inputs: [{name: images, files: {store: bucket}}]\n",
        {}, Target::kCluster);
  };
  const auto credentials = [&](const std::string& said) {
    const ParsedJob parsed = read(said);
    EXPECT_THAT(Lines(parsed), ElementsAre());
    return parsed.job.spec.stores.at(0).credentials;
  };
  EXPECT_EQ(credentials("secretName: keys"),
            (StoreCredentials{"keys", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", ""}));
  EXPECT_EQ(credentials("secretName: keys, accessKeyId: id, secretAccessKey: k, sessionToken: t"),
            (StoreCredentials{"keys", "id", "k", "t"}));
  EXPECT_THAT(Lines(read("accessKeyId: id")),
              ElementsAre(HasSubstr("spec.stores[0].credentials.secretName")));
}

}  // namespace
}  // namespace parallelrun::api
