// A word for a missing value that is a number stands for other texts too: pandas asks Python's
// float() and int(), and adds how they write it. So "1_000" stands for "1000" and "1000.0". What is
// a number must be the same here and in the worker, or a column's type is decided by values that
// pandas then takes for missing: tests/unit/data/na_values.json holds both to it. Pure,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::plan {

// What float() makes of a text of UTF-8; nothing where it is no number.
std::optional<double> PythonFloat(std::string_view text);

// The other texts that `word` stands for; "" is none of them.
std::vector<std::string> OtherFormsOf(std::string_view word);

}  // namespace parallelrun::plan
