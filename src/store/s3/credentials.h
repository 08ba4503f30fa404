// The credentials of one store: fetched when they are needed first, and renewed before they end, as
// ValidityOf says. Thread-safe; who asks while they are fetched waits for them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/credential_fetch.h"
#include "store/s3/credential_source.h"

namespace parallelrun::store::s3 {

class Credentials {
 public:
  Credentials(Source source, FetchOptions options, std::shared_ptr<const Clock> clock)
      : source_(std::move(source)), options_(std::move(options)), clock_(std::move(clock)) {}

  // Errors: those of FetchKeys. While older ones serve, a failed renewal is only logged.
  Result<Keys> Get();
  // A server said that these have ended: others are fetched next time.
  void Ended(const Keys& keys);
  // How long those that Get gave last are good for; nothing: they do not end, or nobody knows.
  std::optional<Duration> Left();
  // For messages.
  const std::string& told() const { return source_.told; }

 private:
  const Source source_;
  const FetchOptions options_;
  const std::shared_ptr<const Clock> clock_;
  std::mutex mutex_;  // guards what follows
  std::optional<Keys> held_;
  std::optional<Instant> renew_;  // nothing: they do not end
  Instant end_;
};

}  // namespace parallelrun::store::s3
