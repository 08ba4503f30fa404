#include "coordinator/named_items.h"

#include <utility>

#include "base/escape.h"
#include "coordinator/item_names.h"
#include "coordinator/lost_items.h"
#include "coordinator/progress.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostLostNames = 5;
constexpr size_t kItemBytes = 300;

}  // namespace

NamedItems::~NamedItems() {
  if (thread_.joinable()) thread_.join();
}

bool NamedItems::Finish(Duration limit) { return !thread_.joinable() || thread_.JoinFor(limit); }

void NamedItems::Name(std::optional<job::BatchId> slowest) {
  const auto name = [this](job::BatchId id) {
    if (!items_.contains(id) && plan_.AtHand(state_, id)) {
      items_[id] = ItemsOfMiniBatch(state_, plan_, id);
    }
  };
  if (slowest_ && slowest_ != slowest) items_.erase(*slowest_);
  slowest_ = slowest;
  if (slowest) name(*slowest);
  for (const job::DistinctError& error : state_.errors().Top(kErrorsTold)) name(error.batch);
}

void NamedItems::NameLast(const job::FailureRules& rules, std::function<void()> done) {
  thread_ = Thread("names", [this, &rules, done = std::move(done)] {
    plan::PlanStore plan(ledger_);  // the other one is the loop's
    std::map<job::BatchId, std::string> items;
    for (const job::DistinctError& error : state_.errors().Top(kErrorsTold)) {
      items[error.batch] = ItemsOfMiniBatch(state_, plan, error.batch);
    }
    std::vector<std::string> lost = FirstLostItems(state_, rules, plan, kMostLostNames);
    loop_.Post([this, done, items = std::move(items), lost = std::move(lost)]() mutable {
      items_ = std::move(items);
      first_lost_ = std::move(lost);
      done();
    });
  });
}

std::string NamedItems::Shown(job::BatchId id) const {
  const auto named = items_.find(id);
  return named == items_.end() ? "" : Printable(named->second, kItemBytes);
}

}  // namespace parallelrun::coordinator
