// What the reasons and exit statuses mean: what happened, and what to do. `parallelrun explain`
// says it of one, docs/messages.md of all; text is Markdown in which only `code` occurs. Pure; any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reasons/reason.h"

namespace parallelrun::reasons {

// Where people see a reason.
enum Place : uint8_t {
  kCondition = 1,  // of the status of a ParallelRunJob
  kEvent = 2,      // of Kubernetes
  kVerdict = 4,    // of a job: of its summary, its report and its status
  kFailure = 8,    // the kind of a failed attempt, in failures.jsonl, the errors and the logs
  kNodeEnd = 16,   // why a pod of a node ended, in the message of an event and in the metrics
};

struct Entry {
  Reason reason;
  uint8_t places;  // of Place
  std::string_view happened;
  std::string_view to_do;
};

// Reasons that are looked for together.
struct Section {
  std::string_view title;
  std::string_view about;
  std::span<const Entry> entries;
};

// In the order of docs/messages.md.
std::span<const Section> Sections();
// nullptr: there is no such reason. Upper and lower case are the same.
const Entry* Find(std::string_view word);
// What has happened, without Markdown; "" where there is no such reason.
std::string Meaning(std::string_view word);
// "condition, event".
std::string PlacesText(uint8_t places);

enum class Program { kCommand, kCoordinator, kAgent };

struct ExitStatus {
  Program program;
  int status;
  std::string_view happened;
  std::string_view to_do;
};

std::span<const ExitStatus> ExitStatuses();
// "parallelrun", "parallelrun-coordinator".
std::string_view ProgramName(Program program);

}  // namespace parallelrun::reasons
