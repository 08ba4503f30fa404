#include "plan/columns/column_types.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <utility>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

constexpr size_t kMostText = 64;  // bytes of a value that are kept

FieldBits LowestOf(FieldBits bits) { return static_cast<FieldBits>(bits & (0U - bits)); }

std::string_view WhatIs(FieldBits bit) {
  switch (bit) {
    case field::kMissing: return "is missing";
    case field::kInteger:
    case field::kBig: return "is an integer";
    case field::kFraction: return "is a number";
    case field::kBoolean: return "is a boolean";
    case field::kLeadingZero: return "has a leading zero";
    case field::kPlus: return "begins with a plus";
    case field::kBeyond: return "is beyond 64 bits";
    case field::kNoDouble:
    case field::kOddExponent: return "is beyond a double";
    default: return "is not a number";
  }
}

}  // namespace

void SeenColumn::Keep(FieldBits bit, std::string_view text, FieldPlace place) {
  first_.push_back({bit, std::string(text.substr(0, kMostText)), std::move(place)});
}

void SeenColumn::Append(const SeenColumn& later) {
  for (const First& first : later.first_) {
    if ((bits_ & first.bit) == 0) first_.push_back(first);
  }
  bits_ |= later.bits_;
}

const SeenColumn::First& SeenColumn::FirstOf(FieldBits bit) const {
  assert((bits_ & bit) != 0);
  return *std::find_if(first_.begin(), first_.end(),
                       [bit](const First& first) { return first.bit == bit; });
}

DecidedType DecideType(FieldBits bits, bool all) {
  using field::kBig, field::kBoolean, field::kFraction, field::kInteger, field::kLost,
      field::kMissing, field::kWord;
  constexpr FieldBits kNumeric = kInteger | kBig | kFraction;
  const auto has = [bits](FieldBits some) { return (bits & some) != 0; };
  if (has(kLost)) return {api::ColumnType::kText, false, LowestOf(bits & kLost)};
  if (has(kWord)) {
    return {api::ColumnType::kText, false, has(kNumeric | kBoolean) ? kWord : FieldBits{0}};
  }
  if (has(kBoolean)) {
    if (has(kNumeric)) return {api::ColumnType::kText, false, kBoolean};
    return {api::ColumnType::kBoolean, has(kMissing), 0};
  }
  // A double beside it would lose digits.
  if (has(kBig) && has(kMissing | kFraction)) return {api::ColumnType::kText, false, kBig};
  if (has(kFraction))
    return {api::ColumnType::kNumber, false, has(kInteger) ? kFraction : FieldBits{0}};
  if (has(kInteger | kBig)) {
    if (has(kMissing)) return {api::ColumnType::kNumber, false, kMissing};
    return {api::ColumnType::kInteger, false, 0};
  }
  // Nothing but missing values says nothing of those that were not seen.
  return {all ? api::ColumnType::kNumber : api::ColumnType::kText, false, 0};
}

std::string ReasonOf(const DecidedType& type, const SeenColumn& seen) {
  if (type.because_of == 0) return "";
  const SeenColumn::First& first = seen.FirstOf(type.because_of);
  const std::string place =
      first.place.line > 0
          ? fmt::format("{}:{}", Printable(first.place.file, 4096), first.place.line)
          : fmt::format("{}, byte {}", Printable(first.place.file, 4096), first.place.offset);
  const std::string_view beside =
      type.because_of == field::kBig ? ", which a number would round" : "";
  // In quotes, for a blank at its front or end is often why.
  const std::string text =
      first.text.empty() ? "an empty field" : '"' + Printable(first.text, kMostText) + '"';
  return fmt::format("{} {}{}, {}", text, WhatIs(type.because_of), beside, place);
}

std::vector<std::string> ColumnNames(std::vector<std::string> header) {
  std::vector<std::string> names = header;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = fmt::format("Unnamed: {}", i);
  }
  std::vector<size_t> order;  // empty ones are numbered after the real ones
  for (const bool empty : {false, true}) {
    for (size_t i = 0; i < names.size(); ++i) {
      if (header[i].empty() == empty) order.push_back(i);
    }
  }
  std::multiset<std::string> taken(names.begin(), names.end());
  std::map<std::string, uint64_t> counts;
  for (const size_t i : order) {
    const std::string old = names[i];
    std::string name = old;
    uint64_t number = counts[name];
    while (number > 0) {
      counts[old] = number + 1;
      name = fmt::format("{}.{}", old, number);
      number = taken.contains(name) ? number + 1 : counts[name];
    }
    taken.erase(taken.find(old));
    taken.insert(name);
    names[i] = name;
    counts[name] = number + 1;
  }
  return names;
}

}  // namespace parallelrun::plan
