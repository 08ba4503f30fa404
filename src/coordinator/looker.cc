#include "coordinator/looker.h"

#include <utility>

namespace parallelrun::coordinator {

Looker::Looker(const Clock& clock, std::function<Status()> look,
               std::function<void(Instant begun, const Status&)> looked)
    : clock_(clock), look_(std::move(look)), looked_(std::move(looked)) {}

void Looker::Ask() {
  // Where one waits already, that one begins later.
  thread_.Ask([this] {
    const Instant begun = clock_.Now();
    looked_(begun, look_());
  });
}

}  // namespace parallelrun::coordinator
