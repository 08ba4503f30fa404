// From what the fields of a column are to the column's type, and the names of columns. Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/data.h"
#include "plan/columns/field_class.h"

namespace parallelrun::plan {

// Of the name of a column in a message: bytes.
inline constexpr size_t kMostColumnName = 64;

// Where a field is, for people.
struct FieldPlace {
  std::string file;     // as it is told
  uint64_t line = 0;    // from 1; 0: not known
  uint64_t offset = 0;  // of its row in the file, bytes
};

// What a column holds, with the first field of each kind.
class SeenColumn {
 public:
  FieldBits bits() const { return bits_; }
  // Nothing that is seen from now on changes its type.
  bool settled() const { return (bits_ & (field::kWord | field::kLost)) != 0; }

  // `place` is called where it is the first of its kind.
  template <typename Place>
  void Add(FieldBits bit, std::string_view text, Place place) {
    if ((bits_ & bit) != 0) return;
    bits_ |= bit;
    Keep(bit, text, place());
  }
  // What was seen behind it.
  void Append(const SeenColumn& later);

  struct First {
    FieldBits bit = 0;
    std::string text;  // cut off
    FieldPlace place;
  };
  // Of a bit that is set.
  const First& FirstOf(FieldBits bit) const;

 private:
  void Keep(FieldBits bit, std::string_view text, FieldPlace place);

  FieldBits bits_ = 0;
  std::vector<First> first_;  // one a bit: a table may have many columns, and most of them have few
};

struct DecidedType {
  api::ColumnType type = api::ColumnType::kText;
  bool missing = false;      // boolean only: values may be missing
  FieldBits because_of = 0;  // what makes it another type than its other fields; 0: nothing does
  bool operator==(const DecidedType&) const = default;
};

// `all`: every field of the column was seen.
DecidedType DecideType(FieldBits bits, bool all);

// Why, for people: `"00239" has a leading zero, in/a.csv:17`; empty where nothing needs saying.
std::string ReasonOf(const DecidedType& type, const SeenColumn& seen);

// The names of the columns as pandas makes them of a header's fields: an empty one is `Unnamed: 2`
// by its position from 0, one that is there already is `a.1`.
std::vector<std::string> ColumnNames(std::vector<std::string> header);

}  // namespace parallelrun::plan
