// The files of an input by their partition keys: lists all of it, and puts files with the same
// values into one group. Groups are in the order of their first file in the listing. Memory: every
// name, and 32 bytes a file. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/left_out.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

class Grouping {
 public:
  // Errors are those of Planner::Next.
  static Result<Grouping> Make(const PlanInput& input, store::Store& store);

  // Of the names that were listed, in their order; never 0.
  uint64_t digest() const { return digest_; }
  const LeftOut& left_out() const { return left_out_; }  // of that listing
  size_t size() const { return groups_.size(); }
  const std::string& context(size_t group) const { return groups_[group].context; }
  size_t files(size_t group) const { return groups_[group].files.size(); }
  std::string_view name(size_t group, size_t file) const;

 private:
  struct Name {
    uint64_t offset;
    uint32_t length;
  };
  struct Group {
    std::string context;
    std::vector<Name> files;
  };

  std::string names_;
  LeftOut left_out_;
  std::vector<Group> groups_;
  uint64_t digest_ = 0;
};

}  // namespace parallelrun::plan
