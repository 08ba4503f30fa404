// The columns of a table, by the header line of a file. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/planner.h"
#include "plan/row_scanner.h"

namespace parallelrun::plan {

// How the rows of an input are told apart.
RowSyntax RowSyntaxOf(const PlanInput& input);
// What quotes its fields; 0: nothing does.
char QuoteOf(const PlanInput& input);

// The names of the columns that a header line holds, as pandas makes them of it. In an encoding
// other than UTF-8 a byte of 0x80 and above stands as the character of that number: whoever knows
// the encoding makes the real name of it.
std::vector<std::string> NamesOf(std::string_view header, const PlanInput& input);

// Column1 and so on, as many as `row` has fields: where files have no header.
std::vector<std::string> NumberedNames(std::string_view row, const PlanInput& input);

// Whether the rows of a file end with a delimiter behind which there is no column, as its first row
// says: it has one field more than the header, which is empty, and the header has none such.
// All rows of the file are then like it, or bad. Without this a value too many would shift a row
// whose last field is empty, and nobody would notice.
bool EndsWithDelimiter(std::string_view header, std::string_view first_row, const PlanInput& input);

// The rows that may contradict the first one: so many behind it that end within so many bytes.
inline constexpr size_t kNextRows = 100;
inline constexpr size_t kNextRowsIn = 64 * 1024;

// Whether more of them, and of the first, are as wide as the header than end with a delimiter: then
// that of the first is a stray one, and it is the bad row. `front`: the text from the first row on,
// of at least kNextRowsIn + 1 bytes, or all of it. The worker asks the same of files in groups
// (row_shape.py).
bool FirstRowIsStray(std::string_view header, std::string_view front, const PlanInput& input);

// Whether a name holds bytes that stand as characters.
bool IsRawName(std::string_view name, const PlanInput& input);

// How `names` differ from those of the table, whatever their order, for people: `has no column
// "price"`; empty when they are the same.
std::string DifferenceOfColumns(const std::vector<std::string>& table,
                                const std::vector<std::string>& names);

// Of a file whose columns differ so.
Error OtherColumns(const std::string& path, const std::string& difference);

}  // namespace parallelrun::plan
