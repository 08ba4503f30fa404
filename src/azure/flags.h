// The program arguments that Azure ML's driver reads itself ("--error_threshold 5"), and which of
// them the arguments of a job name, read as Python's argparse does. Pure; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/node.h"

namespace parallelrun::azure {

// Why a value does not fit, with its mend.
struct Misfit {
  std::string what;
  std::string mend;
};

enum class Role {
  kSets,      // a field of the job, or what workers do
  kIgnored,   // accepted, without a meaning here
  kReserved,  // Azure ML's own: a job file says it with a field
  kSystem,    // on the command line of Azure ML's driver: only makes abbreviations ambiguous
};

struct Flag {
  std::string name;
  Role role = Role::kSystem;
  std::string field = {};  // kSets: the field of the spec, or empty; kReserved: what to write
  // kSets: the value as the field has it.
  std::function<std::variant<api::Node, Misfit>(const std::string& value)> read = nullptr;
};

const std::vector<Flag>& Flags();

// One argument that starts with two dashes and is a flag of the table.
struct Found {
  const Flag* flag = nullptr;  // nullptr: one of Azure ML's internal ones that nobody knows
  bool abbreviated = false;
  size_t index = 0;                  // in the arguments
  std::string written;               // "--error_thr"
  std::optional<std::string> value;  // none: nothing follows that could be one
  size_t value_index = 0;            // in the arguments; its own where there is no value
};

// All of them, in order: "--flag value" and "--flag=value", unambiguous abbreviations, nothing
// after "--".
std::vector<Found> FindFlags(const std::vector<std::string>& arguments);

// The value of a flag that sets something.
std::variant<api::Node, Misfit> ReadValue(const Found& found);

}  // namespace parallelrun::azure
