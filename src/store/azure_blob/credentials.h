// The credentials of one store: what a request is proven by, fetched when it is needed first, and
// renewed before it ends. Thread-safe; who asks while it is fetched waits for it. No text of it
// holds a secret.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "store/azure_blob/credential_source.h"
#include "store/azure_blob/sign.h"

namespace parallelrun::store::azure_blob {

class Credentials {
 public:
  Credentials(Source source, std::stop_token stop, std::shared_ptr<const Clock> clock)
      : source_(std::move(source)), stop_(std::move(stop)), clock_(std::move(clock)) {}

  // kPermission where Entra ID says no; kUnavailable when a later try may succeed. While an older
  // one serves, a failed renewal is only logged.
  Result<Proof> Get();
  // A server said that this one has ended: another is fetched next time. False: there is no other.
  bool Ended(const Proof& proof);
  const Source& source() const { return source_; }

 private:
  const Source source_;
  const std::stop_token stop_;
  const std::shared_ptr<const Clock> clock_;
  std::mutex mutex_;  // guards what follows
  std::optional<Bearer> held_;
  Instant renew_;
  Instant end_;
};

}  // namespace parallelrun::store::azure_blob
