#include "api/fields/walk.h"

#include "api/fields/sections.h"

namespace parallelrun::api::fields {
namespace {

void Walk(const FieldList& fields, const std::string& path, const Field* top,
          const VisitField& visit) {
  for (const Field& field : fields) {
    const std::string here = path + "." + field.name;
    const Field& above = top != nullptr ? *top : field;
    visit(here, field, above);
    const bool list = field.shape.kind == Shape::Kind::kList;
    const Shape& shape = list ? *field.shape.items : field.shape;
    if (shape.fields) Walk(*shape.fields, list ? here + "[]" : here, &above, visit);
  }
}

}  // namespace

void EachField(const VisitField& visit) { Walk(SpecFields(), "spec", nullptr, visit); }

}  // namespace parallelrun::api::fields
