// Which stores keep this job waiting: those that throttle the coordinator itself, as it lists,
// cuts, signs and publishes, and those of which its nodes say so. Of the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/answer_tally.h"
#include "store/throttling.h"
#include "store/wished.h"

namespace parallelrun::coordinator {

class StoreWaits {
 public:
  // Those of them whose answers are counted (store::Wished::tally), by name.
  explicit StoreWaits(const std::map<std::string, store::Wished>& stores);

  // Each second or so.
  void Observe(WallTime now);
  // Of the coordinator alone; "": none.
  const std::string& own() const { return own_; }
  // With what nodes say ("node 0: throttled by …"), for people; "": none.
  std::string With(const std::string& nodes) const;

 private:
  std::vector<std::pair<std::string, std::shared_ptr<const store::AnswerTally>>> tallies_;  // URL
  store::Throttling throttling_;
  std::string own_;
};

}  // namespace parallelrun::coordinator
