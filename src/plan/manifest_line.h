// What one line of a manifest says (docs/job.md, "Manifests"). Pure; not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

// Both hold until the next line is read.
struct ManifestEntry {
  std::string_view name;      // as a listing would give it
  std::string_view metadata;  // all columns of the line, as a JSON object; empty: it is text
  store::Pin pin = {};
};

// Why a manifest cannot have this name in it, with what to do; empty: it can. It is data, and gets
// at nothing but what lies below the folder of its input.
std::string WhyNoItem(std::string_view name);

class ManifestLines {
 public:
  explicit ManifestLines(const PlanManifest& manifest)
      : format_(manifest.format),
        column_(manifest.column),
        size_column_(manifest.size_column),
        etag_column_(manifest.etag_column),
        below_(manifest.below) {}

  // Of each line that is not blank, in their order, without its end. Nothing of a header. kInvalid,
  // without the place, for what is no item.
  Result<std::optional<ManifestEntry>> Read(std::string_view line);

 private:
  Result<std::string_view> NameIn(std::string_view text) const;
  Status ReadHeader(std::string_view line);
  Status ReadPin(std::string_view size, std::string_view etag);
  Status ReadRow(std::string_view line);
  Status ReadObject(std::string_view line);

  const api::ManifestFormat format_;
  const std::string column_;
  const std::string size_column_;
  const std::string etag_column_;
  const std::string below_;
  std::vector<std::string> header_;  // of CSV, once it was read
  size_t path_at_ = 0;               // in the header
  size_t size_at_ = 0;               // where there is such a column
  size_t etag_at_ = 0;
  std::string name_;  // of CSV and JSON lines
  std::string metadata_;
  store::Pin pin_;
};

}  // namespace parallelrun::plan
