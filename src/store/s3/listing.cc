#include "store/s3/listing.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::s3 {
namespace {

// The last character there is: behind "a/" and it there is nothing in the folder "a" worth a
// listing.
constexpr std::string_view kLastCharacter = "\xf4\x8f\xbf\xbf";

// Behind `after`; "": from the begin.
Result<ListPage> AskForPage(Bucket& bucket, const std::string& after, int most) {
  Question question;
  question.key = bucket.address().KeyOf("");
  question.query = fmt::format("list-type=2&encoding-type=url&max-keys={}", most);
  if (!question.key.empty()) question.query += "&prefix=" + PercentEncode(question.key);
  if (!after.empty()) question.query += "&start-after=" + PercentEncode(after);
  const Result<HttpResponse> answer = bucket.Ask(question);
  if (!answer.ok()) return answer.error();
  Result<ListPage> page = ParseListPage(answer->body);
  if (!page.ok()) return page.error().With("listing " + bucket.address().Url(""));
  return page;
}

}  // namespace

Result<bool> HoldsAny(Bucket& bucket) {
  const Result<ListPage> page = AskForPage(bucket, "", 1);
  if (!page.ok()) return page.error();
  return bucket.address().prefix.empty() || !page->keys.empty();
}

Listing::Listing(Bucket& bucket, Wanted wanted, const std::string& after)
    : bucket_(bucket), wanted_(std::move(wanted)) {
  if (!after.empty()) after_ = last_ = bucket.address().KeyOf(after);
}

Status Listing::NextPage() {
  constexpr int kMost = 1000;
  Result<ListPage> page = AskForPage(bucket_, after_, kMost);
  if (!page.ok()) return page.error();
  page_ = std::move(*page);
  at_ = 0;
  if (!page_.keys.empty()) after_ = page_.keys.back().key;
  return {};
}

Result<std::optional<Listed>> Listing::Next() {
  while (true) {
    while (at_ == page_.keys.size()) {
      if (!page_.more) return std::optional<Listed>();
      // Of a folder that nobody wants no more pages are asked for.
      const Address& address = bucket_.address();
      if (!after_.empty() && wanted_.IsKeptOut(address.NameOf(after_))) {
        after_ = address.KeyOf(wanted_.kept_out() + "/").append(kLastCharacter);
      }
      if (const Status next = NextPage(); !next.ok()) return next.error();
    }
    const ListedKey& listed = page_.keys[at_++];
    const std::string root = bucket_.address().KeyOf("");
    if (!listed.key.starts_with(root) || listed.key <= last_) {
      return Error{Code::kCorrupt,
                   fmt::format("listing {}: the server does not list keys in the order of their "
                               "bytes, or others than asked for (\"{}\" behind \"{}\")",
                               bucket_.address().Url(""), Printable(listed.key, kShown),
                               Printable(last_, kShown))};
    }
    last_ = listed.key;
    const std::string_view name = std::string_view(listed.key).substr(root.size());
    if (name.empty() || name.ends_with('/')) {
      if (listed.size > 0) wanted_.PassOver(name);
      continue;
    }
    if (!wanted_.Takes(name)) continue;
    Listed out{name, std::nullopt};
    if (!listed.etag.empty()) out.found = Found{listed.size, VersionOf(listed.etag, listed.size)};
    return std::optional(std::move(out));
  }
}

}  // namespace parallelrun::store::s3
