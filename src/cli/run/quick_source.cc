#include "cli/run/quick_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cli/run/local_job.h"
#include "cli/run/quick_input.h"
#include "plan/object_or_prefix.h"
#include "store/object_stores.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kWildcards[] = "*?[";

// The folder of a glob is what stands before its first name that is a pattern.
QuickSource GlobSource(const fs::path& word) {
  fs::path folder = word.is_absolute() ? word.root_path() : fs::current_path();
  fs::path pattern;
  for (const fs::path& part : word.relative_path()) {
    if (part.empty()) continue;  // a slash at the end
    std::error_code ignored;
    const bool literal =
        pattern.empty() && (!HasWildcard(part) || fs::exists(folder / part, ignored));
    (literal ? folder : pattern) /= part;
  }
  return {Absolute(folder, "."), "", pattern.lexically_normal()};
}

// A URL is what is below a prefix, a glob, or one table: keys have no folders to look at.
QuickSource StoreSource(std::string url, const std::string& pattern) {
  const bool below = url.ends_with('/');
  while (url.ends_with('/')) url.pop_back();
  const size_t bucket_end = std::min(url.find('/', url.find("://") + 3), url.size());
  size_t cut = url.size();
  if (const size_t wild = url.find_first_of(kWildcards, bucket_end); wild != std::string::npos) {
    cut = url.rfind('/', wild);
  } else if (!below && bucket_end < url.size() && NamesATable(url)) {
    cut = url.rfind('/');
  }
  if (cut == url.size()) return {url, "", pattern, true};
  return {url.substr(0, cut), "", url.substr(cut + 1), true};
}

}  // namespace

bool MayBeOneObject(const std::string& url) {
  const size_t slash = url.rfind('/');
  return !HasWildcard(url) && slash + 1 < url.size() && !NamesATable(url) &&
         store::StoreUrl(url.substr(0, slash), "").ok();
}

Result<std::optional<QuickSource>> OneObject(const std::string& url) {
  const size_t slash = url.rfind('/');
  QuickSource object{url.substr(0, slash), "", url.substr(slash + 1), true};
  const auto beside = store::OpenObjectStore({object.folder, "", "", {}, {}}, {});
  if (!beside.ok()) return beside.error();
  const auto below = store::OpenObjectStore({url, "", "", {}, {}}, {});
  if (!below.ok()) return below.error();
  const Result<bool> one = plan::IsOneObject(**below, **beside, object.pattern);
  if (!one.ok()) return one.error();
  return *one ? std::optional(std::move(object)) : std::nullopt;
}

bool HasWildcard(const std::string& text) {
  return text.find_first_of(kWildcards) != std::string::npos;
}

QuickSource SourceOf(const std::string& word, const std::string& pattern) {
  if (store::IsStoreUrl(word)) return StoreSource(word, pattern);
  const fs::path path = Absolute(fs::current_path(), word);
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) return {path.parent_path(), path.filename(), ""};
  if (!fs::exists(path, ignored) && HasWildcard(word)) return GlobSource(word);
  return {path, "", pattern};
}

}  // namespace parallelrun::cli
