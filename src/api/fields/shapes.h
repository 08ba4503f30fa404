// The shapes that the lists of fields are written with. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/enums.h"
#include "api/fields/field.h"

namespace parallelrun::api::fields {

inline constexpr int64_t kMostWhole = 2147483647;
// The most characters that texts have: of what Kubernetes takes for a label or for the name of an
// object, and of all else, as a path.
inline constexpr size_t kMostName = 63;
inline constexpr size_t kMostObjectName = 253;
inline constexpr size_t kMostText = 1024;

Shape Boolean();
Shape Whole(int64_t least, int64_t most = kMostWhole);
Shape Mode();
Shape Number(int64_t least, int64_t most);
Shape Text(size_t most);     // not empty
Shape AnyText(size_t most);  // may be empty
Shape Words(std::vector<std::string> words);
Shape Size();
Shape Quantity();
Shape Path(const std::string& example = "write images, not /images");  // relative to a volume
Shape PlainName(const std::string& what);                              // of "an input", "a store"
Shape Object(FieldList fields);
Shape Open();
Shape ListOf(Shape items, size_t most, Shape::Merge merge = Shape::Merge::kUnsaid,
             size_t least = 0);
Shape MapOf(Shape items, size_t most);

template <typename E>
Shape WordsOf() {
  std::vector<std::string> words;
  for (const auto& [word, value] : EnumWords<E>()) words.emplace_back(word);
  return Words(std::move(words));
}

// A field of an object that is carried through as it is.
Field Carried(std::string name, Shape shape, std::string text);

}  // namespace parallelrun::api::fields
