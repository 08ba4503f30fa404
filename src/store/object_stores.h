// The stores that are asked over a network, told apart by their URLs.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/store.h"
#include "store/wished.h"

namespace parallelrun::store {

// "s3://...", "abfss://...", "https://...": whether a text is meant as the URL of such a store, and
// not as a path.
bool IsStoreUrl(std::string_view text);

// The URL of a path below that of a store ("" or "a/b"), the same for each way to write it, as
// Store::Location has it. kInvalid for what is no such URL, in words that hold no secret.
Result<std::string> StoreUrl(const std::string& url, std::string_view path);

// What is below `wished.url`, with what this process is set up with. Asks nobody yet. kInvalid,
// kPermission: what the user has to mend, in words.
Result<std::unique_ptr<Store>> OpenObjectStore(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::store
