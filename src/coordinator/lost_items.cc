#include "coordinator/lost_items.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr size_t kNameBytes = 300;

class Names {
 public:
  Names(const JobState& state, const FailureRules& rules, PlanStore& plan, size_t most)
      : state_(state), rules_(rules), plan_(plan), most_(most) {}

  std::vector<std::string> Collect() && {
    for (BatchId id = 0; id < state_.batches().size() && names_.size() < most_; ++id) Visit(id);
    return std::move(names_);
  }

 private:
  // The depth is that of the tree of halves, below 32.
  void Visit(BatchId id) {
    if (!state_.pieces().empty() && HasPieces(id) && state_.known(FirstPiece(id))) {
      Visit(FirstPiece(id));
      return Visit(SecondPiece(id));
    }
    const MiniBatch batch = state_.batch(id);
    if (batch.state == MiniBatch::State::kFailed) {
      for (const PlannedItem& item : Items(id)) Add(NameOf(item, id));
    } else if (batch.state == MiniBatch::State::kSucceeded) {
      const uint32_t failed = rules_.FailedOf(batch.items_missing, batch.items_skipped);
      if (failed > 0) AddShort(id, failed);
    }
  }

  void AddShort(BatchId id, uint32_t failed) {
    const std::vector<PlannedItem> items = Items(id);
    if (items.empty()) return;
    Add(fmt::format("{} of the {} items of mini-batch {}, the first of which is {}", failed,
                    state_.batch(id).items, MiniBatchText(id), NameOf(items.front(), id)));
  }

  static std::string NameOf(const PlannedItem& item, BatchId id) {
    if (item.path.empty()) return fmt::format("rank {}", WholeOf(id));
    const std::string path = Printable(item.path, kNameBytes);
    if (!item.in_file) return path;
    return fmt::format("{}: {} rows, from item {} of the input on", path, item.rows,
                       item.first_item);
  }

  std::vector<PlannedItem> Items(BatchId id) {
    if (names_.size() >= most_) return {};
    Result<std::vector<PlannedItem>> items = plan_.Items(state_, id);
    return items.ok() ? std::move(*items) : std::vector<PlannedItem>();
  }

  void Add(std::string name) {
    if (names_.size() < most_) names_.push_back(std::move(name));
  }

  const JobState& state_;
  const FailureRules& rules_;
  PlanStore& plan_;
  const size_t most_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> FirstLostItems(const JobState& state, const FailureRules& rules,
                                        PlanStore& plan, size_t most) {
  return Names(state, rules, plan, most).Collect();
}

}  // namespace parallelrun
