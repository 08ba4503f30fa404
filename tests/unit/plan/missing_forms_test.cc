#include "plan/columns/missing_forms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "plan/columns/field_class.h"
#include "tests/support/source_folder.h"

namespace parallelrun::plan {
namespace {

// tests/python/test_settling.py holds Python's float() and pandas to the same table.
TEST(MissingFormsTest, WhatIsANumberAmongTheWordsForAMissingValue) {
  std::ifstream file(SourceFolder() + "tests/unit/data/na_values.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  ASSERT_GT(table.size(), 50U);
  for (const nlohmann::json& one : table) {
    const auto word = one.at("word").get<std::string>();
    SCOPED_TRACE(one.dump());
    const std::optional<double> number = PythonFloat(word);
    ASSERT_EQ(number.has_value(), !one.at("number").is_null());
    if (number) {
      const double expected = std::stod(one.at("number").get<std::string>());
      EXPECT_TRUE(*number == expected || (std::isnan(*number) && std::isnan(expected))) << *number;
      EXPECT_EQ(std::signbit(*number), std::signbit(expected));
    }
    const MissingWords words({word}, false);
    EXPECT_EQ(Classify(word, words), field::kMissing);
    for (const nlohmann::json& text : one.at("missing")) {
      EXPECT_EQ(Classify(text.get<std::string>(), words), field::kMissing) << text;
    }
    for (const nlohmann::json& text : one.at("there")) {
      EXPECT_NE(Classify(text.get<std::string>(), words), field::kMissing) << text;
    }
  }
}

TEST(MissingFormsTest, NoBytesAreTooOddToBeAsked) {
  for (const char* text : {"\x80", "\xC3", "7\xE2\x80", "\xF0\x9D\x9F", "\xFF\xFF\xFF\xFF\xFF"}) {
    EXPECT_FALSE(PythonFloat(text)) << testing::PrintToString(text);
  }
  EXPECT_FALSE(PythonFloat(std::string_view("7\0", 2)));
}

}  // namespace
}  // namespace parallelrun::plan
