#include "store/objects/wanted_names.h"

namespace parallelrun::store {
namespace {

bool IsIn(std::string_view name, std::string_view folder) {
  return name.size() > folder.size() && name[folder.size()] == '/' && name.starts_with(folder);
}

}  // namespace

bool WantedNames::IsKeptOut(std::string_view name) const {
  return !kept_out_.empty() && IsIn(name, kept_out_);
}

void WantedNames::PassOver(std::string_view name) {
  const std::string_view plain = name.substr(0, name.find_last_not_of('/') + 1);
  if (wanted_.no_file && LetsIn(plain)) wanted_.no_file(name);
}

bool WantedNames::LetsIn(std::string_view name) {
  if (IsKeptOut(name)) return false;
  while (!let_in_.empty() && !IsIn(name, let_in_)) {
    let_in_.erase(let_in_.rfind('/') == std::string::npos ? 0 : let_in_.rfind('/'));
  }
  for (size_t slash = name.find('/', let_in_.empty() ? 0 : let_in_.size() + 1);
       slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
    const std::string_view folder = name.substr(0, slash);
    if (!wanted_.below(folder)) return kept_out_ = folder, false;
    let_in_ = folder;
  }
  return true;
}

}  // namespace parallelrun::store
