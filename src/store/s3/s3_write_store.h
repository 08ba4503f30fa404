// A bucket of S3, or of what speaks it, as a place to write to: multipart uploads, and conditions
// by If-None-Match and If-Match. A name is the key without the prefix of the store's URL. See
// README.md.
#pragma once

#include <memory>

#include "store/s3/bucket.h"
#include "store/wished.h"
#include "store/write_store.h"

namespace parallelrun::store::s3 {

// `encryption` is that of all that is written.
std::unique_ptr<WriteStore> MakeWriteStore(std::unique_ptr<Bucket> bucket,
                                           const Encryption& encryption = {});

}  // namespace parallelrun::store::s3
