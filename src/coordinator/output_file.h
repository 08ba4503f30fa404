// What a published output is made of, and whether the file that is there now still is that
// (docs/ledger.md, "Publishing"). Blocking; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"

namespace parallelrun {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::string_view bytes);
  Digest Finish();  // once

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// How the file at `path` differs from what was published, in words that follow its name; "": not at
// all. Reads the whole file; `step` is called after each MiB of it.
Result<std::string> DamageOf(
    const Files& files, const std::string& path, const Published& published,
    const std::function<void()>& step = [] {});

}  // namespace parallelrun
