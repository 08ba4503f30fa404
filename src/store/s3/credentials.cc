#include "store/s3/credentials.h"

#include <spdlog/spdlog.h>

#include "store/objects/validity.h"

namespace parallelrun::store::s3 {
namespace {

constexpr Duration kRetry = seconds(10);  // after a renewal that failed
// Whoever changes files changes them in place, without a word of when.
constexpr Duration kLifeOfFiles = seconds(60);

}  // namespace

Result<Keys> Credentials::Get() {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_->Now();
  if (held_ && (!renew_ || now < *renew_)) return *held_;
  Result<SessionKeys> fetched = FetchKeys(source_, options_);
  if (!fetched.ok()) {
    if (!held_ || now >= end_) return fetched.error();
    spdlog::warn("{}; those of before still serve", fetched.error().message);
    renew_ = now + kRetry;
    return *held_;
  }
  std::optional<Duration> life;
  if (fetched->ends) life = *fetched->ends - clock_->WallNow();
  if (std::holds_alternative<KeyFiles>(source_.from)) life = kLifeOfFiles;
  const std::optional<Validity> validity = ValidityOf(life);
  held_ = std::move(fetched->keys);
  renew_.reset();
  if (validity) {
    renew_ = now + validity->renew;
    end_ = now + validity->end;
  }
  return *held_;
}

void Credentials::Ended(const Keys& keys) {
  const std::lock_guard lock(mutex_);
  if (held_ && held_->id == keys.id && held_->token == keys.token) held_.reset();
}

std::optional<Duration> Credentials::Left() {
  const std::lock_guard lock(mutex_);
  if (!held_ || !renew_ || std::holds_alternative<KeyFiles>(source_.from)) return std::nullopt;
  return end_ - clock_->Now();
}

}  // namespace parallelrun::store::s3
