// The table of fields against the CustomResourceDefinition.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "api/document.h"
#include "api/fields/schema.h"
#include "tests/support/source_folder.h"

namespace parallelrun {
namespace {

using nlohmann::json;

json CommittedSchema() {
  std::ifstream file(SourceFolder() + "crds/parallelrunjobs.parallelrun.dev.yaml");
  std::stringstream text;
  text << file.rdbuf();
  return ReadForeignDocument(text.str())
      .job.ToJson()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

// The order of rules and of required fields means nothing.
json Sorted(json value) {
  for (json& below : value) {
    if (below.is_structured()) below = Sorted(below);
  }
  if (value.is_object()) {
    for (const char* list : {"x-kubernetes-validations", "required"}) {
      if (value.contains(list) && value[list].is_array()) {
        std::sort(value[list].begin(), value[list].end());
      }
    }
  }
  return value;
}

void ExpectSame(const json& table, const json& committed, const std::string& path) {
  if (table == committed) return;
  if (table.is_object() && committed.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : table.items()) keys.insert(key);
    for (const auto& [key, value] : committed.items()) keys.insert(key);
    for (const std::string& key : keys) {
      ExpectSame(table.value(key, json()), committed.value(key, json()), path + "." + key);
    }
    return;
  }
  ADD_FAILURE() << path << "\n  table: " << table.dump(1) << "\n  file:  " << committed.dump(1);
}

TEST(Fields, AreTheDefinitionsSpec) {
  ExpectSame(Sorted(json(SpecSchema())), Sorted(CommittedSchema()["properties"]["spec"]), "spec");
}

std::multiset<std::string> Clauses(const std::string& text) {
  static const std::regex cut(R"( && | \|\| | : |[()])");
  return {std::sregex_token_iterator(text.begin(), text.end(), cut, -1),
          std::sregex_token_iterator()};
}

TEST(Fields, AreInTheDefinitionsRulesOfTheJob) {
  const json rules = CommittedSchema()["x-kubernetes-validations"];
  const json table = JobRules();
  ASSERT_EQ(rules.size(), table.size() + 2);
  for (size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(Clauses(table[i]["rule"]), Clauses(rules[i + 2]["rule"])) << table[i]["rule"];
    EXPECT_EQ(table[i].value("message", ""), rules[i + 2].value("message", ""));
  }
}

}  // namespace
}  // namespace parallelrun
