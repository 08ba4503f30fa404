#include "coordinator/start/code_files.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

const CodeFiles kBegunWith = {{"a.py", "1"}, {"b/c.py", "2"}, {"d", "link 3"}};

TEST(CodeFilesTest, TheFirstInByteOrderIsNamed) {
  EXPECT_EQ(FirstChange(kBegunWith, kBegunWith), "");
  EXPECT_EQ(FirstChange(kBegunWith, {{"a.py", "1"}, {"b/c.py", "9"}, {"d", "link 3"}}),
            "b/c.py was changed");
  EXPECT_EQ(FirstChange(kBegunWith, {{"a.py", "1"}, {"b/c.py", "2"}}), "d was removed");
  CodeFiles more = kBegunWith;
  more["e.txt"] = "4";
  EXPECT_EQ(FirstChange(kBegunWith, more), "e.txt was added");
  more["a.txt"] = "4";
  more["d"] = "3";
  EXPECT_EQ(FirstChange(kBegunWith, more), "a.txt was added, and 2 more");
  EXPECT_EQ(FirstChange(more, kBegunWith), "a.txt was removed, and 2 more");
}

TEST(CodeFilesTest, OfWhatIsUnknownNothingIsNamed) {
  EXPECT_EQ(FirstChange({}, kBegunWith), "");
  EXPECT_EQ(FirstChange(kBegunWith, {}), "");
}

TEST(CodeFilesTest, ANameIsShownWithItsControlCharactersEscaped) {
  CodeFiles more = kBegunWith;
  more["\x1b[1m.py"] = "4";
  EXPECT_EQ(FirstChange(kBegunWith, more), "\\x1b[1m.py was added");
}

TEST(CodeFilesTest, AreKeptUnderTheDigestOfTheWhole) {
  const TempFolder t;
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const std::unique_ptr<ledger::StateNotes> notes = ledger::MakeFolderNotes(*files, t.path());
  EXPECT_TRUE(KeptCodeFiles(*notes, 7).empty());
  ASSERT_TRUE(KeepCodeFiles(*notes, 7, kBegunWith).ok());
  EXPECT_EQ(KeptCodeFiles(*notes, 7), kBegunWith);
  EXPECT_TRUE(KeptCodeFiles(*notes, 8).empty()) << "of another code";
  ASSERT_TRUE(KeepCodeFiles(*notes, 8, {{"a.py", "9"}}).ok());
  EXPECT_TRUE(KeptCodeFiles(*notes, 7).empty());
  for (const char* text : {"", "damaged", "[]", R"({"digest":"0000000000000008"})",
                           R"({"digest":"0000000000000008","files":7})",
                           R"({"digest":"0000000000000008","files":{"a.py":7}})"}) {
    t.Write("code.json", text);
    EXPECT_TRUE(KeptCodeFiles(*notes, 8).empty()) << text;
  }
}

}  // namespace
}  // namespace parallelrun::coordinator
