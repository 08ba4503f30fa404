#include "api/fields/shapes.h"

#include <nlohmann/json.hpp>

namespace parallelrun::api::fields {

using Kind = Shape::Kind;

Shape Boolean() { return {.kind = Kind::kBoolean}; }

Shape Whole(int64_t least, int64_t most) {
  return {.kind = Kind::kWhole, .least = least, .most = most};
}

Shape Mode() { return {.kind = Kind::kMode, .most = 0777}; }

Shape Number(int64_t least, int64_t most) {
  return {.kind = Kind::kNumber, .least = least, .most = most};
}

Shape Text(size_t most) {
  return {.kind = Kind::kText, .least = 1, .most = static_cast<int64_t>(most)};
}

Shape AnyText(size_t most) { return {.kind = Kind::kText, .most = static_cast<int64_t>(most)}; }

Shape Words(std::vector<std::string> words) {
  return {.kind = Kind::kWord, .words = std::move(words)};
}

Shape Size() {
  return Shape{.kind = Kind::kSize, .most = 64}
      .With({R"(type(self) == int ? self >= 0 : self.matches("^[0-9]+([kKmMgG][bB])?$"))",
             "is not a size: write a number, or one with KB, MB or GB; for 10Mi write 10MB (powers "
             "of "
             "1024)"})
      .With({R"(type(self) == int ? self != 0 : !self.matches("^0+([kKmMgG][bB])?$"))",
             "is too small: write at least 1"});
}

Shape Quantity() {
  return Shape{.kind = Kind::kQuantity, .most = 64}.With(
      {R"(type(self) == int ? self >= 0 : isQuantity(self) && )"
       R"(quantity(self).compareTo(quantity("0")) >= 0)",
       "is not a quantity: write it as in 500m, 2, 512Mi or 4Gi"});
}

Shape Path(const std::string& example) {
  return Shape{.kind = Kind::kPath, .most = 1024}
      .With({R"(!self.startsWith("/"))",
             "is absolute, but paths are relative to the volume: " + example})
      .With({R"cel(!self.matches("(^|/)[.][.](/|$)"))cel",
             R"(leaves the volume with "..": write the path without it)"})
      .With({R"(!self.matches("^[A-Za-z][-A-Za-z0-9+.]+://"))",
             "is a URL, but paths are relative to the volume: name it as one of stores"})
      .With({R"(!self.matches("[\\x00-\\x1f]"))", "holds a control character: remove it"});
}

Shape PlainName(const std::string& what) {
  return Text(63).With({R"(self.matches("^[A-Za-z_][-A-Za-z0-9_]*$"))",
                        "cannot name " + what +
                            R"(: write letters, digits, "_" and "-", a letter first, at most 63)"});
}

Shape Object(FieldList fields) {
  return {.kind = Kind::kObject, .fields = std::make_shared<FieldList>(std::move(fields))};
}

Shape Open() { return {.kind = Kind::kOpen}; }

Shape ListOf(Shape items, size_t most, Shape::Merge merge, size_t least) {
  return {.kind = Kind::kList,
          .least = static_cast<int64_t>(least),
          .most = static_cast<int64_t>(most),
          .items = std::make_shared<Shape>(std::move(items)),
          .merge = merge};
}

Shape MapOf(Shape items, size_t most) {
  return {.kind = Kind::kMap,
          .most = static_cast<int64_t>(most),
          .items = std::make_shared<Shape>(std::move(items))};
}

Field Carried(std::string name, Shape shape, std::string text) {
  return {.name = std::move(name), .shape = std::move(shape), .text = std::move(text)};
}

}  // namespace parallelrun::api::fields
