// What a job's spec and its times say to the decisions of a coordinator. Plain data. What the spec
// says as it stands is read from it where it acts, and copied nowhere on the way.
#pragma once

#include <cstdint>

#include "api/defaults.h"
#include "api/job.h"
#include "base/time.h"
#include "job/losses.h"

namespace parallelrun::coordinator {

struct CoordinatorLimits {
  api::JobSpec spec = api::DefaultSpec();  // with its defaults filled in
  Duration lease = seconds(10);
  Duration look = seconds(1);          // for a newer epoch, at least so often: a tenth of a lease
  Duration broken_grace = seconds(2);  // for a node whose connection broke
  uint32_t max_losses = 10;            // then a mini-batch fails as LostTooOften
  job::FailureRules rules = {};
  // At the tail, idle processes try what takes long a second time. Without it no two nodes may be
  // in run() of one mini-batch at once.
  bool speculation = false;
  Duration slow_least = seconds(10);  // what takes less is never called slow
  uint32_t first_epoch = 1;           // of this run: process names are counted from it
  uint32_t nodes = 1;                 // expected
  uint32_t processes = 1;             // of each
  uint64_t settings_digest = 0;
  Duration wall_offset{0};  // wall time less monotonic time: to tell when, never to decide
};

}  // namespace parallelrun::coordinator
