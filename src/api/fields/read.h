// Reads a map of a job file by a list of fields. Internal to src/api. Pure.
#pragma once

#include <string>

#include "api/fields.h"
#include "api/fields/field.h"
#include "api/parse.h"

namespace parallelrun::api::fields {

// One field of `map`: missed where it is needed, or read into `owner`. The value, if it is there.
std::optional<Value> ReadField(Fields& map, const Field& field, void* owner, Target target);

// All of them, and what has no meaning beside another.
void ReadFields(Fields& map, const FieldList& list, void* owner, Target target);

// The same for an object that has no other fields.
void ReadObject(const Value& map, const FieldList& list, void* owner, Target target);

// An object that is carried through as it is: only looks whether it has this shape.
void CheckShape(const Value& value, const Shape& shape);

// A name that placeholders and messages give, of `what`: "an input", "a store".
void ReadPlainName(const Value& value, const char* what, std::string& out);

}  // namespace parallelrun::api::fields
