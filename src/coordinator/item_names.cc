#include "coordinator/item_names.h"

#include <spdlog/fmt/fmt.h>

#include <vector>

namespace parallelrun::coordinator {

std::string ItemsOfMiniBatch(const job::JobState& state, plan::PlanStore& plan, job::BatchId id) {
  const Result<std::vector<plan::PlannedItem>> items = plan.Items(state, id);
  if (!items.ok() || items->empty() || items->front().path.empty()) return "";
  const plan::PlannedItem& first = items->front();
  const char* const of = first.in_file ? "rows of " : "";
  if (items->size() == 1) return of + first.path;
  return fmt::format("{}{} and {} more", of, first.path, items->size() - 1);
}

}  // namespace parallelrun::coordinator
