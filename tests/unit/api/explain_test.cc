#include "api/fields/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/walk.h"

namespace parallelrun::api {
namespace {

using ::testing::HasSubstr;

std::string Told(std::string_view path) {
  const auto told = fields::Explain(path);
  return told.ok() ? *told : "error: " + told.error().message;
}

TEST(Explain, SaysWhatAFieldIsAndDoes) {
  EXPECT_EQ(Told("spec.errorThreshold"),
            "spec.errorThreshold: integer, at least -1\n\n"
            "Items that may fail; -1, if not given, for any number. Items for which run() returned "
            "no element\n"
            "count only where this is 0 or more. May change while the job runs.\n\n"
            "default: none\n"
            "change:  may change while the job runs\n"
            "used by: the coordinator and the nodes\n");
}

TEST(Explain, DefaultsAndBoundsAreThoseOfTheFields) {
  EXPECT_THAT(Told("taskOverheadTimeoutSeconds"), HasSubstr(": integer, from 1 to 259,200\n"));
  EXPECT_THAT(Told("taskOverheadTimeoutSeconds"), HasSubstr("\ndefault: 600\n"));
  EXPECT_THAT(Told("entryScript"), HasSubstr("\ndefault: required\n"));
  EXPECT_THAT(Told("processCountPerNode"), HasSubstr("\ndefault: the node's GPUs, else"));
  EXPECT_THAT(Told("output.fileName"), HasSubstr("\ndefault: parallel_run_step.txt\n"));
  EXPECT_THAT(Told("suspend"), HasSubstr("\nused by: the operator, so only in a cluster\n"));
  EXPECT_THAT(Told("resources"), HasSubstr("\nchange:  may change while the job is suspended\n"));
}

TEST(Explain, FindsAFieldWithAnIndexAndWithoutSpec) {
  EXPECT_EQ(Told("spec.inputs[0].tabular.skipRows"), Told("inputs.tabular.skipRows"));
  EXPECT_THAT(Told("inputs.tabular.skipRows"),
              HasSubstr("spec.inputs[].tabular.skipRows: integer"));
  EXPECT_THAT(Told("inputs.tabular.skipRows"),
              HasSubstr("\nnote:    has no meaning for Parquet: remove it\n"));
}

TEST(Explain, ListsWhatLiesBelow) {
  EXPECT_THAT(Told("volumes"), HasSubstr("\nfields:\n  name "));
  EXPECT_THAT(Told("spec"), HasSubstr("\n  nodeCount "));
  EXPECT_EQ(Told(""), Told("spec"));
}

TEST(Explain, NamesTheFieldThatMayBeMeant) {
  EXPECT_EQ(Told("spec.errorTreshold"),
            "error: there is no field \"spec.errorTreshold\": did you mean spec.errorThreshold?");
  EXPECT_THAT(Told("skipRows"), HasSubstr("did you mean spec.inputs.tabular.skipRows?"));
  EXPECT_THAT(Told("spec.xyz"), HasSubstr("`parallelrun explain spec` lists them"));
  EXPECT_THAT(Told("[[.]\x1b"), HasSubstr("there is no field"));
}

// Whoever writes a new field sees here what people are told of it.
TEST(Explain, EachFieldHasATypeATextAndSomebodyWhoUsesIt) {
  fields::EachField(
      [](const std::string& path, const fields::Field& field, const fields::Field& top) {
        EXPECT_FALSE(fields::TypeText(field.shape).empty()) << path;
        EXPECT_FALSE(field.text.empty()) << path;
        EXPECT_NE(top.acts, 0) << path;
        EXPECT_EQ(Told(path).find("error:"), std::string::npos) << path;
      });
}

}  // namespace
}  // namespace parallelrun::api
