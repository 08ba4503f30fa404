#include "plan/input_names.h"

#include <algorithm>
#include <memory>

#include "plan/source.h"

namespace parallelrun::plan {
namespace {

bool Hidden(std::string_view path) { return LastPart(path).starts_with('.'); }

// Whether the pattern's part for this folder has the dot itself.
bool NamesHiddenFolder(std::string_view pattern, std::string_view folder) {
  while (true) {
    const size_t end = pattern.find('/');
    if (end == std::string_view::npos || pattern.substr(0, end) == "**") return false;
    const size_t slash = folder.find('/');
    if (slash == std::string_view::npos) return pattern.starts_with('.');
    pattern.remove_prefix(end + 1);
    folder.remove_prefix(slash + 1);
  }
}

bool IsAtOrBelow(std::string_view place, std::string_view folder) {
  if (!place.starts_with(folder)) return false;
  return place.size() == folder.size() || folder.ends_with('/') || place[folder.size()] == '/';
}

}  // namespace

InputNames::InputNames(const PlanInput& input)
    : root_(WithoutSlash(input.root)),
      kind_(input.kind),
      by_manifest_(!input.manifest.path.empty()),
      pattern_text_(input.pattern),
      pattern_(input.pattern),
      exclude_(input.exclude.begin(), input.exclude.end()) {}

bool InputNames::Means(std::string_view path) const {
  return by_manifest_ || ((!Hidden(path) || Hidden(pattern_text_)) && MeansRoot(path));
}

bool InputNames::MeansRoot(std::string_view name) const {
  return pattern_.Matches(name) && !Excluded(name);
}

bool InputNames::MayMeanBelow(std::string_view folder) const {
  return (!Hidden(folder) || NamesHiddenFolder(pattern_text_, folder)) &&
         LastPart(folder) != "lost+found" && pattern_.MayMatchBelow(folder) && !Excluded(folder);
}

bool InputNames::HasAt(std::string_view location) const {
  if (!IsAtOrBelow(location, root_)) return false;
  if (location == root_) return MeansRoot(LastPart(location));  // the root is a file
  return HasBelow(location.substr(root_.size() + (root_.ends_with('/') ? 0 : 1)));
}

bool InputNames::HasBelow(std::string_view path) const {
  const DataNames names = DataNamesOf(kind_);
  for (size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    const std::string_view folder = path.substr(0, slash);
    if (!MayMeanBelow(folder) || !IsData(names, LastPart(folder))) return false;
  }
  return Means(path) && IsData(names, LastPart(path));
}

bool InputNames::Excluded(std::string_view path) const {
  return std::any_of(exclude_.begin(), exclude_.end(),
                     [&](const Glob& glob) { return glob.Matches(path); });
}

void ShareNames(std::vector<PlanInput>& inputs) {
  for (size_t i = 1; i < inputs.size(); ++i) {
    PlanInput& input = inputs[i];
    if (input.kind == PlanKind::kRanks || !input.manifest.path.empty()) continue;
    for (size_t j = 0; j < i; ++j) {
      const PlanInput& other = inputs[j];
      if (other.kind != input.kind || other.store != input.store) continue;
      if (!other.manifest.path.empty()) continue;
      const std::string_view mine = WithoutSlash(input.root);
      const std::string_view theirs = WithoutSlash(other.root);
      if (!IsAtOrBelow(mine, theirs) && !IsAtOrBelow(theirs, mine)) continue;
      input.before.push_back(std::make_shared<const InputNames>(other));
    }
  }
}

}  // namespace parallelrun::plan
