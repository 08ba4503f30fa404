#include "plan/listing.h"

#include <algorithm>
#include <utility>

#include "api/selection.h"
#include "plan/source.h"

namespace parallelrun::plan {

Listing::Listing(const PlanInput& input, store::Store& store, std::string after)
    : input_(input), store_(store), names_(input), after_(std::move(after)) {}

Status Listing::Start() {
  if (started_) return {};
  started_ = true;
  auto listing = store_.List(Wants(), after_);
  if (!listing.ok() && MayBeMissing(listing.error())) return {};
  if (!listing.ok()) return Over(listing.error());
  listing_ = std::move(*listing);
  return {};
}

// A bucket is always there: only what lies in it comes and goes, and with it a manifest.
bool Listing::MayBeMissing(const Error& error) const {
  const bool may_go = input_.store.empty() || !input_.manifest.path.empty();
  return error.code == Code::kNotFound && may_go && after_.empty() &&
         input_.allow_empty == api::AllowEmpty::kMissing;
}

Result<std::optional<store::Listed>> Listing::Next() {
  const Status started = Start();
  if (!started.ok()) return started.error();
  if (!listing_) return std::optional<store::Listed>();
  auto next = listing_->Next();
  if (!next.ok()) return Over(next.error());
  return next;
}

Error Listing::Over(const Error& error) {
  listing_.reset();
  return error.With(PlaceOf(input_));
}

store::Wanted Listing::Wants() {
  return {[this](std::string_view path) {
            const bool hidden_root =
                path.starts_with('.') && IsRoot(path) && names_.MeansRoot(path);
            return (names_.Means(path) || hidden_root) && CountsAsData(path) && Chosen(path) &&
                   !IsOfOther(path);
          },
          [this](std::string_view path) { return names_.MayMeanBelow(path) && CountsAsData(path); },
          [this](std::string_view path) { CountNoFile(path); }};
}

bool Listing::IsRoot(std::string_view path) const {
  return store_.Location(path) == WithoutSlash(input_.root);
}

bool Listing::CountsAsData(std::string_view path) {
  if (IsData(DataNamesOf(input_.kind), LastPart(path))) return true;
  if (IsRoot(path)) return true;
  left_out_.AddNoData(path);
  return false;
}

// Of what the input means, were there no slash; of its root ("") where it means all.
void Listing::CountNoFile(std::string_view path) {
  const std::string_view name = WithoutSlash(path);
  const bool root = name.empty() || name == "/";
  const bool meant = root ? input_.pattern.empty()
                          : names_.Means(name) && IsData(DataNamesOf(input_.kind), LastPart(name));
  if (!meant || input_.only) return;
  left_out_.AddNoFile(path.empty() ? JoinPath(std::string(LastPart(WithoutSlash(input_.root))), "")
                                   : path);
}

bool Listing::IsOfOther(std::string_view path) {
  if (input_.before.empty()) return false;
  const std::string location = store_.Location(path);
  const bool others = std::any_of(input_.before.begin(), input_.before.end(),
                                  [&](const auto& names) { return names->HasAt(location); });
  if (others) left_out_.AddOfOther(path);
  return others;
}

bool Listing::Chosen(std::string_view path) const {
  return !input_.only ||
         std::binary_search(input_.only->begin(), input_.only->end(), api::FileDigest(path));
}

Result<std::optional<store::Found>> Look(const PlanInput& input, store::Store& store,
                                         const std::string& name) {
  auto found = store.Stat(name);
  if (!found.ok()) return found.error().With(PlaceOf(input));
  return found;
}

}  // namespace parallelrun::plan
