// The types of an input's columns as JSON: what the ledger keeps of them (docs/ledger.md, "types"),
// and what is made of that for the worker (docs/worker-protocol.md, "Work") and for people. Pure,
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/columns/column_types.h"
#include "plan/planner.h"

namespace parallelrun::plan {

struct TypedColumn {
  std::string name;
  bool raw = false;  // see NamesOf
  DecidedType type;
  std::string why;  // for people; may be empty
};

struct TypedTable {
  bool all = false;              // every byte was read
  bool no_rows = false;          // there are columns and not one row: their types say nothing
  std::string from;              // for people: what was read, where that is not everything
  std::string dialect;           // for people: what DialectAdvice says
  std::string delimiter_at_end;  // for people: the first file whose rows end with one, if any
  std::vector<TypedColumn> columns;
};

std::string ToJson(const TypedTable& table);
// kCorrupt when `json` is not what ToJson wrote.
Result<TypedTable> TypesFromJson(std::string_view json);

// The types that people wrote (`input.tabular.dtypes`) name columns of the table; kInvalid else,
// with the mend.
Status CheckWrittenTypes(const TypedTable& table, const PlanInput& input);

// What the format of each Work says of the columns: members of a JSON object, without braces.
std::string FormatMembers(const TypedTable& table, const PlanInput& input);

// Asks about a table that looks wrong though it can be read: by its dialect, or a header that may
// be a row of the data, since every column of numbers has a number for its name. Empty: nothing to
// ask.
std::string AskAboutHeader(const TypedTable& table, const PlanInput& input);

// "columns: id integer, zip text ("00239" has a leading zero, in/a.csv:17)", cut off behind about
// `most` bytes; "columns: id, zip; there is no row" where only their names are known.
std::string ColumnsLine(const TypedTable& table, const PlanInput& input, size_t most);

}  // namespace parallelrun::plan
