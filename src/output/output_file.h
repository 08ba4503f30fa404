// What a published output is made of, and whether the file that is there now still is that
// (docs/ledger.md, "Publishing"). Blocking; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "job/job_state.h"

namespace parallelrun::output {

class Sha256 {
 public:
  using Digest = std::array<uint8_t, 32>;

  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::string_view bytes);
  Digest Finish();  // and begins anew

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// How bytes differ from what was published, in words that follow their name; "": not at all. Reads
// all of them, up to a MiB at a time; `step` is called after each.
using ReadBytes = std::function<Result<size_t>(uint64_t offset, std::span<char> to)>;
Result<std::string> DamageOf(
    uint64_t size, const ReadBytes& read, const job::Published& published,
    const std::function<void()>& step = [] {});

// The same of the file at `path`.
Result<std::string> DamageOf(
    const Files& files, const std::string& path, const job::Published& published,
    const std::function<void()>& step = [] {});

}  // namespace parallelrun::output
