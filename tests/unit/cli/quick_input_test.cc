#include "cli/run/quick_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
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
  const std::string b = File("other/deep/b.txt");
  const auto looked = Look({At("in"), b, At("more/*/c?.txt"), At("more/**/*.txt")});
  ASSERT_TRUE(looked.ok()) << looked.error().message;
  EXPECT_EQ(looked->kind, api::InputKind::kFiles);
  EXPECT_THAT(looked->sources,
              ElementsAre(QuickSource{At("in"), "", ""}, QuickSource{At("other/deep"), "b.txt", ""},
                          QuickSource{At("more"), "", "*/c?.txt"},
                          QuickSource{At("more"), "", "**/*.txt"}));
  EXPECT_EQ(looked->note, "");
}

// With a format nobody asks the store.
TEST_F(QuickInputTest, UrlsOfStores) {
  const auto looked = Look({"s3://a", "s3://b/in/", "s3://b/x/*/c?.png", "s3://b/x/t.csv",
                            "s3://b/x/t.csv/", "s3://b/*.csv"},
                           "csv");
  ASSERT_TRUE(looked.ok()) << looked.error().message;
  EXPECT_THAT(looked->sources, ElementsAre(QuickSource{"s3://a", "", "", true},
                                           QuickSource{"s3://b/in", "", "", true},
                                           QuickSource{"s3://b/x", "", "*/c?.png", true},
                                           QuickSource{"s3://b/x", "", "t.csv", true},
                                           QuickSource{"s3://b/x/t.csv", "", "", true},
                                           QuickSource{"s3://b", "", "*.csv", true}));
}

TEST_F(QuickInputTest, UrlsOfAzure) {
  const std::string abfss = "abfss://photos@data.dfs.core.windows.net";
  const std::string https = "https://data.blob.core.windows.net/photos";
  const std::string other = "abfss://other@data.dfs.core.windows.net";
  const auto looked = Look({other, abfss + "/in/", https + "/x/*.png", https + "/t.csv"}, "csv");
  ASSERT_TRUE(looked.ok()) << looked.error().message;
  EXPECT_THAT(looked->sources, ElementsAre(QuickSource{other, "", "", true},
                                           QuickSource{abfss + "/in", "", "", true},
                                           QuickSource{https + "/x", "", "*.png", true},
                                           QuickSource{https, "", "t.csv", true}));
}

TEST_F(QuickInputTest, AUrlThatNobodyReadsIsNoFolderOfThisMachine) {
  for (const char* url : {"gs://bucket/in/*.csv", "http://host/a.csv", "wasbs://c@a.host/in"}) {
    EXPECT_THAT(Refusal({url}), HasSubstr("s3://BUCKET/PREFIX/")) << url;
  }
  EXPECT_THAT(Refusal({"file:///data/in"}), HasSubstr("without file://"));
}

TEST_F(QuickInputTest, WhatMayBeOneObject) {
  for (const char* url :
       {"s3://b0b/x", "s3://b0b/x/photo.png", "https://data.blob.core.windows.net/photos/a.png",
        "abfss://photos@data.dfs.core.windows.net/a"}) {
    EXPECT_TRUE(MayBeOneObject(url)) << url;
  }
  // A bucket, a prefix, a pattern, and a table, which is one object anyway.
  for (const char* url :
       {"s3://b0b", "s3://b0b/", "s3://b0b/x/", "s3://b0b/*.png", "s3://b0b/t.csv",
        "https://data.blob.core.windows.net/photos", "abfss://photos@data.dfs.core.windows.net"}) {
    EXPECT_FALSE(MayBeOneObject(url)) << url;
  }
}

TEST_F(QuickInputTest, AWebAddressIsNotRead) {
  EXPECT_THAT(Refusal({"https://example.com/data/a.csv"}), HasSubstr("no web address but those"));
}

TEST_F(QuickInputTest, ASignatureInAUrlIsShownToNobody) {
  for (const char* url : {"https://data.blob.core.windows.net/photos/a.csv?sv=1&sig=SECRET",
                          "abfss://photos@data.dfs.core.windows.net/in/?sv=1&sig=SECRET"}) {
    const auto looked = Look({url});
    ASSERT_FALSE(looked.ok());
    EXPECT_THAT(looked.error().message, HasSubstr("AZURE_STORAGE_SAS_TOKEN"));
    EXPECT_EQ(looked.error().message.find("SECRET"), std::string::npos) << looked.error().message;
  }
}

// Else it would be a glob, which finds nothing.
TEST_F(QuickInputTest, AVersionInAUrlIsRefusedWithAFormatToo) {
  for (const char* format : {"", "csv"}) {
    EXPECT_THAT(Refusal({"s3://bucket/a.csv?versionId=3"}, format),
                HasSubstr("Leave out the ? and what follows it"));
    EXPECT_THAT(Refusal({"https://bucket.s3.amazonaws.com/a.csv?X-Amz-Signature=SECRET"}, format),
                HasSubstr("s3://BUCKET/PREFIX"));
  }
}

TEST_F(QuickInputTest, AFileWhoseNameIsAGlobIsAFile) {
  const std::string odd = File("in/a[1].txt");
  EXPECT_EQ(Look({odd})->sources[0].path, "a[1].txt");
}

TEST_F(QuickInputTest, OnlyWhatWasTypedIsAPattern) {
  File("[DE]/in/a.txt");
  File("D/in/b.txt");
  File("data (v2) [raw]/x.txt");
  File("[DE]/data?/deep/y.txt");
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(At("[DE]"));
  const auto here = Look({"in/*.txt", "./in/r?ght.txt", "../D/i[n]/*", "data?/**/*.txt"});
  std::filesystem::current_path(before);
  ASSERT_TRUE(here.ok()) << here.error().message;
  EXPECT_THAT(here->sources, ElementsAre(QuickSource{At("[DE]/in"), "", "*.txt"},
                                         QuickSource{At("[DE]/in"), "", "r?ght.txt"},
                                         QuickSource{At("D"), "", "i[n]/*"},
                                         QuickSource{At("[DE]/data?"), "", "**/*.txt"}));
  const auto whole = Look({At("[DE]/in/*.txt"), At("data (v2) [raw]/*.txt"), At("[D]/in/*.txt")});
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_THAT(whole->sources, ElementsAre(QuickSource{At("[DE]/in"), "", "*.txt"},
                                          QuickSource{At("data (v2) [raw]"), "", "*.txt"},
                                          QuickSource{folder_, "", "[D]/in/*.txt"}));
}

TEST_F(QuickInputTest, OneTableFileIsReadAsATableAndSaysSo) {
  for (const auto& [name, kind, format, shown] :
       {std::tuple{"a.CSV", api::InputKind::kTabular, api::TabularFormat::kCsv, "CSV"},
        std::tuple{"a.tsv", api::InputKind::kTabular, api::TabularFormat::kTsv, "TSV"},
        std::tuple{"a.parquet", api::InputKind::kTabular, api::TabularFormat::kParquet, "Parquet"},
        std::tuple{"a.ndjson", api::InputKind::kJsonLines, api::TabularFormat::kCsv, "JSON lines"},
        std::tuple{"a.jsonl", api::InputKind::kJsonLines, api::TabularFormat::kCsv, "JSON lines"},
        std::tuple{"b.csv.gz", api::InputKind::kTabular, api::TabularFormat::kCsv, "CSV"},
        std::tuple{"b.tsv.zst", api::InputKind::kTabular, api::TabularFormat::kTsv, "TSV"},
        std::tuple{"b.jsonl.GZ", api::InputKind::kJsonLines, api::TabularFormat::kCsv,
                   "JSON lines"}}) {
    const std::string path = File(name);
    const auto looked = Look({path});
    ASSERT_TRUE(looked.ok());
    EXPECT_EQ(looked->kind, kind) << name;
    EXPECT_EQ(looked->format, format) << name;
    EXPECT_THAT(looked->note, HasSubstr(std::string("is read as a table of ") + shown));
    EXPECT_EQ(Look({path}, "files")->kind, api::InputKind::kFiles);
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
  EXPECT_EQ(Look({At("in")}, "csv")->kind, api::InputKind::kTabular);
  EXPECT_EQ(Look({At("in")}, "files")->kind, api::InputKind::kFiles);
  EXPECT_THAT(Refusal({At("in/one.csv"), At("in/deep/two.csv")}), HasSubstr("2 files of CSV"));
}

TEST_F(QuickInputTest, FilesBesideTablesMakeItAFolderOfFiles) {
  File("in/one.csv");
  File("in/notes.txt");
  EXPECT_EQ(Look({At("in")})->kind, api::InputKind::kFiles);
  EXPECT_THAT(Look({At("in")})->note,
              HasSubstr("holds 1 file of CSV, and other files: run() gets the paths of all"));
  EXPECT_EQ(Look({At("in")}, "files")->note, "");
  EXPECT_THAT(Refusal({At("in")}, "", "*.csv"), HasSubstr("1 file of CSV")) << "only these count";
}

TEST_F(QuickInputTest, TablesOfSeveralKindsAreAskedBackToo) {
  File("in/one.csv");
  File("in/two.tsv");
  File("in/three.tsv.gz");
  for (const std::string& word : {At("in"), At("in/*")}) {
    const std::string refusal = Refusal({word});
    EXPECT_THAT(refusal, HasSubstr("1 file of CSV and 2 files of TSV"));
    EXPECT_THAT(refusal, HasSubstr("--input in --format files -- -x 'a b'\n"));
    EXPECT_THAT(refusal, HasSubstr("--format csv --pattern '**/*.csv'"));
  }
  EXPECT_EQ(Look({At("in")}, "files")->kind, api::InputKind::kFiles);
}

TEST_F(QuickInputTest, TablesBehindALinkToTheirFolderAreAskedBackToo) {
  File("tables/one.csv");
  std::filesystem::create_directory(At("in"));
  std::filesystem::create_directory_symlink(At("tables"), At("in/link"));
  std::filesystem::create_directory_symlink(At("tables"), At("link"));
  std::filesystem::create_directory_symlink(At("in"), At("in/circle"));
  EXPECT_THAT(Refusal({At("in")}), HasSubstr("of CSV"));
  EXPECT_THAT(Refusal({At("link")}), HasSubstr("1 file of CSV"));
  EXPECT_THAT(Refusal({At("in/*/*.csv")}), HasSubstr("of CSV"));
}

TEST_F(QuickInputTest, AHiddenTableIsOneWhereItIsNamed) {
  EXPECT_EQ(Look({File("in/.a.csv")})->kind, api::InputKind::kTabular);
  EXPECT_THAT(Refusal({At("in/.*.csv")}), HasSubstr("1 file of CSV"));
  EXPECT_EQ(Look({At("in")})->kind, api::InputKind::kFiles) << "nothing is there";
}

TEST_F(QuickInputTest, CompressedParquetIsNotTakenForFilesWithoutAWord) {
  EXPECT_THAT(Refusal({File("a.parquet.gz")}), HasSubstr("a.parquet.gz is a compressed file"));
  EXPECT_EQ(Look({At("a.parquet.gz")}, "files")->kind, api::InputKind::kFiles);
}

TEST_F(QuickInputTest, TheTablesOfAFileOrAFolderAreKnownByName) {
  EXPECT_EQ(TablesNamed(File("a.TSV.gz"))->format, api::TabularFormat::kTsv);
  EXPECT_EQ(TablesNamed(File("a.ndjson"))->kind, api::InputKind::kJsonLines);
  EXPECT_FALSE(TablesNamed(File("a.dat")));
  File("in/a.tsv");
  File("in/deep/b.tsv");
  File("in/README");
  EXPECT_EQ(TablesNamed(At("in"))->format, api::TabularFormat::kTsv);
  File("in/c.csv");
  EXPECT_FALSE(TablesNamed(At("in")));
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

TEST_F(QuickInputTest, WhatOneWordHasInItNoOtherOneNames) {
  const std::string file = File("in/deep/a.txt");
  File("in/b.txt");
  File("inner/a.txt");
  for (const std::vector<std::string>& words : {std::vector<std::string>{At("in"), file},
                                                {file, At("in")},
                                                {At("in"), At("in/deep")},
                                                {At("in"), At("in/*.txt")},
                                                {At("in/**/*.txt"), file}}) {
    EXPECT_THAT(Refusal(words), HasSubstr("which has it in it")) << words[1];
  }
  EXPECT_EQ(Look({At("in"), At("inner")})->sources.size(), 2U);
  EXPECT_EQ(Look({At("in/*.txt"), file})->sources.size(), 2U);
  EXPECT_EQ(Look({At("in"), At("in/deep")}, "", "*.txt")->sources.size(), 2U) << "no folders in *";
}

}  // namespace
}  // namespace parallelrun::cli
