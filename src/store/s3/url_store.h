// Objects of a bucket as a Store that has no keys: each is read by the URL that UrlTable has for
// it, in the version that this is for. It lists nothing, and knows of no other object. See
// README.md, "URLs".
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/url_asker.h"
#include "store/store.h"
#include "store/url_table.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

// Asks nobody yet. Its calls, and the reads of its objects, are kUnavailable where the table has no
// URL that counts; the table tells then. kInvalid: what is no URL of a bucket.
Result<std::unique_ptr<Store>> MakeUrlStore(const UrlStoreOptions& options,
                                            std::shared_ptr<UrlTable> urls,
                                            const std::shared_ptr<const Clock>& clock);

// The same with the certificates that this process trusts (AWS_CA_BUNDLE), by the system's clock.
Result<std::unique_ptr<Store>> OpenUrlStore(const Wished& wished, std::shared_ptr<UrlTable> urls,
                                            std::stop_token stop);

}  // namespace parallelrun::store::s3
