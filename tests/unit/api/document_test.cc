#include "api/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace parallelrun::api {
namespace {

// A ParallelRunJob whose spec is the given text.
Document ReadSpec(const std::string& text) {
  return ReadDocument("kind: ParallelRunJob\nspec:\n" + text);
}

std::string FirstProblem(const Document& document) {
  return document.problems.empty() ? "" : FormatProblem(document.problems[0], "job.yaml");
}

// What kubectl 1.32 makes of each (kubectl annotate --local -o json).
TEST(Document, ReadsOddScalarsAsTheApiServerDoes) {
  const struct {
    const char* yaml;
    const char* json;
  } table[] = {
      {"yes", "true"},
      {"no", "false"},
      {"on", "true"},
      {"Off", "false"},
      {"OFF", "false"},
      {"y", "true"},
      {"N", "false"},
      {"YES", "true"},
      {"TRUE", "true"},
      {"tRUE", "\"tRUE\""},
      {"~", "null"},
      {"", "null"},
      {"Null", "null"},
      {"nULL", "\"nULL\""},
      {"010", "8"},
      {"0o10", "8"},
      {"0O10", "8"},
      {"0o8", "\"0o8\""},
      {"0777", "511"},
      {"+010", "8"},
      {"-010", "-8"},
      {"-0o7", "-7"},
      {"0_10", "8"},
      {"00", "0"},
      {"08", "8"},
      {"09.5", "9.5"},
      {"1e3", "1000"},
      {"1E3", "1000"},
      {"1e+3", "1000"},
      {"1e-3", "0.001"},
      {"1.5e3", "1500"},
      {"1.0", "1"},
      {"1.", "1"},
      {"5.", "5"},
      {".5", "0.5"},
      {"+.5", "0.5"},
      {"-.5e1", "-5"},
      {".5_0", "0.5"},
      {"._5", "\"._5\""},
      {".e1", "\".e1\""},
      {"+1", "1"},
      {"-0", "0"},
      {"-0.0", "0"},
      {"0x1F", "31"},
      {"-0x1f", "-31"},
      {"0x_1F", "31"},
      {"0x", "\"0x\""},
      {"0x1p4", "\"0x1p4\""},
      {"0b101", "5"},
      {"-0b11", "-3"},
      {"0b2", "\"0b2\""},
      {"1_000", "1000"},
      {"1__0", "10"},
      {"1_", "1"},
      {"_1", "\"_1\""},
      {"+_1", "1"},
      {"1_0.5", "10.5"},
      {"12e", "\"12e\""},
      {"1ee3", "\"1ee3\""},
      {"1d", "\"1d\""},
      {"1:30", "\"1:30\""},
      {"190:20:30", "\"190:20:30\""},
      {"2001-01-01", "\"2001-01-01\""},
      {"2001-01-01T00:00:00Z", "\"2001-01-01T00:00:00Z\""},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"9223372036854775808", "9223372036854775808.0"},
      {"1e20", "1e20"},
      {"1e400", "\"1e400\""},
      {"1e-400", "0"},
      {"0.1", "0.1"},
      {"10Mi", "\"10Mi\""},
      {"1.2.3", "\"1.2.3\""},
      {".", "\".\""},
      {"+", "\"+\""},
      {"-.", "\"-.\""},
      {"inf", "\"inf\""},
      {"NaN", "\"NaN\""},
      {"'010'", "\"010\""},
      {"\"yes\"", "\"yes\""},
      {"\"1e3\"", "\"1e3\""},
      {"!!str 10", "\"10\""},
      {"!!int \"10\"", "10"},
      {"!!bool \"yes\"", "true"},
      {"!!float 1e3", "1000"},
      {"! 12", "\"12\""},
      {"{010: a, yes: b, 1.5: c, 0x1F: d, \"on\": e}",
       R"({"8": "a", "true": "b", "1.5": "c", "31": "d", "on": "e"})"},
      {"{1e3: a}", R"({"1000": "a"})"},
  };
  for (const auto& [yaml, expected] : table) {
    const Document document = ReadSpec("  v: " + std::string(yaml) + "\n");
    ASSERT_TRUE(document.problems.empty()) << yaml << ": " << FirstProblem(document);
    const nlohmann::json spec = document.job.ToJson()["spec"];
    EXPECT_EQ(spec["v"], nlohmann::json::parse(expected)) << yaml << " is " << spec["v"].dump();
    EXPECT_EQ(spec["v"].type() == nlohmann::json::value_t::number_float,
              nlohmann::json::parse(expected).is_number_float())
        << yaml;
  }
}

TEST(Document, RefusesWhatJsonCannotCarry) {
  for (const char* yaml : {".inf", "-.Inf", "+.INF", ".nan", ".NaN"}) {
    EXPECT_NE(FirstProblem(ReadSpec("  v: " + std::string(yaml))).find("not a finite number"),
              std::string::npos)
        << yaml;
  }
  for (const char* yaml :
       {"!!int 1.5", "!!bool maybe", "!mine x", "!!binary aGk=", "!mine {a: 1}"}) {
    EXPECT_NE(FirstProblem(ReadSpec("  v: " + std::string(yaml))).find("tag"), std::string::npos)
        << yaml;
  }
  EXPECT_NE(FirstProblem(ReadSpec("  {null: a}")).find("a key must be text"), std::string::npos);
  EXPECT_NE(FirstProblem(ReadSpec("  ? {a: 1}\n  : b\n")).find("a key must be text"),
            std::string::npos);
}

TEST(Document, NamesBothLinesOfADuplicateKey) {
  const Document document = ReadSpec("  nodeCount: 1\n  a: {b: 1, b: 2}\n  nodeCount: 2\n");
  ASSERT_EQ(document.problems.size(), 2U);
  EXPECT_EQ(FormatProblem(document.problems[0], "job.yaml"),
            "job.yaml:4: spec.a.b: given twice, in line 4 and in line 4: keep one of them");
  EXPECT_EQ(FormatProblem(document.problems[1], "job.yaml"),
            "job.yaml:5: spec.nodeCount: given twice, in line 3 and in line 5: keep one of them");
  // Two spellings of one key are one key to the API server.
  EXPECT_FALSE(ReadSpec("  a: {8: x, 010: y}").problems.empty());
}

TEST(Document, KnowsLineAndColumn) {
  const Document document = ReadSpec("  inputs:\n    - name: a\n      files: {volume: data}\n");
  const Position volume = Locate(document.job, "spec.inputs[0].files.volume");
  EXPECT_EQ(volume.line, 5);
  EXPECT_EQ(volume.column, 15);
  // Of what is missing: the deepest parent.
  EXPECT_EQ(Locate(document.job, "spec.inputs[0].files.path.x").line, 5);
  EXPECT_EQ(Locate(document.job, "spec.inputs[7].files").line, 3);
}

TEST(Document, TakesTheOneJobOfSeveralDocuments) {
  const Document document = ReadDocument(
      "kind: ConfigMap\nmetadata: {name: code}\n---\n---\nkind: ParallelRunJob\nspec: {a: 1}\n"
      "---\nkind: Secret\n");
  ASSERT_TRUE(document.problems.empty()) << FirstProblem(document);
  EXPECT_EQ(document.job.ToJson()["spec"]["a"], 1);
  ASSERT_EQ(document.notes.size(), 2U);
  EXPECT_EQ(document.notes[0],
            "line 1: ConfigMap code is passed over: only the ParallelRunJob is read here");

  EXPECT_NE(FirstProblem(ReadDocument("kind: Pod\nmetadata: {name: x}")).find("it holds Pod x"),
            std::string::npos);
  EXPECT_NE(FirstProblem(ReadDocument("")).find("no ParallelRunJob"), std::string::npos);
  EXPECT_EQ(FirstProblem(ReadDocument("kind: ParallelRunJob\n---\nkind: ParallelRunJob\n")),
            "job.yaml:3: 2 ParallelRunJobs in one file (lines 1 and 3): put each into a file of "
            "its own");
}

TEST(Document, OpensAList) {
  const std::string list =
      "apiVersion: v1\nkind: List\nitems:\n"
      "  - {apiVersion: v1, kind: ConfigMap, metadata: {name: code}}\n"
      "  - {apiVersion: parallelrun.dev/v1alpha1, kind: ParallelRunJob, metadata: {name: one}}\n";
  const Document document = ReadDocument(list);
  EXPECT_TRUE(document.problems.empty());
  EXPECT_EQ(document.job.ToJson()["metadata"]["name"], "one");
  ASSERT_EQ(document.notes.size(), 1U);
  EXPECT_NE(document.notes[0].find("line 4: ConfigMap code"), std::string::npos);
  const Document two =
      ReadDocument(list + "  - {apiVersion: parallelrun.dev/v1alpha1, kind: ParallelRunJob}\n");
  ASSERT_EQ(two.problems.size(), 1U);
  EXPECT_NE(two.problems[0].what.find("2 ParallelRunJobs"), std::string::npos);
  EXPECT_TRUE(HasErrors(ReadDocument("apiVersion: v1\nkind: List\nitems: []\n").problems));
}

TEST(Document, ReadsJson) {
  const Document document = ReadDocument(
      "{\n\t\"kind\": \"ParallelRunJob\",\n\t\"spec\": {\"a\": \"\\ud83d\\ude00 \\\\ud83d \\/\", "
      "\"b\": [1, 2.5, null, true]}\n}\n");
  ASSERT_TRUE(document.problems.empty()) << FirstProblem(document);
  EXPECT_EQ(document.job.ToJson()["spec"],
            nlohmann::json::parse(R"({"a": "😀 \\ud83d /", "b": [1, 2.5, null, true]})"));
}

TEST(Document, FollowsAliasesWithinBounds) {
  const Document document = ReadSpec("  a: &x {p: 1}\n  b: [*x, *x]\n");
  ASSERT_TRUE(document.problems.empty()) << FirstProblem(document);
  EXPECT_EQ(document.job.ToJson()["spec"]["b"], nlohmann::json::parse(R"([{"p": 1}, {"p": 1}])"));
  EXPECT_NE(FirstProblem(ReadSpec("  a: &x {p: 1}\n  b: {<<: *x}\n")).find("merge keys"),
            std::string::npos);
  EXPECT_NE(FirstProblem(ReadSpec("  a: &x [*x]\n")).find("alias"), std::string::npos);

  std::string bomb = "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    bomb += "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) bomb += (k > 0 ? ", " : "") + last;
    bomb += "]\n";
  }
  EXPECT_NE(FirstProblem(ReadSpec(bomb)).find("more than 100000 values"), std::string::npos);

  std::string tower = "  a0: &a0 [x]\n";
  for (int i = 1; i < 70; ++i) {
    tower += "  a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
             std::to_string(i - 1) + "]\n";
  }
  EXPECT_NE(FirstProblem(ReadSpec(tower)).find("deeper than 64"), std::string::npos);
}

TEST(Document, BoundsWhatComesFromOutside) {
  EXPECT_NE(FirstProblem(ReadSpec("  a: " + std::string(100, '[') + std::string(100, ']')))
                .find("deeper than 64"),
            std::string::npos);
  EXPECT_FALSE(ReadDocument(std::string(500000, '[')).problems.empty());
  EXPECT_FALSE(ReadDocument(std::string(500000, '{')).problems.empty());
  EXPECT_NE(FirstProblem(ReadDocument(std::string(kMaxDocumentBytes + 1, ' '))).find("1 MiB"),
            std::string::npos);
  std::string wide = "  a: [";
  for (int i = 0; i < 200000; ++i) wide += "1,";
  EXPECT_NE(FirstProblem(ReadSpec(wide + "]")).find("more than 100000"), std::string::npos);
  EXPECT_NE(FirstProblem(ReadSpec("  a: \xff")).find("UTF-8"), std::string::npos);
  // yaml-cpp takes 0x04 for the end of the file, and would drop what follows in silence.
  EXPECT_EQ(FirstProblem(ReadSpec("  a: 1\n\x04\n  b: 2\n")),
            "job.yaml:4: a control character in the file: remove it");
  EXPECT_EQ(FirstProblem(ReadSpec("  a: 1\r  b: 2\n")),
            "job.yaml:3: a control character in the file: remove it");
  EXPECT_EQ(ReadSpec("  a: 1\r\n  b: |\r\n    x\r\n    y\r\n").job.ToJson()["spec"],
            nlohmann::json::parse(R"({"a": 1, "b": "x\ny\n"})"));
  nlohmann::json deep;
  for (int i = 0; i < 100; ++i) deep = nlohmann::json::array({deep});
  EXPECT_NE(FirstProblem(JsonDocument(deep)).find("deeper than 64"), std::string::npos);
}

TEST(Document, NamesTheLineOfASyntaxError) {
  const std::string problem =
      FirstProblem(ReadDocument("kind: ParallelRunJob\nspec: {a: [1\nb: 2\n"));
  EXPECT_TRUE(problem.starts_with("job.yaml:")) << problem;
  EXPECT_NE(problem.find("not YAML"), std::string::npos) << problem;
}

TEST(Document, ATabThatIndentsALineIsCalledSo) {
  const struct {
    const char* text;
    int line;
  } cases[] = {
      {"kind: x\nspec:\n\ta: 1\n", 3},
      {"kind: x\nspec:\n  a: 1\n\tb: 2\n", 4},
      {"kind: x\nspec:\n  - a\n  \t- b\n", 4},
      {"kind: x\nspec:\n  a:\r\n\t\t- b\n", 4},
      {"\tkind: x\n", 1},
  };
  for (const auto& [text, line] : cases) {
    EXPECT_EQ(FirstProblem(ReadDocument(text)),
              "job.yaml:" + std::to_string(line) +
                  ": not YAML: a tab indents this line: write spaces in its place");
  }
  for (const char* text : {"spec: |\n  a\n  \tb\nx: [1,\n", "a:\tb\nc: [\n"}) {
    EXPECT_EQ(FirstProblem(ReadDocument(text)).find("tab"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace parallelrun::api
