// Parts of multipart uploads, sent by URLs.
#pragma once

#include <memory>
#include <stop_token>

#include "base/error.h"
#include "base/time.h"
#include "store/part_putter.h"
#include "store/s3/url_asker.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

// Asks nobody yet. kInvalid: what is no URL of a bucket.
Result<std::unique_ptr<PartPutter>> MakePartPutter(const UrlStoreOptions& options,
                                                   std::shared_ptr<const Clock> clock);

// The same with the certificates that this process trusts, by the system's clock.
Result<std::unique_ptr<PartPutter>> OpenPartPutter(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::store::s3
