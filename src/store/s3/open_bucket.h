// From a URL, and what this process is set up with, to a bucket that can be asked.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/answer_tally.h"
#include "store/s3/address.h"
#include "store/s3/bucket.h"
#include "store/s3/credential_source.h"
#include "store/s3/surroundings.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

struct StoreOptions {
  std::string url;     // s3://bucket/prefix
  std::string region;  // these three: empty, as Surroundings has it
  std::string endpoint;
  std::optional<Style> style;
  KeyFiles keys;  // without a folder: credentials as Surroundings has them
  RetryLimits limits;
  Duration first_byte = seconds(30);             // of an answer
  std::stop_token stop;                          // ends all waits
  std::shared_ptr<AnswerTally> tally = nullptr;  // none: one of its own
};

// Asks nobody yet. kInvalid, kPermission: what the user has to mend, in words.
Result<std::unique_ptr<Bucket>> MakeBucket(const StoreOptions& options, const Surroundings& around,
                                           std::shared_ptr<const Clock> clock);

// The same with what this process is set up with (ReadSurroundings), by the system's clock.
Result<std::unique_ptr<Bucket>> OpenBucket(const Wished& wished, std::stop_token stop,
                                           const RetryLimits& limits = {});

}  // namespace parallelrun::store::s3
