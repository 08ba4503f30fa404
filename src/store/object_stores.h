// The stores that are asked over a network, told apart by their URLs.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "store/part_putter.h"
#include "store/store.h"
#include "store/url_signer.h"
#include "store/url_table.h"
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

// Whether URLs can be signed for the objects of such a store: of S3, not of Azure.
bool SignsUrls(std::string_view url);
// For such a store alone: by which the one who has the keys signs, and by which whoever has none
// reads. Each asks nobody yet; errors as those of OpenObjectStore.
Result<std::unique_ptr<UrlSigner>> OpenUrlSigner(const Wished& wished, std::stop_token stop,
                                                 Duration life = kUrlLife);
Result<std::unique_ptr<Store>> OpenUrlStore(const Wished& wished, std::shared_ptr<UrlTable> urls,
                                            std::stop_token stop);
// By which parts of uploads are sent that are signed so.
Result<std::unique_ptr<PartPutter>> OpenPartPutter(const Wished& wished, std::stop_token stop);

}  // namespace parallelrun::store
