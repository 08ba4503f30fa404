#include "cli/run/run_events.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/memory_file.h"
#include "base/small_file.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLines[] =
    "{\"type\":\"ValueError\",\"message\":\"one\",\"id\":1}\nnothing\n"
    "{\"type\":\"ValueError\",\"message\":\"two\",\"id\":2}";

// All that a run says at its end, of which `logs` is the log folder.
std::string Ended(const std::string& logs) {
  const Result<Fd> said = MemoryFile("events", "");
  {
    EventStream stream(said->get());
    RunEvents events(&stream, Instant());
    const nlohmann::json last = {{"miniBatches", nlohmann::json::object()},
                                 {"verdict", {{"outcome", "Failed"}}}};
    events.End(1, last, "", logs, {}, Instant());
  }
  return *ReadRange(said->get(), 0, size_t{1} << 20, "events");
}

TEST(RunEventsAtTheEnd, TellWhatIsInTheFailuresAndWasNotTold) {
  const TempFolder logs;
  logs.Write("failures.jsonl", kLines);
  const std::string said = Ended(logs.path());
  EXPECT_THAT(said, HasSubstr("\"message\":\"one\""));
  EXPECT_THAT(said, HasSubstr("\"message\":\"two\""));
}

TEST(RunEventsOfProgress, WhichStoreKeepsTheJobWaitingIsToldWhenItChanges) {
  const Result<Fd> said = MemoryFile("events", "");
  {
    EventStream stream(said->get());
    RunEvents events(&stream, Instant());
    nlohmann::json progress = {{"state", "Running"}, {"storeWaits", ""}};
    const auto tell = [&](const char* waits) {
      progress["storeWaits"] = waits;
      events.Progress(progress, Instant());
      events.Progress(progress, Instant());
    };
    tell("");
    tell("node 0: throttled by the store s3://box");
    tell("");
  }
  std::istringstream lines(*ReadRange(said->get(), 0, size_t{1} << 20, "events"));
  std::vector<std::string> told;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json event = nlohmann::json::parse(line);
    if (event.at("event") == "storeWaits") told.push_back(event.at("text").get<std::string>());
  }
  EXPECT_THAT(told, ElementsAre("node 0: throttled by the store s3://box", ""));
}

// Scripts may write to the logs: a pipe there would be waited for until somebody writes into it.
TEST(RunEventsAtTheEnd, NothingInThePlaceOfTheFailuresIsFollowedOrWaitedFor) {
  const TempFolder logs;
  ASSERT_EQ(mkfifo(logs.path("failures.jsonl").c_str(), 0600), 0);
  EXPECT_THAT(Ended(logs.path()), HasSubstr("\"exitStatus\":1"));
  const TempFolder other;
  other.Write("elsewhere", kLines);
  std::filesystem::remove(logs.path("failures.jsonl"));
  std::filesystem::create_symlink(other.path("elsewhere"), logs.path("failures.jsonl"));
  EXPECT_THAT(Ended(logs.path()), Not(HasSubstr("\"message\":\"one\"")));
  EXPECT_EQ(Ended(other.path("none")).find("message\":\"one"), std::string::npos);
}

TEST(RunEventsProgress, TellsForHowLongInitHasBeenRunning) {
  const Result<Fd> said = MemoryFile("events", "");
  {
    EventStream stream(said->get());
    RunEvents events(&stream, Instant());
    events.Progress({{"state", "Starting"}, {"init", "init() has been running for 50s on 1 node"}},
                    Instant());
  }
  EXPECT_THAT(*ReadRange(said->get(), 0, size_t{1} << 20, "events"),
              HasSubstr("\"init\":\"init() has been running for 50s on 1 node\""));
}

}  // namespace
}  // namespace parallelrun::cli
