#include "cli/explain_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "agent/agent.h"
#include "cli/run/local_run.h"
#include "coordinator/last_words.h"
#include "reasons/entries.h"

namespace parallelrun::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Told(const std::string& word) {
  const Result<std::string> told = Explained(word);
  return told.ok() ? *told : told.error().message;
}

TEST(Explain, AReason) {
  EXPECT_THAT(Told("NodeBackOff"), StartsWith("NodeBackOff: condition, event\n\nA node failed"));
  EXPECT_THAT(Told("nodebackoff"), HasSubstr("\nwhat to do: Fix that error."));
  EXPECT_THAT(Told("ShortReturn"), StartsWith("ShortReturn: kind of an error\n"));
  EXPECT_EQ(Told("NoProgress").find('`'), std::string::npos);
}

TEST(Explain, AnExitStatus) {
  EXPECT_THAT(Told("3"),
              StartsWith("exit status 3 of the command\n\nThe job finished with losses"));
  EXPECT_EQ(Told("7"), "there is no exit status 7: it is 0, 1, 2, 3, 129, 130 or 143");
}

TEST(Explain, ExitStatusesAreThoseOfThePrograms) {
  const auto explained = [](reasons::Program program) {
    std::set<int> statuses;
    for (const reasons::ExitStatus& exit : reasons::ExitStatuses()) {
      if (exit.program == program) statuses.insert(exit.status);
    }
    return statuses;
  };
  using coordinator::CoordinatorExit;
  EXPECT_EQ(explained(reasons::Program::kCommand),
            (std::set{kExitOk, kExitFailed, kExitUsage, kExitLosses, kExitSignal + SIGHUP,
                      kExitSignal + SIGINT, kExitSignal + SIGTERM}));
  EXPECT_EQ(explained(reasons::Program::kAgent),
            (std::set{agent::kAgentFinished, agent::kAgentGaveUp, agent::kAgentCannotStart,
                      agent::kAgentDrained, agent::kAgentNoRoom}));
  std::set<int> coordinators;
  for (int status = 0; status <= static_cast<int>(CoordinatorExit::kNotPublished); ++status) {
    coordinators.insert(status);
  }
  EXPECT_EQ(explained(reasons::Program::kCoordinator), coordinators);
}

TEST(Explain, AField) {
  EXPECT_THAT(Told("errorThreshold"), StartsWith("spec.errorThreshold: "));
  EXPECT_THAT(Told("spec"), StartsWith("spec: object"));
  EXPECT_THAT(Told(""), StartsWith("spec: object"));
}

TEST(Explain, WhatIsNotThereNamesWhatMayBeMeant) {
  EXPECT_EQ(Told("NodeBakOff"), "there is no reason \"NodeBakOff\": did you mean NodeBackOff?");
  EXPECT_THAT(Told("NodeCount"), HasSubstr("did you mean spec.nodeCount?"));
  EXPECT_EQ(
      Told("Evicted"),
      "there is no field \"Evicted\": `parallelrun explain spec` lists them; docs/messages.md "
      "lists the reasons");
  EXPECT_EQ(Told("spec.nodeCout"),
            "there is no field \"spec.nodeCout\": did you mean spec.nodeCount?");
  EXPECT_EQ(Told("NodeBak\x1b[1m").find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::cli
