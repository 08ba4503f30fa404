#include "coordinator/plan/listing.h"

#include <algorithm>
#include <utility>

#include "coordinator/plan/source.h"

namespace parallelrun {
namespace {

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool Hidden(std::string_view path) { return LastPart(path).starts_with('.'); }

}  // namespace

Listing::Listing(const PlanInput& input, store::Store& store, std::string after)
    : input_(input),
      store_(store),
      pattern_(input.pattern),
      exclude_(input.exclude.begin(), input.exclude.end()),
      after_(std::move(after)) {}

Status Listing::Start() {
  if (started_) return {};
  started_ = true;
  auto listing = store_.List(Wants(), after_);
  if (!listing.ok()) return Over(listing.error());
  listing_ = std::move(*listing);
  return {};
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
            return !Hidden(path) && pattern_.Matches(path) && !Excluded(path) && CountsAsData(path);
          },
          [this](std::string_view path) {
            return !Hidden(path) && LastPart(path) != "lost+found" &&
                   pattern_.MayMatchBelow(path) && !Excluded(path) && CountsAsData(path);
          }};
}

bool Listing::CountsAsData(std::string_view path) {
  if (IsData(DataNamesOf(input_.kind), LastPart(path))) return true;
  // Whoever names one file as the input means it.
  if (store_.Location(path) == WithoutSlash(input_.root)) return true;
  left_out_.Add(path);
  return false;
}

bool Listing::Excluded(std::string_view path) const {
  return std::any_of(exclude_.begin(), exclude_.end(),
                     [&](const Glob& glob) { return glob.Matches(path); });
}

Result<std::optional<store::Found>> Look(const PlanInput& input, store::Store& store,
                                         const std::string& name) {
  auto found = store.Stat(name);
  if (!found.ok()) return found.error().With(PlaceOf(input));
  return found;
}

}  // namespace parallelrun
