#include "cli/run/progress_teller.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace parallelrun::cli {
namespace {

using nlohmann::json;

class ProgressTellerTest : public ::testing::Test {
 protected:
  // What was said since the last time.
  std::string Said() {
    std::fflush(out_.get());
    std::string text;
    std::fseek(out_.get(), read_, SEEK_SET);
    for (int c = 0; (c = std::fgetc(out_.get())) != EOF;) text += static_cast<char>(c);
    read_ = std::ftell(out_.get());
    return text;
  }

  static json Progress() {
    return json::parse(R"({
      "state": "Running", "perSecond": 1, "secondsRemaining": 6, "paused": "", "rows": 610,
      "miniBatches": {"total": 180, "planned": 180, "succeeded": 0, "failed": 2, "lost": 2, "running": 4,
                      "pending": 113},
      "items": {"total": 1797, "succeeded": 610, "failed": 20}, "nodes": [], "errors": [],
      "failedAttempts": 3, "verdict": null, "output": null})");
  }

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out_{std::tmpfile(), &std::fclose};
  long read_ = 0;
  Display display_{out_.get(), out_.get(), {}, Instant()};
  ProgressTeller teller_{display_};
};

TEST_F(ProgressTellerTest, AWarningIsSaidOnceUntilThereIsAnotherOne) {
  json progress = Progress();
  progress["warning"] = "the volume is slow";
  teller_.Show(progress, Instant(seconds(1)));
  EXPECT_NE(Said().find("warning: the volume is slow\n"), std::string::npos);
  teller_.Show(progress, Instant(seconds(2)));
  EXPECT_EQ(Said(), "");
  progress["warning"] = "the clock went back";
  teller_.Show(progress, Instant(seconds(3)));
  EXPECT_EQ(Said(), "warning: the clock went back\n");
}

TEST_F(ProgressTellerTest, APauseIsSaidAgainWhenItCameBack) {
  const std::string kPaused =
      ". The job goes on by itself as soon as it can; or stop it, and continue later with "
      "--resume\n";
  json progress = Progress();
  teller_.Show(progress, Instant(seconds(1)));
  static_cast<void>(Said());
  progress["paused"] = "disk full\x1b[2J";
  teller_.Show(progress, Instant(seconds(2)));
  EXPECT_EQ(Said(), "paused: disk full\\x1b[2J" + kPaused);
  teller_.Show(progress, Instant(seconds(3)));
  progress["paused"] = "";
  teller_.Show(progress, Instant(seconds(4)));
  EXPECT_EQ(Said(), "");
  progress["paused"] = "disk full";
  teller_.Show(progress, Instant(seconds(5)));
  EXPECT_EQ(Said(), "paused: disk full" + kPaused);
}

TEST_F(ProgressTellerTest, EachLineAboutTheInputsIsSaidOnce) {
  json progress = Progress();
  teller_.Show(progress, Instant(seconds(1)));
  static_cast<void>(Said());
  progress["columns"] = {"columns: id integer"};
  progress["leftOut"] = {"left out: _SUCCESS"};
  teller_.Show(progress, Instant(seconds(2)));
  EXPECT_EQ(Said(), "columns: id integer\nleft out: _SUCCESS\n");
  progress["leftOut"].push_back("left out: _started");
  teller_.Show(progress, Instant(seconds(3)));
  EXPECT_EQ(Said(), "left out: _started\n");
}

TEST_F(ProgressTellerTest, LostMiniBatchesCountOnceOneHasSucceeded) {
  json progress = Progress();
  teller_.Show(progress, Instant(seconds(1)));
  EXPECT_EQ(teller_.lost(), 0);
  progress["miniBatches"]["succeeded"] = 1;
  teller_.Show(progress, Instant(seconds(2)));
  EXPECT_EQ(teller_.lost(), 2);
  EXPECT_EQ(teller_.succeeded(), 1u);
}

TEST_F(ProgressTellerTest, TheSummaryTakesTheLastWordsOrWhatWasShown) {
  teller_.Summarize(std::nullopt, {}, seconds(1));
  EXPECT_EQ(Said(), "Stopped before anything was planned\n");
  teller_.Show(Progress(), Instant(seconds(1)));
  static_cast<void>(Said());
  teller_.Summarize(std::nullopt, {}, seconds(1));
  const std::string shown = Said();
  EXPECT_NE(shown.find("180"), std::string::npos) << shown;
  json last = Progress();
  last["warning"] = "heard at the end only";
  last["columns"] = {"columns: id integer"};
  last["leftOut"] = {"left out: _SUCCESS"};
  teller_.Summarize(last, {}, seconds(1));
  EXPECT_EQ(Said().find("warning: heard at the end only\ncolumns: id integer\n"
                        "left out: _SUCCESS\n"),
            0u);
}

}  // namespace
}  // namespace parallelrun::cli
