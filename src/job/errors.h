// The distinct errors of a job: what people read first. Two failures are the same error when kind
// and message agree once digits are ignored; two misfits, when it is the same column that they do
// not fit. Bounded; pure; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "job/ids.h"

namespace parallelrun::job {

struct DistinctError {
  std::string kind;
  std::string message;  // of the first one
  uint64_t count = 0;
  BatchId batch = 0;  // of the first one, as all below
  uint32_t node = 0;
  uint32_t process = 0;
  std::string log;
};

// What failures that are the same error have in common: kind and message without digits, so that
// "row 17" and "row 18" are one error; of a misfit, what it is that does not fit.
std::string ErrorKey(std::string_view kind, std::string_view message);

class DistinctErrors {
 public:
  static constexpr size_t kLimit = 100;  // errors kept; further distinct ones are only counted

  void Add(std::string_view kind, std::string_view message, BatchId batch, uint32_t node,
           uint32_t process, std::string_view log);
  void Clear();
  // The `n` most frequent, the earlier first among equals.
  std::vector<DistinctError> Top(size_t n) const;
  uint64_t total() const { return total_; }

 private:
  std::vector<DistinctError> errors_;
  std::unordered_map<std::string, size_t> index_;
  uint64_t total_ = 0;
};

}  // namespace parallelrun::job
