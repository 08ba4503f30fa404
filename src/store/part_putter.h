// Sends parts of uploads by URLs that somebody else has signed (WriteStore::SignPart), without any
// keys. Thread-safe; blocks. Made with the token that ends its waits.
#pragma once

#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/http/client.h"

namespace parallelrun::store {

class PartPutter {
 public:
  virtual ~PartPutter() = default;

  // Sends the bytes of a file as that part; gives its ETag, by which the upload is completed.
  // `name` is the object's, below the store's URL. kStale: the URL counts no more; kNotFound: the
  // upload is not there any more; kUnavailable: a later try may succeed; else what the store says.
  virtual Result<std::string> Put(const std::string& name, const std::string& url,
                                  const HttpFileRange& bytes, const std::stop_token& stop) = 0;
};

}  // namespace parallelrun::store
