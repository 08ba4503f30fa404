// What the page of a job shows, as one JSON document (docs/report.md, "Format"). Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/page/advice.h"
#include "coordinator/page/batch_map.h"
#include "coordinator/page/figures.h"
#include "job/job_state.h"
#include "job/losses.h"

namespace parallelrun::coordinator {

// One group of failed attempts.
struct ErrorShown {
  job::DistinctError error;
  std::string item;       // what its mini-batch is made of
  std::string traceback;  // "": not known
};

struct SlowAttempt {
  Figures::Attempt attempt;
  std::string item;
};

// Beyond that, of a job that is under way.
struct LiveFacts {
  std::string state;        // as the progress says it
  std::string cause;        // what it waits for; "": nothing
  std::string store_waits;  // which stores keep it waiting, and how; "": none
  std::string init;         // for how long init() has been running, and where; "": that is no news
  uint64_t running = 0;
  std::optional<Duration> remaining;
  struct Slowest {  // mini-batch that is in run()
    job::BatchId id = 0;
    uint32_t node = 0;
    Duration age{};
    std::string item;
  };
  std::optional<Slowest> slowest;
};

struct PageFacts {
  const job::JobState& state;
  const job::FailureRules& rules;
  const Figures& figures;
  const BatchMap& map;
  std::vector<ErrorShown> errors;
  std::vector<SlowAttempt> slowest;
  std::optional<Waits::Times> waits;
  WallTime made_at;
  std::string log_folder;
  std::optional<LiveFacts> live;
};

nlohmann::json PageData(const PageFacts& facts);

// Each value of a job's canonical JSON with its path, and whether it is the default; values of
// variables are left out. At most `most`.
struct SettingShown {
  std::string path;  // "spec.inputs[0].tabular.format"
  std::string value;
  bool is_default = false;
};
std::vector<SettingShown> SettingsShown(const std::string& job, size_t most);

}  // namespace parallelrun::coordinator
