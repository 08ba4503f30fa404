// The input folder of a simulated job, the planner's stand-in, and what a worker makes of Work.
// Files are numbers; a name is six digits, so that numbers and names sort alike.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/planner.h"
#include "tests/simulation/scenario.h"

namespace parallelrun::simulation {

using Items = std::vector<uint32_t>;

class SimInput {
 public:
  explicit SimInput(const Scenario& scenario);

  // A file appears somewhere in the folder.
  void Grow(uint64_t random);

  // The encoded chunk behind `cursor`, which moves on, and its files; nothing at the end.
  std::optional<std::string> NextChunk(plan::PlanCursor& cursor, Items& files) const;

  bool Poison(uint32_t file) const { return Draw(file, 1) < scenario_.poison; }
  bool Bad(uint32_t file) const { return Draw(file, 2) < scenario_.bad; }
  bool Killer(uint32_t file) const { return Draw(file, 3) < scenario_.killers; }
  bool Poison(const Items& items) const;
  bool Killer(const Items& items) const;
  // The rows that a mini-batch must yield: one a file, none for a bad one.
  std::string Rows(const Items& items, uint32_t& rows) const;

  const std::set<uint32_t>& files() const { return files_; }
  const std::set<uint32_t>& first_files() const { return first_files_; }

 private:
  uint32_t Draw(uint32_t file, uint64_t what) const;
  const Scenario& scenario_;
  std::set<uint32_t> files_;
  std::set<uint32_t> first_files_;  // there from the start
};

struct DecodedWork {
  job::BatchId id = 0;
  uint32_t attempts = 0;
  Items items;
};
DecodedWork DecodeWork(std::string_view work);

}  // namespace parallelrun::simulation
