// The fields of the spec as one list of paths. Pure; any thread.
#pragma once

#include <functional>
#include <string>

#include "api/fields/field.h"

namespace parallelrun::api::fields {

// `top` is the field of spec that it lies in, which is itself for those.
using VisitField =
    std::function<void(const std::string& path, const Field& field, const Field& top)>;

// Every field, each before what lies below it, as "spec.inputs[].tabular.format".
void EachField(const VisitField& visit);

}  // namespace parallelrun::api::fields
