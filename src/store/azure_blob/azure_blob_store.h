// Blobs in a container of Azure Blob Storage as a Store. A name is the blob's without the prefix of
// the store's URL; a version is the ETag without its quotes, and the size. See README.md.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/answer_tally.h"
#include "store/azure_blob/container.h"
#include "store/azure_blob/credential_source.h"
#include "store/objects/retry.h"
#include "store/store.h"
#include "store/wished.h"

namespace parallelrun::store::azure_blob {

struct StoreOptions {
  std::string url;            // ParseAddress has its forms
  std::string endpoint;       // empty: that of a connection string, or Azure's own
  size_t page = kMostInPage;  // blobs in a page of a list
  RetryLimits limits;
  Duration first_byte = seconds(30);             // of an answer
  std::stop_token stop;                          // ends all waits
  std::shared_ptr<AnswerTally> tally = nullptr;  // none: one of its own
};

// Asks nobody yet. kInvalid, kPermission: what the user has to mend, in words.
Result<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, const Surroundings& around,
                                         std::shared_ptr<const Clock> clock);

// The same with what this process is set up with (ReadSurroundings), by the system's clock.
Result<std::unique_ptr<Store>> OpenStore(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::store::azure_blob
