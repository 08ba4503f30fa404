#include "cli/follow/cluster_events.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/follow/attach.h"
#include "cli/run/display.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

json Job(const char* status) {
  return {{"metadata",
           {{"name", "digits"}, {"namespace", "team"}, {"uid", "0a1b2"}, {"generation", 2}}},
          {"spec", {{"nodeCount", 3}}},
          {"status", json::parse(status)}};
}

json With(const char* type, const char* reason, int generation = 2) {
  json job = Job("{}");
  job["status"]["observedGeneration"] = generation;
  job["status"]["conditions"] = {
      {{"type", type}, {"status", "True"}, {"reason", reason}, {"message", "why"}}};
  return job;
}

TEST(ClusterEnd, IsWhatTheConditionsSay) {
  EXPECT_FALSE(EndOf(Job("{}"), false));
  EXPECT_FALSE(EndOf(nullptr, false));
  EXPECT_FALSE(EndOf(With("FailureTarget", "Canceled"), false));
  std::optional<ClusterEnd> end = EndOf(With("Complete", "Completed"), false);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit, 0);
  EXPECT_EQ(end->state, "Succeeded");
  EXPECT_EQ(end->message, "why");
  EXPECT_EQ(EndOf(With("Complete", "CompletedWithFailures"), false)->exit, 3);
  EXPECT_EQ(EndOf(With("Complete", "CompletedWithFailures"), true)->exit, 0);
  EXPECT_EQ(EndOf(With("Complete", "ShutdownFailed"), false)->exit, 0);
  EXPECT_EQ(EndOf(With("Failed", "Canceled"), false)->exit, 1);
  EXPECT_EQ(EndOf(With("Failed", "Canceled"), false)->state, "Failed");
}

TEST(ClusterEnd, ARefusedJobIsOneThatIsRefusedAsItStandsNow) {
  const std::optional<ClusterEnd> end = EndOf(With("Finished", "Invalid"), false);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->exit, 2);
  EXPECT_EQ(end->state, "NotStarted");
  EXPECT_FALSE(EndOf(With("Finished", "Invalid", 1), false));
}

TEST(ClusterProgress, IsThatOfALocalRunAsFarAsTheStatusGoes) {
  EXPECT_TRUE(ProgressOf(Job("{}"), WallTime()).is_null());
  EXPECT_TRUE(ProgressOf(nullptr, WallTime()).is_null());
  const json progress = ProgressOf(Job(R"({"phase": "Running", "nodes": {"ready": 2},
      "progress": {"miniBatches": {"total": 180, "succeeded": 60, "failed": 1, "running": 4},
                   "perSecond": 20.5}})"),
                                   WallTime());
  EXPECT_EQ(ProgressLine(progress), "61 of 180 mini-batches, 20.5/s, 1 failed, 2 nodes");
  json waits = Job(R"({"phase": "Running", "nodes": {"ready": -7}, "progress": {}})");
  waits["status"]["conditions"] = {{{"type", "NodesReady"},
                                    {"status", "True"},
                                    {"reason", "AllReady"},
                                    {"message", "2 of 2; node 0: throttled"}}};
  EXPECT_EQ(ProgressOf(waits, WallTime())["storeWaits"], "node 0: throttled");
  EXPECT_EQ(ProgressOf(waits, WallTime())["nodes"], json::array());
}

TEST(ClusterProgress, AnObstacleHasItsReason) {
  json job = Job("{}");
  EXPECT_EQ(ObstacleOf(job), "");
  job["status"]["conditions"] = {
      {{"type", "NodesReady"}, {"status", "False"}, {"reason", "Unschedulable"}}};
  EXPECT_EQ(ObstacleOf(job), "Unschedulable");
  job["status"]["conditions"][0]["message"] = "no host";
  EXPECT_EQ(ObstacleOf(job), "Unschedulable: no host");
}

TEST(AttachToJob, TheEndSaysWhatToDoNext) {
  const ClusterEnd lost{3, "Succeeded", "CompletedWithFailures", "2 items \x1b[1m"};
  json job = Job(R"({"logs": "out/digits/logs",
      "output": {"path": "/mnt/out/rows.txt", "rows": 3, "bytes": 6},
      "progress": {"miniBatches": {"total": 5, "succeeded": 3, "failed": 2},
                   "items": {"total": 5, "succeeded": 3, "failed": 2}}})");
  EXPECT_EQ(EndText(job, lost, "digits --namespace team"),
            "Succeeded (CompletedWithFailures): 2 items \\x1b[1m\n"
            "  mini-batches  3 succeeded, 2 failed\n"
            "  items         3 succeeded, 2 failed\n"
            "  output        /mnt/out/rows.txt (3 rows, 6 bytes)\n"
            "To bring it here: parallelrun fetch digits --namespace team output FOLDER\n"
            "What failed: parallelrun failures digits --namespace team --traceback");
  const ClusterEnd refused{2, "NotStarted", "Invalid", "spec.x"};
  EXPECT_EQ(EndText(Job("{}"), refused, "digits"), "NotStarted (Invalid): spec.x");
  EXPECT_EQ(EndText(nullptr, refused, "digits"), "NotStarted (Invalid): spec.x");
}

TEST(AttachToJob, AThresholdAllowsLosses) {
  json job = Job("{}");
  EXPECT_FALSE(AllowsLosses(job));
  job["spec"]["allowedFailedPercent"] = 5;
  EXPECT_TRUE(AllowsLosses(job));
}

class ClusterEventsTest : public testing::Test {
 protected:
  ClusterEventsTest() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    stream_ = std::make_unique<EventStream>(ends_[1]);
    events_ = std::make_unique<ClusterEvents>(*stream_, Instant());
  }
  ~ClusterEventsTest() override { close(ends_[0]); }

  // All that was told, without the times.
  std::vector<json> Told() {
    events_.reset();
    stream_.reset();
    close(ends_[1]);
    std::string text;
    std::array<char, 4096> chunk{};
    for (ssize_t n = 0; (n = read(ends_[0], chunk.data(), chunk.size())) > 0;) {
      text.append(chunk.data(), static_cast<size_t>(n));
    }
    std::istringstream lines(text);
    std::vector<json> told;
    for (std::string line; std::getline(lines, line);) {
      told.push_back(json::parse(line));
      EXPECT_EQ(told.back().erase("seconds"), 1U);
    }
    return told;
  }

  std::array<int, 2> ends_{};
  std::unique_ptr<EventStream> stream_;
  std::unique_ptr<ClusterEvents> events_;
};

TEST_F(ClusterEventsTest, EachThingIsToldOnce) {
  const json waits = Job(
      R"({"phase": "Starting", "warning": "rows hold line breaks", "conditions": [{"type": "NodesReady",
    "status": "False", "reason": "Unschedulable", "message": "0/2"}]})");
  events_->Start(waits, "lab", Instant());
  for (int i = 0; i < 3; ++i) events_->Seen(waits, WallTime(), Instant());
  const std::vector<json> told = Told();
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[0]["event"], "start");
  EXPECT_EQ(told[0]["namespace"], "team");
  EXPECT_EQ(told[0]["context"], "lab");
  EXPECT_EQ(told[0]["nodes"], 3);
  EXPECT_EQ(told[1], (json{{"event", "phase"}, {"phase", "Starting"}}));
  EXPECT_EQ(told[2], (json{{"event", "waiting"}, {"text", "Unschedulable: 0/2"}}));
  EXPECT_EQ(told[3], (json{{"event", "warning"}, {"text", "rows hold line breaks"}}));
}

TEST_F(ClusterEventsTest, AStoreThatKeepsNodesWaitingIsToldWhenItChanges) {
  const auto ready = [](const char* message) {
    json job = Job("{}");
    job["status"]["conditions"] = {
        {{"type", "NodesReady"}, {"status", "True"}, {"reason", "AllReady"}, {"message", message}}};
    return job;
  };
  for (int i = 0; i < 2; ++i) events_->Seen(ready("2 of 2 nodes are ready"), WallTime(), Instant());
  for (int i = 0; i < 2; ++i) {
    events_->Seen(ready("2 of 2 nodes are ready; node 0: throttled by the store s3://a; b"),
                  WallTime(), Instant());
  }
  events_->Seen(ready("2 of 2 nodes are ready"), WallTime(), Instant());
  const std::vector<json> told = Told();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0],
            (json{{"event", "storeWaits"}, {"text", "node 0: throttled by the store s3://a; b"}}));
  EXPECT_EQ(told[1], (json{{"event", "storeWaits"}, {"text", ""}}));
}

TEST_F(ClusterEventsTest, ProgressHasTheKeysOfALocalRun) {
  const json job = Job(R"({"phase": "Running", "nodes": {"ready": 2}, "progress": {
    "miniBatches": {"total": 9, "succeeded": 3, "failed": 1, "running": 2},
    "items": {"total": 90, "succeeded": 30, "failed": 10}, "perSecond": 4,
    "estimatedCompletionTime": "1970-01-01T00:01:30Z"}})");
  events_->Seen(job, WallTime(seconds(60)), Instant());
  events_->Seen(job, WallTime(seconds(61)), Instant());  // nothing new but the time
  const std::vector<json> told = Told();
  ASSERT_EQ(told.size(), 2U);
  const json& progress = told[1];
  EXPECT_EQ(progress["phase"], "Running");
  EXPECT_EQ(progress["miniBatches"], json::parse(R"({"total": 9, "planned": 9, "before": 0,
    "succeeded": 3, "failed": 1, "running": 2, "pending": 3})"));
  EXPECT_EQ(progress["items"]["failed"], 10);
  EXPECT_EQ(progress["secondsRemaining"], 30);
  EXPECT_EQ(progress["nodes"], 2);
}

TEST_F(ClusterEventsTest, WhatIsNotListedHasNoTotal) {
  events_->Seen(
      Job(R"({"progress": {"miniBatches": {"succeeded": 3, "failed": 0, "running": 1}}})"),
      WallTime(), Instant());
  const std::vector<json> told = Told();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0]["miniBatches"]["total"].is_null());
  EXPECT_EQ(told[0]["miniBatches"]["planned"], 4);
  EXPECT_TRUE(told[0]["secondsRemaining"].is_null());
}

TEST_F(ClusterEventsTest, TheEndIsThatOfALocalRun) {
  const json job = Job(R"({"phase": "Succeeded", "logs": "out/digits/logs",
    "progress": {"miniBatches": {"total": 2, "succeeded": 1, "failed": 1},
                 "items": {"total": 2, "succeeded": 1, "failed": 1}},
    "output": {"path": "/mnt/out/rows.txt", "rows": 1, "bytes": 2, "sha256": "5f"}})");
  events_->End(job, {3, "Succeeded", "CompletedWithFailures", "why\n"}, Instant());
  events_->End(nullptr, {1, "Failed", "Deleted", "job digits was deleted"}, Instant());
  const std::vector<json> told = Told();
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0]["exitStatus"], 3);
  EXPECT_EQ(told[0]["losses"], 1);
  EXPECT_EQ(told[0]["rows"], 1);
  EXPECT_EQ(told[0]["output"]["sha256"], "5f");
  EXPECT_EQ(told[0]["logs"], "out/digits/logs");
  EXPECT_TRUE(told[1]["miniBatches"].is_null());
  EXPECT_TRUE(told[1]["output"].is_null());
}

}  // namespace
}  // namespace parallelrun::cli
