// The words that stand for the enums of job.h in a job file.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "api/job.h"

namespace parallelrun::api {

// All words of an enum, in the order in which messages list them.
template <typename E>
const std::vector<std::pair<std::string_view, E>>& EnumWords();

template <>
const std::vector<std::pair<std::string_view, InputKind>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Access>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, AllowEmpty>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, ManifestFormat>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Duplicates>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, TabularFormat>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, HeaderMode>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, ColumnType>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Typing>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, BadRows>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, OutputAction>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, OutputFormat>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, SideFiles>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, OutputOrder>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Encryption>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, IfExists>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, ShortReturn>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, LoggingLevel>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Profiling>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, Disruption>>& EnumWords();
template <>
const std::vector<std::pair<std::string_view, OnOutputTaken>>& EnumWords();

template <typename E>
std::string_view EnumWord(E value) {
  for (const auto& [word, known] : EnumWords<E>()) {
    if (known == value) return word;
  }
  return "";
}

}  // namespace parallelrun::api
