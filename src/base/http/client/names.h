// Internal to http/client: the addresses of a server's name.
//
// The system's look-up blocks, for half a minute where a name server is silent, and nothing ends it
// early. So it runs on a thread of its own, which a caller whose time is over leaves behind. At
// most one runs for each client: whoever comes meanwhile waits for the same.
#pragma once

#include <sys/socket.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/http/client/wire.h"

namespace parallelrun {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;

  std::string Text() const;  // "127.0.0.1:80", "[::1]:80"
};
using Addresses = std::vector<Address>;

// What the system answers, in the order to try them; at least one, at most 16. Blocks.
// Errors: kUnavailable (no such name, no answer).
Result<Addresses> LookUp(const std::string& host, uint16_t port);

// Thread-safe.
class Names {
 public:
  using Look = std::function<Result<Addresses>(const std::string& host, uint16_t port)>;
  Names(std::string host, uint16_t port, Look look = &LookUp);

  // Errors: those of the look-up, kTimeout, kUnavailable (cancelled). What was found is asked for
  // anew by the next call: a name may lead elsewhere by then.
  Result<Addresses> Find(SteadyTime limit);
  // Makes Find, now and later, return at once.
  void Cancel();

 private:
  // Outlives this where its look-up does.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    bool cancelled = false;
    // That on its way; the callers that wait for one hold it until it is done.
    std::shared_ptr<std::optional<Result<Addresses>>> current;
  };

  const std::string host_;
  const uint16_t port_;
  const Look look_;
  std::optional<Addresses> fixed_;  // the host is an address itself
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace parallelrun
