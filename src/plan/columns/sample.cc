#include "plan/columns/sample.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace parallelrun::plan {
namespace {

constexpr size_t kMostFiles = 100;
constexpr uint64_t kBlocks = 3;  // of a file that is not read whole

// The first and the last are among them, the others evenly between.
std::vector<size_t> SomeOf(size_t files) {
  std::vector<size_t> some;
  for (size_t i = 0; i < std::min(files, kMostFiles); ++i) {
    some.push_back(files <= kMostFiles ? i : i * (files - 1) / (kMostFiles - 1));
  }
  return some;
}

}  // namespace

Sample PlanSample(const std::vector<uint64_t>& sizes, bool complete, uint64_t most_bytes) {
  Sample sample;
  const uint64_t total = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  sample.all = complete && total <= most_bytes;
  std::vector<size_t> files(sizes.size());
  std::iota(files.begin(), files.end(), size_t{0});
  if (!sample.all) files = SomeOf(sizes.size());
  // What a small file leaves over is not passed on: then its neighbours would decide what is read.
  const uint64_t share = files.empty() ? 0 : most_bytes / files.size();
  for (const size_t file : files) {
    const uint64_t size = sizes[file];
    SampleFile some{file, {{0, size}}};
    if (!sample.all && size > share) {
      const uint64_t block = share / kBlocks;
      const uint64_t middle = (size - block) / 2;
      some.blocks = {{0, block}, {middle, middle + block}, {size - block, size}};
    }
    for (const SampleBlock& block : some.blocks) sample.bytes += block.end - block.begin;
    sample.files.push_back(std::move(some));
  }
  return sample;
}

}  // namespace parallelrun::plan
