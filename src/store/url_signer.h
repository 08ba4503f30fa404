// Whoever has the keys of a store signs URLs of its objects, by which somebody else reads them
// without any: one version of one object, for a time. A URL is a secret, as the keys are, and
// stands in no message, log or file.
#pragma once

#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/store.h"

namespace parallelrun::store {

struct SignedUrl {
  std::string url;
  Duration life;  // from now on, by the clock of whoever signed
};

// No URL is good for longer, and each for as long where nobody says less.
inline constexpr Duration kUrlLife = seconds(30 * 60);

class UrlSigner {
 public:
  virtual ~UrlSigner() = default;

  // Of an object where Store::Location has it. Blocks, for some seconds at most: the first call
  // asks the store, and some later ones whoever gives the keys. Errors: kUnavailable when a later
  // try may succeed; kPermission, kInvalid for what a person has to mend. Thread-safe.
  virtual Result<SignedUrl> Sign(const std::string& location, const Version& version) = 0;
};

}  // namespace parallelrun::store
