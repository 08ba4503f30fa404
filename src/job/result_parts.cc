#include "job/result_parts.h"

namespace parallelrun::job {

void ResultParts::Add(const RowsRecord& part, const Place& rows, bool lists_side_files) {
  Parts& parts = parts_[part.id];
  if (parts.fence != part.fence) parts = {part.fence, 0, {}};
  // What is too long is told once the result is there.
  if (lists_side_files) (void)parts.side_files.RowsIn(part.rows, parts.places.empty());
  parts.bytes += rows.length;
  parts.places.push_back(rows);
}

std::string ResultParts::TakeSideFiles(const ResultRecord& result) {
  SideLine whole;
  const auto parts = parts_.find(result.id);
  const bool in_parts = parts != parts_.end() && parts->second.fence == result.fence;
  SideLine& line = in_parts ? parts->second.side_files : whole;
  (void)line.RowsIn(result.rows, !in_parts);
  std::string text(line.line().value_or(""));
  line = {};
  return text;
}

uint32_t ResultParts::Complete(const ResultRecord& result) {
  const auto parts = parts_.find(result.id);
  if (parts != parts_.end() && parts->second.fence != result.fence) parts_.erase(parts);
  const auto found = skipped_.find(result.id);
  if (found == skipped_.end()) return 0;
  const Skipped skipped = found->second;
  skipped_.erase(found);
  return skipped.fence == result.fence ? skipped.items : 0;
}

void ResultParts::Forget(BatchId id) {
  parts_.erase(id);
  skipped_.erase(id);
}

uint64_t ResultParts::Bytes(BatchId id, const Fence& fence) const {
  const auto found = parts_.find(id);
  return found != parts_.end() && found->second.fence == fence ? found->second.bytes : 0;
}

const std::vector<Place>& ResultParts::Places(BatchId id) const {
  static const std::vector<Place> kNone;
  const auto found = parts_.find(id);
  return found == parts_.end() ? kNone : found->second.places;
}

}  // namespace parallelrun::job
