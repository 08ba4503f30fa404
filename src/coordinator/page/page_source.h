// What the live page of a running job shows. Of the loop's thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/time.h"
#include "coordinator/coordinator.h"
#include "coordinator/named_items.h"
#include "coordinator/page/live_figures.h"
#include "coordinator/page/waits.h"

namespace parallelrun::coordinator {

class PageSource {
 public:
  struct Of {
    const job::JobState& state;
    Coordinator& coordinator;
    const NamedItems& names;
    const Waits* waits;                        // none, if this epoch has not seen all of them
    std::function<std::string()> store_waits;  // which stores keep the job waiting, and how
    std::string log_folder;
    const Clock& clock;
  };
  // All outlive it; it hears each record from here on.
  explicit PageSource(Of of);
  PageSource(const PageSource&) = delete;

  nlohmann::json Now();  // docs/page.md

 private:
  const Of of_;
  LiveFigures figures_;
};

}  // namespace parallelrun::coordinator
