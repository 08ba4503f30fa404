// Which bytes of an input the types of its columns are decided from: fixed by the names and sizes
// of its files, never by time or chance. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace parallelrun::plan {

// Up to so many bytes every one is read.
constexpr uint64_t kMostSampleBytes = 64'000'000;
// A listing is followed so far.
constexpr size_t kMostSampleNames = 10'000;

// A part of one file.
struct SampleBlock {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const SampleBlock&) const = default;
};

struct SampleFile {
  size_t file = 0;                  // its place among those that were listed
  std::vector<SampleBlock> blocks;  // in order; the first one begins the file
};

struct Sample {
  std::vector<SampleFile> files;
  bool all = false;    // every byte of every file
  uint64_t bytes = 0;  // of the blocks
};

// `sizes` are those of the files in the order of their names, `complete` says that these are all
// files there are.
Sample PlanSample(const std::vector<uint64_t>& sizes, bool complete, uint64_t most_bytes);

}  // namespace parallelrun::plan
