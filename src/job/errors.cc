#include "job/errors.h"

#include <algorithm>

namespace parallelrun::job {

std::string ErrorKey(std::string_view kind, std::string_view message) {
  std::string key(kind);
  key += '\n';
  if (kind == "Misfit") {
    // "FILE:LINE: column "a1" is integer, and the value is …": an error of its column.
    const size_t what = std::min(message.find(": "), message.size());
    return key.append(message.substr(what, message.find(", and ", what) - what));
  }
  for (const char c : message.substr(0, 512)) {
    if (c < '0' || c > '9') key += c;
  }
  return key;
}

void DistinctErrors::Add(std::string_view kind, std::string_view message, BatchId batch,
                         uint32_t node, uint32_t process, std::string_view log) {
  ++total_;
  std::string key = ErrorKey(kind, message);
  const auto found = index_.find(key);
  if (found != index_.end()) {
    ++errors_[found->second].count;
    return;
  }
  if (errors_.size() == kLimit) return;
  index_.emplace(std::move(key), errors_.size());
  errors_.push_back(
      {std::string(kind), std::string(message), 1, batch, node, process, std::string(log)});
}

void DistinctErrors::Clear() { *this = DistinctErrors(); }

std::vector<DistinctError> DistinctErrors::Top(size_t n) const {
  std::vector<DistinctError> sorted = errors_;
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const DistinctError& a, const DistinctError& b) { return a.count > b.count; });
  if (sorted.size() > n) sorted.resize(n);
  return sorted;
}

}  // namespace parallelrun::job
