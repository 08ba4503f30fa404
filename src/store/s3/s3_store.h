// Objects in a bucket of S3, or of what speaks it, as a Store. A name is the key without the prefix
// of the store's URL; a version is the ETag without its quotes. See README.md.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/address.h"
#include "store/s3/bucket.h"
#include "store/s3/surroundings.h"
#include "store/store.h"

namespace parallelrun::s3 {

struct StoreOptions {
  std::string url;     // s3://bucket/prefix
  std::string region;  // these three: empty, as Surroundings has it
  std::string endpoint;
  std::optional<Style> style;
  RetryLimits limits;
  Duration first_byte = seconds(30);  // of an answer
  std::stop_token stop;               // ends all waits
};

// Asks nobody yet. kInvalid, kPermission: what the user has to mend, in words.
Result<std::unique_ptr<store::Store>> MakeStore(const StoreOptions& options,
                                                const Surroundings& around,
                                                std::shared_ptr<const Clock> clock);

// What a job says of a store.
struct Wished {
  std::string url;
  std::string region;
  std::string endpoint;
  std::optional<bool> path_style;
};

// The same with what this process is set up with (ReadSurroundings), by the system's clock.
Result<std::unique_ptr<store::Store>> OpenStore(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::s3
