#include "store/url_query.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/escape.h"
#include "store/azure_blob/address.h"
#include "store/object_stores.h"

namespace parallelrun::store {
namespace {

// In lower case; an end of '-' means all that begin so.
constexpr std::array<std::string_view, 2> kVersions = {"versionid", "snapshot"};
constexpr std::array<std::string_view, 4> kSignatures = {"x-amz-", "awsaccesskeyid", "signature",
                                                         "sig"};

bool Is(std::string_view name, std::string_view known) {
  return known.ends_with('-') ? name.starts_with(known) : name == known;
}

// Whether `query`, "a=1&b=2", has one of these parameters.
template <size_t kCount>
bool HasOneOf(const std::array<std::string_view, kCount>& known, std::string_view query) {
  while (!query.empty()) {
    const std::string_view parameter = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), parameter.size() + 1));
    const size_t end = parameter.find('=');
    if (end == std::string_view::npos) continue;
    std::string name(parameter.substr(0, end));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (std::any_of(known.begin(), known.end(), [&](auto one) { return Is(name, one); })) {
      return true;
    }
  }
  return false;
}

}  // namespace

Status CheckQuery(const std::string& url) {
  const size_t begin = url.find('?');
  if (!IsStoreUrl(url) || begin == std::string::npos) return {};
  const std::string before = url.substr(0, begin);
  const std::string_view query = std::string_view(url).substr(begin + 1);
  // A web address that is no store has other faults than its query.
  if (url.starts_with("https://")) {
    const Result<std::string> place = StoreUrl(before, "");
    if (!place.ok()) return place.error();
  }
  const auto wrong = [&](std::string_view why) {
    return Error{Code::kInvalid, fmt::format("{}: {}", Printable(before, kShownShort), why)};
  };
  if (HasOneOf(kVersions, query)) {
    return wrong(
        "the version that stands behind the ? cannot be read: what is there when the run begins "
        "is read, and a change after that is noticed. Leave out the ? and what follows it");
  }
  if (azure_blob::MayHoldSas(url)) return azure_blob::ParseAddress(url).error();
  if (HasOneOf(kSignatures, query)) {
    return wrong(
        "what follows the ? is a signature, which is a secret and is not used: leave it out, and "
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or other credentials of docs/stores.md");
  }
  return {};
}

}  // namespace parallelrun::store
