// The splitter's rows against those of pandas and of Python's csv module.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>

#include "base/hex.h"
#include "plan/csv_splitter.h"
#include "tests/support/disk_store.h"
#include "tests/unit/plan/folder.h"

namespace parallelrun::plan {
namespace {

// Arguments: the manifest. One line a slice: file, kind, delimiter, header in hex, offset, length,
// rows.
constexpr const char* kScript = R"(
import csv, io, sys
import pandas as pd

def csv_rows(data, delimiter):
    rows = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=delimiter)
    blank = lambda row: not row or (len(row) == 1 and row[0] != "" and not row[0].strip(" \t"))
    return sum(not blank(row) for row in rows)

checked = 0
for line in open(sys.argv[1]):
    path, kind, delimiter, header, offset, length, rows = line.rstrip("\n").split("|")
    delimiter, header = chr(int(delimiter)), bytes.fromhex(header)
    data = open(path, "rb").read()[int(offset):int(offset) + int(length)]
    wide = kind in ("odd", "marked")
    if wide:  # rows of any width, in a frame that is wide enough
        header = ",".join(f"c{i}" for i in range(200)).encode() + b"\n"
    options = {"sep": delimiter, "index_col": False, "dtype": str, "keep_default_na": False}
    options["header"] = 0 if header else None
    if kind == "marked":
        options.update(comment="#", escapechar="\\")
    try:
        got = len(pd.read_csv(io.BytesIO(header + data), **options))
    except pd.errors.ParserError as error:
        if wide and "EOF" in str(error):
            continue
        raise SystemExit(f"{path} {offset}: {error}")
    if got != int(rows):
        raise SystemExit(f"{path} {offset}+{length}: {rows} rows, pandas has {got}: {data!r}")
    if kind == "good" and csv_rows(data, delimiter) != got:
        raise SystemExit(f"{path} {offset}+{length}: {rows} rows, csv has other")
    checked += 1
open(sys.argv[1] + ".checked", "w").write(str(checked))
)";

const char* PythonWithPandas() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(python) + " -c 'import pandas' 2>/dev/null").c_str()) == 0) {
      return python;
    }
  }
  return nullptr;
}

class PlanPandasTest : public ::testing::Test {
 protected:
  void SetUp() override {
    python_ = PythonWithPandas();
    if (python_ == nullptr) GTEST_SKIP() << "no python3 with pandas";
    script_ = folder_.Write("check.py", kScript);
    manifest_.open(folder_ / "manifest");
  }

  void Split(const std::string& path, const char* kind, char delimiter, bool header,
             uint64_t size) {
    CsvFormat format{std::string(1, delimiter), "utf-8", true};
    if (kind == std::string_view("marked")) {
      format.comment = '#';
      format.escape = '\\';
    }
    auto splitter = CsvSplitter::Open(DiskStore(), NameOnDisk(path), format);
    ASSERT_TRUE(splitter.ok());
    const std::string row = header ? (*splitter)->TakeHeader().value() : "";
    uint64_t end = 0;
    while (const auto slice = (*splitter)->Next(size).value()) {
      if (end != 0) {
        ASSERT_EQ(slice->offset, end);
      }
      end = slice->offset + slice->length;
      manifest_ << path << "|" << kind << "|" << int{delimiter} << "|" << Hex(row) << "|"
                << slice->offset << "|" << slice->length << "|" << slice->rows << "\n";
      ++slices_;
    }
  }

  // How many slices were compared.
  int Check() {
    manifest_.close();
    const std::string command =
        std::string(python_) + " " + script_ + " " + (folder_ / "manifest") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    int checked = 0;
    std::ifstream(folder_ / "manifest.checked") >> checked;
    return checked;
  }

  size_t Random(size_t below) { return random_() % below; }

  std::string Field(char delimiter) {
    constexpr std::string_view kPlain[] = {"a", "bc", "12.5", " x ", "", "\xC3\xA4", "two words"};
    std::string_view line_end = Random(2) == 0 ? "\n" : "\r\n";
    switch (Random(4)) {
      case 0: {
        std::string field = "\"";
        for (size_t n = Random(5); n > 0; --n) {
          switch (Random(4)) {
            case 0: field += "\"\""; break;
            case 1: field += line_end; break;
            case 2: field += delimiter; break;
            default: field += std::string(Random(80), 'q');
          }
        }
        return field + "\"";
      }
      case 1: return std::string(Random(100), 'x');
      default: return std::string(kPlain[Random(std::size(kPlain))]);
    }
  }

  PlanFolder folder_;
  std::mt19937 random_{3};
  const char* python_ = nullptr;
  std::string script_;
  std::ofstream manifest_;
  int slices_ = 0;
};

TEST_F(PlanPandasTest, WellFormedFiles) {
  for (int file = 0; file < 150; ++file) {
    const char delimiter = ",\t;|"[Random(4)];
    const std::string_view line_end = std::array{"\n", "\r\n", "\r"}[Random(3)];
    const size_t columns = 2 + Random(5);
    std::string text = Random(4) == 0 ? "\xEF\xBB\xBF" : "";
    const bool header = Random(2) == 0;
    if (header) {
      for (size_t c = 0; c < columns; ++c) {
        text += (c > 0 ? std::string(1, delimiter) : "") + "\"c" + std::to_string(c) + "\nx\"";
      }
      text += line_end;
    }
    for (size_t n = Random(60); n > 0; --n) {
      // pandas itself loses track after an empty line that ends with a lone CR.
      if (line_end != "\r" && Random(10) == 0) text += std::string(Random(3), ' ').append(line_end);
      // It also reads a line with a blank in front anew from the last LF.
      text += line_end == "\r" ? "r" : "";
      for (size_t c = 0; c < columns; ++c) {
        if (c > 0) text += delimiter;
        if (c > 0 || line_end != "\r") text += Field(delimiter);
      }
      if (n > 1 || Random(3) > 0) text += line_end;
    }
    const std::string path = folder_.Write(std::to_string(file) + ".csv", text);
    Split(path, "good", delimiter, header, 1 + Random(1000));
  }
  EXPECT_EQ(Check(), slices_);
  EXPECT_GT(slices_, 500);
}

TEST_F(PlanPandasTest, StrayQuotesAndBlanks) {
  const std::string letters = "aab,,\"\n  \t";
  for (int file = 0; file < 100; ++file) {
    std::string text;
    for (size_t n = Random(600); n > 0; --n) text += letters[Random(letters.size())];
    Split(folder_.Write(std::to_string(file) + ".csv", text), "odd", ',', false, 50 + Random(300));
  }
  EXPECT_GT(Check(), 150);
}

TEST_F(PlanPandasTest, CommentsAndEscapes) {
  const std::string letters = "aab,,\"\n  \t##\\";
  for (int file = 0; file < 150; ++file) {
    std::string text;
    for (size_t n = Random(300); n > 0; --n) text += letters[Random(letters.size())];
    Split(folder_.Write(std::to_string(file) + ".csv", text), "marked", ',', false,
          10 + Random(200));
  }
  EXPECT_GT(Check(), 300);
}

}  // namespace
}  // namespace parallelrun::plan
