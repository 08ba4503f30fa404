#include "plan/grouping.h"

#define XXH_STATIC_LINKING_ONLY  // the streaming state, on the stack
#include <xxhash.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "plan/listing.h"
#include "plan/partition_format.h"
#include "plan/source.h"

namespace parallelrun::plan {

Result<Grouping> Grouping::Make(const PlanInput& input, store::Store& store) {
  const auto contexts = PathContext::Make(input.partition_format, input.partition_keys);
  if (!contexts.ok()) return contexts.error().With(PlaceOf(input));
  Grouping grouping;
  Listing listing(input, store);
  std::unordered_map<std::string, size_t> known;
  XXH3_state_t digest;
  XXH3_INITSTATE(&digest);
  XXH3_64bits_reset(&digest);
  while (true) {
    const auto next = listing.Next();
    if (!next.ok()) return next.error();
    if (!*next) break;
    const std::string_view name = (*next)->name;
    auto context = contexts->Of(name);
    if (!context.ok()) return context.error().With(PlaceOf(input));
    const auto [found, is_new] = known.try_emplace(*context, grouping.groups_.size());
    if (is_new) grouping.groups_.push_back({std::move(*context), {}});
    grouping.groups_[found->second].files.push_back(
        {grouping.names_.size(), static_cast<uint32_t>(name.size())});
    grouping.names_ += name;
    XXH3_64bits_update(&digest, name.data(), name.size());
    XXH3_64bits_update(&digest, "", 1);  // the NUL between names
  }
  grouping.digest_ = std::max<uint64_t>(XXH3_64bits_digest(&digest), 1);
  grouping.left_out_ = listing.left_out();
  return grouping;
}

std::string_view Grouping::name(size_t group, size_t file) const {
  const Name& name = groups_[group].files[file];
  return std::string_view(names_).substr(name.offset, name.length);
}

}  // namespace parallelrun::plan
