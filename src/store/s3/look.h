// What is there under a key: one HEAD.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/http/message.h"
#include "store/s3/bucket.h"
#include "store/store.h"

namespace parallelrun::store::s3 {

struct Looked {
  Found found;  // its version is the ETag alone, as writes have it
  HttpHeaders headers;
};

// Nothing: it is not there. kInvalid for an object without size or ETag.
Result<std::optional<Looked>> LookAt(Bucket& bucket, const std::string& key);

}  // namespace parallelrun::store::s3
