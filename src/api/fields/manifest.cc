// The manifest of an input.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::api::fields {
namespace {

const Condition kHasColumns = {
    R"((has(self.format) && self.format != "Text"))",
    "has no meaning in a text, whose lines are paths: remove it, or write format: CSV or JSONLines",
    [](const void* manifest) {
      return static_cast<const Manifest*>(manifest)->format != ManifestFormat::kText;
    },
    "has no meaning in a text, whose lines are paths",
    "remove it, or write format: CSV or JSONLines"};

}  // namespace

const FieldList& ManifestFields() {
  static const FieldList fields = {
      Bound(
          "path", &Manifest::path, Path(),
          "The file, relative to the volume of the input or below its store's URL. Each line names "
          "one file, relative to the input's path.")
          .Required("write where the manifest lies in the volume or store of the input"),
      Bound("format", &Manifest::format, WordsOf<ManifestFormat>(),
            "What a line is: a path (Text, if not given), a row below a header (CSV), or an object "
            "(JSONLines).")
          .UnlessInitial(),
      Bound("column", &Manifest::column, Text(kMostText),
            "The column that holds the path, path if not given. All of a line's columns reach "
            "run() as the context's item_metadata.")
          .UnlessInitial()
          .On({&kHasColumns}),
      Bound("sizeColumn", &Manifest::size_column, Text(kMostText),
            "The column that holds each file's size in bytes: one of another size fails its "
            "mini-batch. Nothing is compared if not given.")
          .On({&kHasColumns}),
      Bound("etagColumn", &Manifest::etag_column, Text(kMostText),
            "In a store, the column that holds each object's ETag: one with another fails its "
            "mini-batch. Nothing is compared if not given.")
          .On({&kHasColumns}),
      Bound("duplicates", &Manifest::duplicates, WordsOf<Duplicates>(),
            "A file in several lines ends the job (Fail, if not given), or is an item for each of "
            "them (Keep).")
          .UnlessInitial(),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
