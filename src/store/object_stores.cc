#include "store/object_stores.h"

#include <utility>

#include "store/azure_blob/address.h"
#include "store/azure_blob/azure_blob_store.h"
#include "store/s3/address.h"
#include "store/s3/s3_store.h"
#include "store/s3/url_parts.h"
#include "store/s3/url_signer.h"
#include "store/s3/url_store.h"

namespace parallelrun::store {
namespace {

bool IsS3(std::string_view url) { return url.starts_with("s3://"); }

}  // namespace

bool IsStoreUrl(std::string_view text) { return IsS3(text) || azure_blob::IsUrl(text); }

Result<std::string> StoreUrl(const std::string& url, std::string_view path) {
  if (IsS3(url)) {
    const Result<s3::Address> address = s3::ParseAddress(url);
    return address.ok() ? Result<std::string>(address->Url(path)) : address.error();
  }
  const Result<azure_blob::Address> address = azure_blob::ParseAddress(url);
  return address.ok() ? Result<std::string>(address->Url(path)) : address.error();
}

Result<std::unique_ptr<Store>> OpenObjectStore(const Wished& wished, std::stop_token stop) {
  return IsS3(wished.url) ? s3::OpenStore(wished, std::move(stop))
                          : azure_blob::OpenStore(wished, std::move(stop));
}

bool SignsUrls(std::string_view url) { return IsS3(url); }

Result<std::unique_ptr<UrlSigner>> OpenUrlSigner(const Wished& wished, std::stop_token stop,
                                                 Duration life) {
  return s3::OpenUrlSigner(wished, std::move(stop), life);
}

Result<std::unique_ptr<Store>> OpenUrlStore(const Wished& wished, std::shared_ptr<UrlTable> urls,
                                            std::stop_token stop) {
  return s3::OpenUrlStore(wished, std::move(urls), std::move(stop));
}

Result<std::unique_ptr<PartPutter>> OpenPartPutter(const Wished& wished, std::stop_token stop) {
  return s3::OpenPartPutter(wished, std::move(stop));
}

}  // namespace parallelrun::store
