// Reads what a manifest names, item by item (docs/job.md, "Manifests"): a text whose lines are the
// paths of files below the folder of an input. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "plan/planner.h"
#include "plan/text_reader.h"
#include "store/store.h"

namespace parallelrun::plan {

struct ManifestItem {
  std::string_view name;  // as a listing would give it; holds until the next call of Next
  uint64_t line = 0;      // of the manifest, from 1 on
};

// Why a manifest cannot have this name in it, with what to do; empty: it can. It is data, and gets
// at nothing but what lies below the folder of its input.
std::string WhyNoItem(std::string_view name);

class ManifestReader {
 public:
  // A whole line, and the items of one manifest.
  static constexpr size_t kMostLine = 65'536;  // bytes
  static constexpr uint64_t kMostItems = 10'000'000;

  // The file `name` of `store`, which outlives the reader.
  static Result<std::unique_ptr<ManifestReader>> Open(store::Store& store, const std::string& name,
                                                      std::stop_token stop);

  // What it was when it was opened.
  const store::Found& found() const { return text_->found(); }
  // The next item; nothing at the end. kInvalid, with file and line, for what is none.
  Result<std::optional<ManifestItem>> Next();
  // What is wrong with a line of it: "/data/list.txt:7: it is ...".
  Error Wrong(uint64_t line, const std::string& what) const;

 private:
  explicit ManifestReader(std::unique_ptr<TextReader> text) : text_(std::move(text)) {}
  Result<bool> ReadLine();

  const std::unique_ptr<TextReader> text_;
  std::string line_;  // without its end
  uint64_t lines_ = 0;
  uint64_t items_ = 0;
};

}  // namespace parallelrun::plan
