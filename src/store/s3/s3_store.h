// Objects in a bucket of S3, or of what speaks it, as a Store. A name is the key without the prefix
// of the store's URL; a version is the ETag without its quotes, and the size. See README.md.
#pragma once

#include <memory>
#include <stop_token>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/open_bucket.h"
#include "store/s3/surroundings.h"
#include "store/store.h"

namespace parallelrun::store::s3 {

// Asks nobody yet. kInvalid, kPermission: what the user has to mend, in words.
Result<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, const Surroundings& around,
                                         std::shared_ptr<const Clock> clock);

// The same with what this process is set up with (ReadSurroundings), by the system's clock.
Result<std::unique_ptr<Store>> OpenStore(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::store::s3
