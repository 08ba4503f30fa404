// `parallelrun submit`: renders a job file and hands it to kubectl, found on the path.
#pragma once

#include <string>

#include "cli/render/render.h"

namespace parallelrun {

struct SubmitRequest {
  RenderRequest render;
  std::string name_space;  // of kubectl; empty: its own
  std::string context;
  bool force_conflicts = false;  // takes over fields that something else has set
};

// Returns kubectl's exit status, or 2 when it was not come to. Blocks until kubectl has ended.
int Submit(const SubmitRequest& request);

}  // namespace parallelrun
