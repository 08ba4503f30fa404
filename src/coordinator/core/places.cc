#include "coordinator/core/places.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "base/escape.h"
#include "job/node_messages.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostProcessesKept = 1'000;
constexpr size_t kMostPlaceBytes = 500;

// Its end: there the innermost calls are.
std::string Shortened(std::string_view where) {
  if (where.size() <= kMostPlaceBytes) return Printable(where, 2 * kMostPlaceBytes);
  where.remove_prefix(where.size() - kMostPlaceBytes);
  where.remove_prefix(std::min(where.find(", "), where.size()));
  return "..." + Printable(where, 2 * kMostPlaceBytes);
}

}  // namespace

void Places::Add(uint32_t node, uint32_t process, std::string_view where) {
  if (where_.size() >= kMostProcessesKept) return;
  where_.insert_or_assign({node, process}, Shortened(where));
}

bool Places::NodesWait() const {
  return std::any_of(where_.begin(), where_.end(), [](const auto& one) {
    return one.first.second == job::ProcessEvent::kWholeNode;
  });
}

std::string Places::Text(size_t most) const {
  struct Spot {
    std::string where;
    std::string first;
    size_t processes = 0;
    bool whole_node = false;
  };
  std::map<std::string_view, Spot> by_where;
  for (const auto& [process, where] : where_) {
    Spot& place = by_where[where];
    if (place.processes++ > 0) continue;
    place.where = where;
    place.whole_node = process.second == job::ProcessEvent::kWholeNode;
    place.first = place.whole_node
                      ? fmt::format("node {}", process.first)
                      : fmt::format("node {}, process{:03}", process.first, process.second);
  }
  std::vector<Spot> places;
  for (auto& [where, place] : by_where) places.push_back(std::move(place));
  // What nodes wait for is why their processes have nothing to do.
  std::stable_sort(places.begin(), places.end(), [](const Spot& a, const Spot& b) {
    return std::pair(a.whole_node, a.processes) > std::pair(b.whole_node, b.processes);
  });
  std::string text;
  size_t others = where_.size();
  for (size_t i = 0; i < std::min(most, places.size()); ++i) {
    const Spot& place = places[i];
    others -= place.processes;
    const std::string more =
        place.processes == 1 ? "" : fmt::format(" and {} more", place.processes - 1);
    text += fmt::format("{}{}{}: {}", text.empty() ? "" : "; ", place.first, more, place.where);
  }
  if (others > 0) text += fmt::format("; {} more elsewhere", others);
  return text;
}

}  // namespace parallelrun::coordinator
