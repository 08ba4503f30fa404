#include "store/azure_blob/listing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/escape.h"
#include "base/http/target.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::azure_blob {
namespace {

std::string PlaceOf(const Container& container) { return "listing " + container.address().Url(""); }

// `marker`: that of the page before, or "".
Result<ListPage> AskForPage(Container& container, const std::string& prefix, bool by_folder,
                            const std::string& marker) {
  Question question;
  question.key = prefix;
  question.query =
      fmt::format("restype=container&comp=list&include=metadata&maxresults={}", container.page());
  if (by_folder) question.query += "&delimiter=%2F";
  if (!prefix.empty()) question.query += "&prefix=" + PercentEncode(prefix);
  if (!marker.empty()) question.query += "&marker=" + PercentEncode(marker);
  const Result<HttpResponse> answer = container.Ask(question);
  if (!answer.ok()) return answer.error();
  Result<ListPage> page = ParseListPage(answer->body);
  if (!page.ok()) return page.error().With(PlaceOf(container));
  if (page->marker == marker && !marker.empty()) {
    return Error{Code::kCorrupt,
                 PlaceOf(container) + ": the server gives the same page again and again"};
  }
  return page;
}

}  // namespace

Result<bool> HoldsAny(Container& container) {
  const std::string& folder = container.address().prefix;
  std::string marker;
  do {  // Azure may give pages without a name
    const Result<ListPage> page =
        AskForPage(container, container.address().KeyOf(""), true, marker);
    if (!page.ok()) return page.error();
    if (folder.empty() || !page->blobs.empty() || !page->folders.empty()) return true;
    marker = page->marker;
  } while (!marker.empty());
  const Result<std::optional<Looked>> looked = container.Look(folder);
  if (!looked.ok()) return looked.error();
  return *looked && (*looked)->is_folder;
}

Status Level::NextPage(Container& container) {
  Result<ListPage> page = AskForPage(container, prefix_, by_folder_, marker_);
  if (!page.ok()) return page.error();
  begun_ = true;
  marker_ = std::move(page->marker);
  const auto is_folder = [](const ListedBlob& blob) { return blob.is_folder; };
  if (!by_folder_ && std::any_of(page->blobs.begin(), page->blobs.end(), is_folder)) {
    met_folders_ = true;
    return {};
  }
  const auto hold = [&](std::string key, std::optional<Found> found) -> Status {
    if (!key.starts_with(prefix_)) {
      return Error{Code::kCorrupt,
                   fmt::format("{}: the server lists others than asked for (\"{}\")",
                               PlaceOf(container), Printable(key, kShown))};
    }
    held_.push_back({std::move(key), std::move(found)});
    std::push_heap(held_.begin(), held_.end(), std::greater<>());
    return {};
  };
  for (ListedBlob& blob : page->blobs) {
    reached_ = std::max(reached_, blob.name);
    const bool ends_in_slash = blob.name.ends_with('/');
    if (blob.is_folder || (ends_in_slash && blob.size == 0)) continue;
    if (ends_in_slash && blob.name.starts_with(prefix_)) {
      no_files_.push_back(std::move(blob.name));
      continue;
    }
    std::optional<Found> found;
    if (!blob.etag.empty()) found = Found{blob.size, VersionOf(blob.etag, blob.size)};
    if (Status held = hold(std::move(blob.name), std::move(found)); !held.ok()) return held;
  }
  for (std::string& folder : page->folders) {
    // Where a folder stands in the server's order it may be without its '/'.
    reached_ = std::max(reached_, folder.substr(0, folder.size() - 1));
    if (Status held = hold(std::move(folder), std::nullopt); !held.ok()) return held;
  }
  return {};
}

Result<std::optional<Level::Entry>> Level::Next(Container& container) {
  while (true) {
    while (!begun_ || (!marker_.empty() && (held_.empty() || held_.front().key > reached_))) {
      if (Status next = NextPage(container); !next.ok()) return next.error();
      if (met_folders_) return std::optional<Entry>();
    }
    if (held_.empty()) return std::optional<Entry>();
    std::pop_heap(held_.begin(), held_.end(), std::greater<>());
    Entry entry = std::move(held_.back());
    held_.pop_back();
    if (entry.key == given_) continue;  // a folder that goes on in the next page
    given_ = entry.key;
    return std::optional(std::move(entry));
  }
}

Listing::Listing(Container& container, Wanted wanted, const std::string& after)
    : container_(container),
      root_(container.address().KeyOf("")),
      wanted_(std::move(wanted)),
      after_(after.empty() ? "" : container.address().KeyOf(after)),
      last_(after_) {
  open_.emplace_back(root_, false);
}

bool Listing::IsBefore(const std::string& key) const {
  return key <= after_ && !(key.ends_with('/') && after_.starts_with(key));
}

Error Listing::OutOfOrder(const std::string& key) const {
  return {
      Code::kCorrupt,
      fmt::format("listing {}: the server does not list blobs in the order of their bytes "
                  "(\"{}\" behind \"{}\"); characters beyond U+FFFF in names have another "
                  "order there",
                  container_.address().Url(""), Printable(key, kShown), Printable(last_, kShown))};
}

Result<std::optional<Listed>> Listing::Next() {
  while (!open_.empty()) {
    Result<std::optional<Level::Entry>> next = open_.back().Next(container_);
    if (!next.ok()) return next.error();
    for (const std::string& key : open_.back().TakeNoFiles()) {
      wanted_.PassOver(std::string_view(key).substr(root_.size()));
    }
    if (open_.back().met_folders()) {
      after_ = last_;
      open_.back() = Level(root_, true);
      continue;
    }
    if (!*next) {
      open_.pop_back();
      continue;
    }
    Level::Entry& entry = **next;
    if (IsBefore(entry.key)) continue;
    const bool is_folder = entry.key.ends_with('/');
    if (entry.key <= last_ && !(is_folder && after_.starts_with(entry.key))) {
      return OutOfOrder(entry.key);
    }
    if (is_folder) {
      if (!wanted_.LetsIn(std::string_view(entry.key).substr(root_.size()))) continue;
      open_.emplace_back(std::move(entry.key), true);
      continue;
    }
    last_ = std::move(entry.key);
    const std::string_view name = std::string_view(last_).substr(root_.size());
    if (wanted_.Takes(name)) return std::optional(Listed{name, std::move(entry.found)});
  }
  return std::optional<Listed>();
}

}  // namespace parallelrun::store::azure_blob
