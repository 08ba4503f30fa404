#include "plan/columns/seen_rows.h"

#include <numeric>

namespace parallelrun::plan {

void SeenRows::Append(const SeenRows& later, const std::vector<size_t>& order) {
  for (size_t i = 0; i < order.size(); ++i) columns[order[i]].Append(later.columns[i]);
  counts.rows += later.counts.rows;
  counts.wide += later.counts.wide;
  counts.few += later.counts.few;
  if (!bad_row) bad_row = later.bad_row;
  all = all && later.all;
}

void SeenRows::Append(const SeenRows& later) {
  std::vector<size_t> order(columns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  Append(later, order);
}

}  // namespace parallelrun::plan
