// Which names of a listing are wanted, asked about each folder on the way once, as long as names of
// it follow each other. By one thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "store/store.h"

namespace parallelrun::store {

class WantedNames {
 public:
  explicit WantedNames(Wanted wanted) : wanted_(std::move(wanted)) {}

  // Names come in the order of a listing.
  bool Takes(std::string_view name) { return LetsIn(name) && wanted_.name(name); }
  // An object that is not listed, as Wanted::no_file has it; in any order.
  void PassOver(std::string_view name);
  // Whether each folder on the way to a name is wanted; a folder's own name ends in '/'.
  bool LetsIn(std::string_view name);
  // The folder that was refused last, "" if none was: nothing in it is taken.
  const std::string& kept_out() const { return kept_out_; }
  bool IsKeptOut(std::string_view name) const;

 private:
  const Wanted wanted_;
  std::string kept_out_;
  std::string let_in_;  // the folder in which the last name lies, as far as `below` was asked
};

}  // namespace parallelrun::store
