#include "cli/run/progress_bar.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace parallelrun::cli {
namespace {

using nlohmann::json;

json Progress() {
  return json::parse(R"({
    "state": "Running", "perSecond": 20.54, "secondsRemaining": 6, "paused": "",
    "miniBatches": {"total": 180, "planned": 180, "succeeded": 61, "failed": 2, "running": 4},
    "nodes": [{"index": 0, "registered": true}],
    "slowest": {"miniBatch": 3, "item": "/data/a\u001b[31m.png", "node": 0, "seconds": 21}})");
}

std::string Bar(const json& progress, size_t columns, bool colour = false) {
  return ProgressBar(progress, seconds(12), {columns, colour});
}

TEST(ProgressBarTest, WithRoomForAllOfIt) {
  EXPECT_EQ(Bar(Progress(), 200),
            "[========>                   ] 63 of 180 mini-batches, 20.5/s, 2 failed, 12s, "
            "6s left, 4 running, slowest 21s (a\\x1b[31m.png), 1 node");
}

// What matters most stays.
TEST(ProgressBarTest, NarrowOnesSayLess) {
  EXPECT_EQ(Bar(Progress(), 20), "63/180, 2 failed");
  EXPECT_EQ(Bar(Progress(), 40), "63/180, 20.5/s, 2 failed, 12s, 6s left");
}

TEST(ProgressBarTest, ANameIsThereAsAWholeAndWithItsAge) {
  EXPECT_NE(Bar(Progress(), 140).find("slowest 21s (a\\x1b[31m.png)"), std::string::npos);
  for (size_t columns = 1; columns <= 200; ++columns) {
    const std::string line = Bar(Progress(), columns);
    EXPECT_EQ(line.find('(') != std::string::npos,
              line.find("slowest 21s (a\\x1b[31m.png)") != std::string::npos)
        << line;
  }
}

TEST(ProgressBarTest, NoneIsWiderThanTheTerminal) {
  json progress = Progress();
  progress["slowest"]["item"] = "/data/\u6f22\u5b57/\u00e4\u00f6\u00fc and 9 more";
  progress["paused"] = "no space is left in /out";
  for (size_t columns = 1; columns <= 220; ++columns) {
    const std::string line = Bar(progress, columns);
    size_t width = 0;
    for (const char c : line) width += (c & 0xc0) != 0x80 ? 1 : 0;
    EXPECT_LT(width, std::max<size_t>(columns, 1) + (columns == 1 ? 1 : 0)) << columns;
  }
}

TEST(ProgressBarTest, APauseIsCutRatherThanLeftOut) {
  json progress = Progress();
  progress["paused"] = "no space is left in /out";
  EXPECT_EQ(Bar(progress, 30), "63/180, PAUSED: no space is l");
}

TEST(ProgressBarTest, WhatNodesFetchIsCutRatherThanLeftOut) {
  json progress = Progress();
  progress["fetching"] = "node 0: fetching side input model";
  EXPECT_EQ(Bar(progress, 30), "63/180, node 0: fetching side");
}

TEST(ProgressBarTest, InitThatTakesLongIsCutRatherThanLeftOut) {
  json progress = Progress();
  progress["init"] = "init() has been running for 50s on 1 node";
  EXPECT_EQ(Bar(progress, 32), "63/180, init() has been running");
}

TEST(ProgressBarTest, AStoreThatKeepsNodesWaitingIsCutRatherThanLeftOut) {
  json progress = Progress();
  progress["storeWaits"] = "node 0: throttled by the store s3://box";
  EXPECT_EQ(Bar(progress, 39), "63/180, node 0: throttled by the store");
}

TEST(ProgressBarTest, ColourIsAroundWordsAndTakesNoRoom) {
  const std::string plain = Bar(Progress(), 120);
  std::string coloured = Bar(Progress(), 120, true);
  EXPECT_NE(coloured.find("\x1b[31m2 failed\x1b[0m"), std::string::npos) << coloured;
  for (const std::string code : {"\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"}) {
    for (size_t at = 0; (at = coloured.find(code)) != std::string::npos;) {
      coloured.erase(at, code.size());
    }
  }
  EXPECT_EQ(coloured, plain);
}

TEST(ProgressBarTest, BeforeAnythingIsPlannedItIsEmpty) {
  json progress = Progress();
  progress["miniBatches"] = {
      {"total", nullptr}, {"planned", 0}, {"succeeded", 0}, {"failed", 0}, {"running", 0}};
  progress["secondsRemaining"] = nullptr;
  progress["slowest"] = nullptr;
  progress["state"] = "Starting";
  EXPECT_EQ(Bar(progress, 80).find("[    "), 0U);
  EXPECT_NE(Bar(progress, 80).find("listing the input"), std::string::npos);
  EXPECT_NE(Bar(progress, 120).find(", 1 node"), std::string::npos);
  progress["nodes"] = json::array();
  EXPECT_EQ(Bar(progress, 120).find("node"), std::string::npos);
  progress["state"] = "Running";
  EXPECT_NE(Bar(progress, 120).find(", 0 nodes"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::cli
