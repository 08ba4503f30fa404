// What has become of the files that were planned, before a person continues a run: a mini-batch id
// must mean the same items in every epoch (docs/ledger.md, "Continuing a run"). Blocking I/O: lists
// the inputs, and asks for the version of each planned file. Memory: 12 bytes a
// planned file, beside what a listing needs. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/plan_chunk.h"
#include "plan/planner.h"

namespace parallelrun::plan {

struct InputChanges {
  static constexpr size_t kMostNamed = 10;

  struct Files {
    uint64_t count = 0;
    std::vector<std::string> named;  // a line each, for people: the first kMostNamed of them
  };
  Files differ;  // were planned, and are gone or changed
  // Are there, and would have been planned, had they been when their place was listed.
  Files added;
};

// Calls its argument with each planned chunk, in order. May be called twice.
using ReadPlan = std::function<Status(const std::function<void(const job::PlanChunkRecord&)>&)>;

// `inputs` are those of the plan; `plan_ended` says that all of them were listed to the end. Errors
// are those of `read` and of Planner::Next. `step` is called for each file that was looked at.
Result<InputChanges> FindInputChanges(const ReadPlan& read, bool plan_ended,
                                      const std::vector<PlanInput>& inputs, const OpenStore& open,
                                      const std::function<void()>& step);

}  // namespace parallelrun::plan
