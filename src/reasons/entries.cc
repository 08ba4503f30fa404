#include "reasons/entries.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "reasons/sections.h"

namespace parallelrun::reasons {
namespace {

constexpr ExitStatus kExitStatuses[] = {
    {Program::kCommand, 0,
     "The job succeeded with every item, or lost no more than the thresholds that it writes allow. "
     "Of "
     "other commands: all is well.",
     "Nothing."},
    {Program::kCommand, 1, "The job failed, or this machine did not let it go on.",
     "The last lines of the command say why. Fix it, and run again with `--resume`."},
    {Program::kCommand, 2,
     "It cannot start: a wrong flag, a wrong job file, something missing, or an output that is "
     "there "
     "already. Nothing was run.",
     "One message says what, where and what to do."},
    {Program::kCommand, 3,
     "The job finished with losses: items failed, and no threshold of the job speaks of them.",
     "`parallelrun failures OUT` names them. Fix the cause and run again with `--retry-failed`. "
     "With "
     "`--allow-failures` it is 0."},
    {Program::kCommand, 129, "The run was stopped by SIGHUP: its terminal was closed.",
     "`--resume` continues it. `--detach` runs without a terminal."},
    {Program::kCommand, 130, "The run was stopped by SIGINT: Ctrl-C.", "`--resume` continues it."},
    {Program::kCommand, 143, "The run was stopped by SIGTERM.", "`--resume` continues it."},
    {Program::kCoordinator, 0, "The job succeeded.", "Nothing."},
    {Program::kCoordinator, 1, "The job failed.", "Its last words give the reason of the job."},
    {Program::kCoordinator, 2,
     "It cannot start, or cannot go on without something that was removed.",
     "Its last words say what to do."},
    {Program::kCoordinator, 3, "It was told to go, and went in order.",
     "Nothing: its successor goes on."},
    {Program::kCoordinator, 4, "A newer coordinator of the same job has taken over.",
     "Nothing where its pod was replaced. Else two runs share one state folder: stop one of them."},
    {Program::kCoordinator, 5, "The disk of the state folder failed it.",
     "Look at the volume. Its successor goes on from the ledger."},
    {Program::kCoordinator, 6,
     "Every mini-batch is done, and something that is not of this job is in the place of the "
     "output. "
     "Every result is kept.",
     "Move it away, and run again with `--resume`, on a cluster with `output.ifExists: Resume`."},
    {Program::kAgent, 0, "The job was over for this node.", "Nothing."},
    {Program::kAgent, 1,
     "The node gave up: `init()` failed in its processes, another agent has taken its place, or "
     "its "
     "coordinator did not answer for long.",
     "See `AgentGaveUp`."},
    {Program::kAgent, 2, "It cannot start.", "See `AgentCannotStart`."},
    {Program::kAgent, 3, "It was told to go, and went in order.", "Nothing."},
    {Program::kAgent, 4, "There is no room to start in. Later there may be.", "See `AgentNoRoom`."},
};

bool SameWord(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::span<const Section> Sections() {
  static const std::array kSections = {
      Section{"How a job ends",
              "The word in parentheses in the first line of a run's summary and of its report, and "
              "the reason of the conditions `Complete`, `FailureTarget`, `Failed` and `Finished` "
              "on a cluster. A job that fails there has an event `Failed` that begins with it.",
              EndsOfAJob()},
      Section{"Why an attempt failed",
              "The kind of an error: in the summary and the report, in `failures.jsonl`, in "
              "`parallelrun failures`, and in `status.failure.errors`. Where `run()` or `init()` "
              "raised, the type of the exception may stand in its place.",
              FailedAttempts()},
      Section{
          "What the nodes wait for",
          "The reason of the conditions `NodesReady` and `Stalled`, and of an event. The condition "
          "names the worst one, and its message says how many more there are.",
          WhatNodesWaitFor()},
      Section{"How a node ended",
              "In the message of an event `NodeFailed` or `NodeDisrupted`, in `NodeBackOff`, in "
              "`status.failure.errors`, and in the metrics. A word that is not here, such as "
              "`Evicted`, is Kubernetes' own.",
              EndsOfANode()},
      Section{"Other conditions", "What the other conditions of a job give as their reason.",
              OtherConditions()},
      Section{"Other events", "What `kubectl describe` shows of a job beside the events above.",
              OtherEvents()}};
  return kSections;
}

const Entry* Find(std::string_view word) {
  for (const Section& section : Sections()) {
    for (const Entry& entry : section.entries) {
      if (SameWord(entry.reason.word(), word)) return &entry;
    }
  }
  return nullptr;
}

std::string Meaning(std::string_view word) {
  const Entry* const entry = Find(word);
  std::string text(entry == nullptr ? "" : entry->happened);
  std::erase(text, '`');
  return text;
}

std::string PlacesText(uint8_t places) {
  std::string text;
  const auto add = [&](Place place, const char* word) {
    if ((places & place) != 0) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(kVerdict, "end of a job");
  add(kCondition, "condition");
  add(kEvent, "event");
  add(kFailure, "kind of an error");
  add(kNodeEnd, "end of a node");
  return text;
}

std::span<const ExitStatus> ExitStatuses() { return kExitStatuses; }

std::string_view ProgramName(Program program) {
  switch (program) {
    case Program::kCommand: return "parallelrun";
    case Program::kCoordinator: return "parallelrun-coordinator";
    case Program::kAgent: return "parallelrun-agent";
  }
  return "";
}

}  // namespace parallelrun::reasons
