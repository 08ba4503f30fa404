// The manifest of an input.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::api::fields {

const FieldList& ManifestFields() {
  static const FieldList fields = {
      Bound("path", &Manifest::path, Path(),
            "The file, relative to the volume of the input: text with one path a line, each "
            "relative to the input's path.")
          .Required("write where the manifest lies on the volume of the input"),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
