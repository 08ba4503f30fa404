#include "base/pause.h"

#include <condition_variable>
#include <mutex>

namespace parallelrun {

bool Pause(Duration time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any nobody_calls;
  std::unique_lock lock(mutex);
  nobody_calls.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace parallelrun
