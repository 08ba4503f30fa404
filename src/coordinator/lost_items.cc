#include "coordinator/lost_items.h"

#include <spdlog/fmt/fmt.h>

#include "base/count_of.h"
#include "base/escape.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kNameBytes = 300;

class Names {
 public:
  Names(const job::JobState& state, const job::FailureRules& rules, plan::PlanStore& plan,
        size_t most)
      : state_(state), rules_(rules), plan_(plan), most_(most) {}

  std::vector<std::string> Collect() && {
    for (job::BatchId id = 0; id < state_.batches().size() && names_.size() < most_; ++id)
      Visit(id);
    return std::move(names_);
  }

 private:
  // The depth is that of the tree of halves, below 32.
  void Visit(job::BatchId id) {
    if (!state_.pieces().empty() && job::HasPieces(id) && state_.known(job::FirstPiece(id))) {
      Visit(job::FirstPiece(id));
      return Visit(job::SecondPiece(id));
    }
    const job::MiniBatch batch = state_.batch(id);
    if (batch.state == job::MiniBatch::State::kFailed) {
      for (const plan::PlannedItem& item : Items(id)) Add(NameOf(item, id));
    } else if (batch.state == job::MiniBatch::State::kSucceeded) {
      const uint32_t failed = rules_.FailedOf(batch.items_missing, batch.items_skipped);
      if (failed > 0) AddShort(id, failed);
    }
  }

  void AddShort(job::BatchId id, uint32_t failed) {
    const std::vector<plan::PlannedItem> items = Items(id);
    if (items.empty()) return;
    Add(fmt::format("{} of the {} of mini-batch {}, the first of which is {}", failed,
                    CountOf(state_.batch(id).items, "item"), job::MiniBatchText(id),
                    NameOf(items.front(), id)));
  }

  static std::string NameOf(const plan::PlannedItem& item, job::BatchId id) {
    if (item.path.empty()) return fmt::format("rank {}", job::WholeOf(id));
    const std::string path = Printable(item.path, kNameBytes);
    if (!item.in_file) return path;
    return fmt::format("{}: {}, from item {} of the input on", path, CountOf(item.rows, "row"),
                       item.first_item);
  }

  std::vector<plan::PlannedItem> Items(job::BatchId id) {
    if (names_.size() >= most_) return {};
    Result<std::vector<plan::PlannedItem>> items = plan_.Items(state_, id);
    return items.ok() ? std::move(*items) : std::vector<plan::PlannedItem>();
  }

  void Add(std::string name) {
    if (names_.size() < most_) names_.push_back(std::move(name));
  }

  const job::JobState& state_;
  const job::FailureRules& rules_;
  plan::PlanStore& plan_;
  const size_t most_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<std::string> FirstLostItems(const job::JobState& state, const job::FailureRules& rules,
                                        plan::PlanStore& plan, size_t most) {
  return Names(state, rules, plan, most).Collect();
}

}  // namespace parallelrun::coordinator
