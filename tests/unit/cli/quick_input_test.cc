#include "cli/run/quick_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace parallelrun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QuickInputTest : public testing::Test {
 protected:
  std::string File(const std::string& name) {
    const std::filesystem::path path = std::filesystem::path(folder_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path;
  }
  std::string At(const std::string& name) { return folder_ + "/" + name; }
  Result<QuickInput> Look(std::vector<std::string> words, const std::string& format = "",
                          const std::string& pattern = "") {
    InputWords input;
    input.words = std::move(words);
    input.format = format;
    input.pattern = pattern;
    input.command = {"parallelrun", "run", "score.py", "--input", "in", "--", "-x", "a b"};
    return LookAtInput(input);
  }
  std::string Refusal(std::vector<std::string> words, const std::string& format = "",
                      const std::string& pattern = "") {
    const Result<QuickInput> looked = Look(std::move(words), format, pattern);
    return looked.ok() ? "nothing was refused" : looked.error().message;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
};

TEST_F(QuickInputTest, FoldersFilesAndGlobs) {
  File("in/a.txt");
  const std::string b = File("in/deep/b.txt");
  const auto looked = Look({At("in"), b, At("in/*/c?.txt"), At("in/**/*.txt")});
  ASSERT_TRUE(looked.ok()) << looked.error().message;
  EXPECT_EQ(looked->kind, InputKind::kFiles);
  EXPECT_THAT(
      looked->sources,
      ElementsAre(QuickSource{At("in"), "", ""}, QuickSource{At("in/deep"), "b.txt", ""},
                  QuickSource{At("in"), "", "*/c?.txt"}, QuickSource{At("in"), "", "**/*.txt"}));
  EXPECT_EQ(looked->note, "");
}

// With a format nobody asks the store.
TEST_F(QuickInputTest, UrlsOfStores) {
  const auto looked = Look({"s3://b", "s3://b/in/", "s3://b/in/*/c?.png", "s3://b/in/t.csv",
                            "s3://b/in/t.csv/", "s3://b/*.csv"},
                           "csv");
  ASSERT_TRUE(looked.ok()) << looked.error().message;
  EXPECT_THAT(looked->sources, ElementsAre(QuickSource{"s3://b", "", "", true},
                                           QuickSource{"s3://b/in", "", "", true},
                                           QuickSource{"s3://b/in", "", "*/c?.png", true},
                                           QuickSource{"s3://b/in", "", "t.csv", true},
                                           QuickSource{"s3://b/in/t.csv", "", "", true},
                                           QuickSource{"s3://b", "", "*.csv", true}));
}

TEST_F(QuickInputTest, AFileWhoseNameIsAGlobIsAFile) {
  const std::string odd = File("in/a[1].txt");
  EXPECT_EQ(Look({odd})->sources[0].path, "a[1].txt");
}

TEST_F(QuickInputTest, OneTableFileIsReadAsATableAndSaysSo) {
  for (const auto& [name, kind, format, shown] :
       {std::tuple{"a.CSV", InputKind::kTabular, TabularFormat::kCsv, "CSV"},
        std::tuple{"a.tsv", InputKind::kTabular, TabularFormat::kTsv, "TSV"},
        std::tuple{"a.parquet", InputKind::kTabular, TabularFormat::kParquet, "Parquet"},
        std::tuple{"a.ndjson", InputKind::kJsonLines, TabularFormat::kCsv, "JSON lines"},
        std::tuple{"a.jsonl", InputKind::kJsonLines, TabularFormat::kCsv, "JSON lines"},
        std::tuple{"b.csv.gz", InputKind::kTabular, TabularFormat::kCsv, "CSV"},
        std::tuple{"b.tsv.zst", InputKind::kTabular, TabularFormat::kTsv, "TSV"},
        std::tuple{"b.jsonl.GZ", InputKind::kJsonLines, TabularFormat::kCsv, "JSON lines"}}) {
    const std::string path = File(name);
    const auto looked = Look({path});
    ASSERT_TRUE(looked.ok());
    EXPECT_EQ(looked->kind, kind) << name;
    EXPECT_EQ(looked->format, format) << name;
    EXPECT_THAT(looked->note, HasSubstr(std::string("is read as a table of ") + shown));
    EXPECT_EQ(Look({path}, "files")->kind, InputKind::kFiles);
  }
}

TEST_F(QuickInputTest, AFolderOfTablesIsAskedBackWithBothCommands) {
  File("in/one.csv");
  File("in/deep/two.csv");
  File("in/_SUCCESS");
  for (const std::string& word : {At("in"), At("in/**/*.csv")}) {
    const std::string refusal = Refusal({word});
    EXPECT_THAT(refusal, HasSubstr("2 files of CSV"));
    EXPECT_THAT(refusal,
                HasSubstr("parallelrun run score.py --input in --format csv -- -x 'a b'\n"));
    EXPECT_THAT(refusal, HasSubstr("--input in --format files -- -x 'a b'\n"));
  }
  EXPECT_EQ(Look({At("in")}, "csv")->kind, InputKind::kTabular);
  EXPECT_EQ(Look({At("in")}, "files")->kind, InputKind::kFiles);
  EXPECT_THAT(Refusal({At("in/one.csv"), At("in/deep/two.csv")}), HasSubstr("2 files of CSV"));
}

TEST_F(QuickInputTest, FilesBesideTablesMakeItAFolderOfFiles) {
  File("in/one.csv");
  File("in/notes.txt");
  EXPECT_EQ(Look({At("in")})->kind, InputKind::kFiles);
  EXPECT_THAT(Refusal({At("in")}, "", "*.csv"), HasSubstr("1 file of CSV")) << "only these count";
}

TEST_F(QuickInputTest, CompressedParquetIsNotTakenForFilesWithoutAWord) {
  EXPECT_THAT(Refusal({File("a.parquet.gz")}), HasSubstr("a.parquet.gz is a compressed file"));
  EXPECT_EQ(Look({At("a.parquet.gz")}, "files")->kind, InputKind::kFiles);
}

TEST_F(QuickInputTest, MoreWordsThanAJobTakesAreAGlobWithoutQuotes) {
  std::vector<std::string> words;
  for (int i = 0; i < 33; ++i) words.push_back(File("in/" + std::to_string(i) + ".txt"));
  EXPECT_THAT(Refusal(words), HasSubstr("33 words"));
  EXPECT_THAT(Refusal(words), HasSubstr("put a glob in quotes"));
  words.pop_back();
  EXPECT_EQ(Look(words)->sources.size(), 32U);
}

TEST_F(QuickInputTest, WhatWouldRunTwiceOrNotAtAllIsRefused) {
  const std::string file = File("in/a.txt");
  EXPECT_THAT(Refusal({file, file}), HasSubstr("twice"));
  EXPECT_THAT(Refusal({file}, "", "*.txt"), HasSubstr("--pattern is for folders"));
}

}  // namespace
}  // namespace parallelrun
