// Reads what a manifest names, line by line (docs/job.md, "Manifests"). Blocking I/O; not
// thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/manifest_line.h"
#include "plan/planner.h"
#include "plan/text_reader.h"
#include "store/store.h"

namespace parallelrun::plan {

struct ManifestItem : ManifestEntry {
  uint64_t line = 0;  // of the manifest, from 1 on
};

class ManifestReader {
 public:
  // A whole line, and the items of one manifest.
  static constexpr size_t kMostLine = 65'536;  // bytes
  static constexpr uint64_t kMostItems = 10'000'000;

  // The file `name` of `store`, which outlives the reader.
  static Result<std::unique_ptr<ManifestReader>> Open(store::Store& store, const std::string& name,
                                                      const PlanManifest& manifest,
                                                      std::stop_token stop);

  // What it was when it was opened.
  const store::Found& found() const { return text_->found(); }
  // The next item; nothing at the end. kInvalid, with file and line, for what is none.
  Result<std::optional<ManifestItem>> Next();
  // What is wrong with a line of it: "/data/list.txt:7: it is ...".
  Error Wrong(uint64_t line, const std::string& what) const;

 private:
  ManifestReader(std::unique_ptr<TextReader> text, const PlanManifest& manifest)
      : text_(std::move(text)), entries_(manifest) {}
  Result<bool> ReadLine();

  const std::unique_ptr<TextReader> text_;
  ManifestLines entries_;
  std::string line_;  // without its end
  uint64_t lines_ = 0;
  uint64_t items_ = 0;
};

}  // namespace parallelrun::plan
