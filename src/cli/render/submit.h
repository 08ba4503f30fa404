// `parallelrun submit`: renders a job file and hands it to kubectl, found on the path.
#pragma once

#include <string>

#include "cli/render/render.h"

namespace parallelrun::cli {

struct SubmitRequest {
  RenderRequest render;
  std::string name_space;  // of kubectl; empty: its own
  std::string context;
  bool force_conflicts = false;  // takes over fields that something else has set
  bool replace = false;          // an ended job of its name is deleted first
  bool events = false;           // tells programs what becomes of it, to its end
};

// Returns kubectl's exit status, or 2 when it was not come to; with `events` that of the job.
// Blocks until kubectl, or the job, has ended.
int Submit(const SubmitRequest& request);

}  // namespace parallelrun::cli
