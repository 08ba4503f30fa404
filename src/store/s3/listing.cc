#include "store/s3/listing.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::s3 {
namespace {

constexpr int kMostKeys = 1000;  // in a page

// What begins with `prefix`, behind `after`; "": from the begin. With `folders` what has a further
// '/' is told as its folder.
Result<ListPage> AskForPage(Bucket& bucket, const std::string& prefix, const std::string& after,
                            int most, bool folders, std::stop_token stop = {}) {
  Question question;
  question.key = bucket.address().KeyOf("");
  question.query = fmt::format("list-type=2&encoding-type=url&max-keys={}", most);
  if (folders) question.query += "&delimiter=" + PercentEncode("/");
  if (!prefix.empty()) question.query += "&prefix=" + PercentEncode(prefix);
  if (!after.empty()) question.query += "&start-after=" + PercentEncode(after);
  question.stop = std::move(stop);
  const Result<HttpResponse> answer = bucket.Ask(std::move(question));
  if (!answer.ok()) return answer.error();
  Result<ListPage> page = ParseListPage(answer->body);
  if (!page.ok()) return page.error().With("listing " + bucket.address().Url(""));
  return page;
}

// What is not so could be listed twice, or never.
Status CheckOrder(const Bucket& bucket, const ListPage& page, const std::string& after) {
  const std::string root = bucket.address().KeyOf("");
  const std::string* last = &after;
  for (const ListedKey& listed : page.keys) {
    if (!listed.key.starts_with(root) || listed.key <= *last) {
      return Error{Code::kCorrupt,
                   fmt::format("listing {}: the server does not list keys in the order of their "
                               "bytes, or others than asked for (\"{}\" behind \"{}\")",
                               bucket.address().Url(""), Printable(listed.key, kShown),
                               Printable(*last, kShown))};
    }
    last = &listed.key;
  }
  return {};
}

}  // namespace

Result<bool> HoldsAny(Bucket& bucket) {
  const Result<ListPage> page = AskForPage(bucket, bucket.address().KeyOf(""), "", 1, false);
  if (!page.ok()) return page.error();
  return bucket.address().prefix.empty() || !page->keys.empty();
}

Listing::Listing(Bucket& bucket, Wanted wanted, const std::string& after)
    : bucket_(bucket),
      wanted_(std::move(wanted)),
      ranges_(bucket.address().KeyOf(""), after.empty() ? "" : bucket.address().KeyOf(after),
              limits_) {}

Listing::~Listing() {
  {
    const std::lock_guard lock(mutex_);
    ends_.request_stop();
  }
  changed_.notify_all();
  for (Thread& thread : threads_) thread.join();
}

void Listing::Carry(const KeyRanges::Ask& ask, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::string prefix = ask.folders ? *ask.folders : bucket_.address().KeyOf("");
  Result<ListPage> page =
      AskForPage(bucket_, prefix, ask.after, kMostKeys, ask.folders.has_value(), ends_.get_token());
  Status came = page.ok() ? Status() : Status(page.error());
  // Folders are no more than a hint.
  if (came.ok() && !ask.folders) came = CheckOrder(bucket_, *page, ask.after);
  lock.lock();
  if (came.ok()) {
    ranges_.Came(ask, std::move(*page));
  } else {
    ranges_.Failed(ask, came.error());
  }
  changed_.notify_all();
}

void Listing::Work() {
  std::unique_lock lock(mutex_);
  while (!ends_.stop_requested()) {
    if (const std::optional<KeyRanges::Ask> ask = ranges_.Next()) {
      Carry(*ask, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

void Listing::Begin() {
  while (threads_.size() < limits_.at_once) threads_.emplace_back("list keys", [this] { Work(); });
}

Result<bool> Listing::NextPage() {
  std::unique_lock lock(mutex_);
  while (true) {
    if (auto page = ranges_.Take()) {
      page_ = std::move(*page);
      at_ = 0;
      changed_.notify_all();
      return true;
    }
    if (ranges_.error()) return *ranges_.error();
    if (ranges_.over()) return false;
    if (ranges_.Together()) Begin();
    const std::optional<KeyRanges::Ask> ask = ranges_.Together() ? std::nullopt : ranges_.Next();
    if (ask) {
      Carry(*ask, lock);
    } else {
      changed_.wait(lock);
    }
  }
}

// Of a folder that nobody wants no more pages are asked for.
void Listing::PassOverFolder() {
  const Address& address = bucket_.address();
  if (page_.empty() || !wanted_.IsKeptOut(address.NameOf(page_.back().key))) return;
  const std::lock_guard lock(mutex_);
  ranges_.PassOver(EndOfFolder(address.KeyOf(wanted_.kept_out() + "/")));
}

Result<std::optional<Listed>> Listing::Next() {
  const size_t root = bucket_.address().KeyOf("").size();
  while (true) {
    while (at_ == page_.size()) {
      PassOverFolder();
      const Result<bool> next = NextPage();
      if (!next.ok()) return next.error();
      if (!*next) return std::optional<Listed>();
    }
    const ListedKey& listed = page_[at_++];
    const std::string_view name = std::string_view(listed.key).substr(root);
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
