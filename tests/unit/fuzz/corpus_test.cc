// Every fuzz target reads every input that is kept for it in tests/fuzz/corpus: what was found once
// stays mended, and that takes neither clang nor time.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/source_folder.h"

namespace {

void ReadCorpus(const std::string& name, int (*target)(const uint8_t* data, size_t size)) {
  const std::string folder = parallelrun::SourceFolder() + "tests/fuzz/corpus/" + name;
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::fprintf(stderr, "%s\n", entry.path().c_str());  // the last one, if the target aborts
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    ASSERT_TRUE(file.is_open() && !file.bad());
    EXPECT_EQ(target(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), 0);
    ++inputs;
  }
  EXPECT_GT(inputs, 0u) << folder << " is empty";
}

}  // namespace

// One for each source of tests/fuzz, whose LLVMFuzzerTestOneInput has this name here.
#define TARGET(name)                                            \
  extern "C" int fuzz_##name(const uint8_t* data, size_t size); \
  TEST(FuzzCorpus, name) { ReadCorpus(#name, fuzz_##name); }
#include "fuzz_targets.inc"
