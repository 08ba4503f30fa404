// Signs URLs for objects of a bucket. See README.md, "URLs".
#pragma once

#include <memory>
#include <stop_token>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/open_bucket.h"
#include "store/s3/surroundings.h"
#include "store/url_signer.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

// Asks nobody yet. Its URLs are good for `life` at most. kInvalid, kPermission: what the user has
// to mend, in words.
Result<std::unique_ptr<UrlSigner>> MakeUrlSigner(const StoreOptions& options,
                                                 const Surroundings& around,
                                                 std::shared_ptr<const Clock> clock,
                                                 Duration life = kUrlLife);

// The same with what this process is set up with (ReadSurroundings), by the system's clock.
Result<std::unique_ptr<UrlSigner>> OpenUrlSigner(const Wished& wished, std::stop_token stop,
                                                 Duration life = kUrlLife);

}  // namespace parallelrun::store::s3
