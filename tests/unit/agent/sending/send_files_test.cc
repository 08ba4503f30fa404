#include "agent/sending/send_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "agent/sending/file_stream.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

using Received = std::map<std::string, std::string>;

// What comes out of a stream that is given in pieces of that size.
Result<Received> Receive(const std::string& stream, size_t piece) {
  Received received;
  std::string* at = nullptr;
  FileStreamReader reader({[&](const std::string& name) -> Status {
                             at = &received[name];
                             return {};
                           },
                           [&](std::string_view bytes) -> Status {
                             at->append(bytes);
                             return {};
                           }});
  for (size_t i = 0; i < stream.size(); i += piece) {
    if (Status taken = reader.Take(std::string_view(stream).substr(i, piece)); !taken.ok()) {
      return taken.error();
    }
  }
  if (Status ended = reader.End(); !ended.ok()) return ended.error();
  return received;
}

class SendFilesTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) { folder_.Write(name, content); }

  Result<Received> Send(const std::string& folder, std::vector<std::string> only = {},
                        std::vector<std::string> except = {}) {
    std::string stream;
    const Status sent =
        SendFiles(*MakeSystemFiles(), {folder_.path(), folder, std::move(only), std::move(except)},
                  [&](std::string_view bytes) -> Status {
                    stream.append(bytes);
                    return {};
                  });
    Result<Received> received = Receive(stream, 7);
    EXPECT_EQ(sent.ok(), received.ok());
    return received;
  }

  const TempFolder folder_;
};

TEST_F(SendFilesTest, AllBelowAFolderArrives) {
  Write("logs/a.txt", "one");
  Write("logs/user/error/0/b.txt", "");
  Write("logs/big", std::string(3'000'000, 'x'));
  Write("other/c.txt", "no");
  const Result<Received> received = Send("logs");
  ASSERT_TRUE(received.ok());
  EXPECT_THAT(*received, UnorderedElementsAre(Pair("a.txt", "one"), Pair("user/error/0/b.txt", ""),
                                              Pair("big", std::string(3'000'000, 'x'))));
}

TEST_F(SendFilesTest, SomeOfItAndAllButSome) {
  Write("rows.txt", "rows");
  Write("rows.txt.index.jsonl", "index");
  Write(".rows.txt.claim", "ours");
  Write("side/rows.txt", "side");
  const Result<Received> some = Send(".", {"rows.txt", "absent.txt"});
  ASSERT_TRUE(some.ok());
  EXPECT_THAT(*some, UnorderedElementsAre(Pair("rows.txt", "rows")));
  const Result<Received> rest = Send(".", {}, {"rows.txt", "rows.txt.index.jsonl", ".rows.txt.*"});
  ASSERT_TRUE(rest.ok());
  EXPECT_THAT(*rest, UnorderedElementsAre(Pair("side/rows.txt", "side")));
  const Result<Received> none = Send(".", {}, {"*"});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST_F(SendFilesTest, AFolderThatIsNotThereHasNoFiles) {
  const Result<Received> received = Send("absent/logs");
  ASSERT_TRUE(received.ok());
  EXPECT_TRUE(received->empty());
}

TEST_F(SendFilesTest, NoLinkIsFollowedAndNoPipeIsOpened) {
  Write("secret/key", "key");
  Write("logs/a.txt", "one");
  const fs::path logs = fs::path(folder_.path()) / "logs";
  fs::create_symlink("../secret", logs / "folder");
  fs::create_symlink("../secret/key", logs / "file");
  ASSERT_EQ(mkfifo((logs / "pipe").c_str(), 0600), 0);
  const Result<Received> received = Send("logs");
  ASSERT_TRUE(received.ok());
  EXPECT_THAT(*received, UnorderedElementsAre(Pair("a.txt", "one")));
  for (const char* folder : {"logs/folder", "../" /* out of the root */}) {
    EXPECT_FALSE(Send(folder).ok()) << folder;
  }
  EXPECT_FALSE(Send("logs", {"file"}).ok());
}

TEST(FileStream, NamesStayBelowTheFolder) {
  for (const char* name : {"a", "a/b.txt", "..a", "a..", "\xff", "a b\n"}) {
    EXPECT_TRUE(IsFileName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("/a"), std::string(".."), std::string("../a"),
        std::string("a/../../b"), std::string("a//b"), std::string("a/"), std::string("./a"),
        std::string("a\0b", 3), std::string(256, 'a'), std::string(5000, 'a')}) {
    EXPECT_FALSE(IsFileName(name)) << name;
    EXPECT_FALSE(Receive(std::string(kFileStreamMagic) + FileFrame(name), 3).ok()) << name;
  }
}

TEST(FileStream, ACutOrMadeUpStreamIsNoWholeOne) {
  const std::string whole =
      std::string(kFileStreamMagic) + FileFrame("a") + BytesFrame("one") + EndFrame(1, 3);
  ASSERT_TRUE(Receive(whole, 1).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(Receive(whole.substr(0, size), 1).ok()) << size;
  }
  const std::string begin(kFileStreamMagic);
  for (const std::string& made_up :
       {begin + BytesFrame("one") + EndFrame(0, 3), begin + FileFrame("a") + EndFrame(1, 3),
        begin + EndFrame(0, 0) + FileFrame("a"), begin + std::string("\x09\0\0\0\0", 5),
        begin + std::string("\x02\xff\xff\xff\xff", 5), std::string("PRFILES2"),
        begin + FileFrame("a") + BytesFrame("one") + EndFrame(2, 3)}) {
    EXPECT_FALSE(Receive(made_up, 1000).ok());
  }
  const Result<Received> failed = Receive(begin + FailedFrame("read a: Input/output error"), 1000);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("read a: Input/output error"));
}

}  // namespace
}  // namespace parallelrun::agent
