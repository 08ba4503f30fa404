// Code that comes as one code.tar.gz, and code of a mounted ConfigMap.
#include "agent/code_archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <csignal>
#include <cstring>

#include "agent/code_copy.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A tar archive, entry by entry; what a good writer would refuse too.
class Tar {
 public:
  Tar& Add(const std::string& name, const std::string& body, char type = '0', unsigned mode = 0644,
           const std::string& prefix = "") {
    std::string header(512, '\0');
    Put(header, 0, name);
    Put(header, 100, fmt("%07o", mode));
    Put(header, 124, fmt("%011zo", body.size()));
    header[156] = type;
    Put(header, 257,
        std::string("ustar\0"
                    "00",
                    8));
    Put(header, 345, prefix);
    Put(header, 148, "        ");
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    Put(header, 148, fmt("%06o", sum) + std::string("\0 ", 2));
    bytes_ += header + body + std::string((512 - body.size() % 512) % 512, '\0');
    return *this;
  }
  std::string End() const { return bytes_ + std::string(1024, '\0'); }

 private:
  template <typename T>
  static std::string fmt(const char* format, T value) {
    char text[32];
    std::snprintf(text, sizeof text, format, value);
    return text;
  }
  static void Put(std::string& header, size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  }
  std::string bytes_;
};

struct CodeArchive : ::testing::Test {
  Status Unpack(const std::string& tar, const CodeArchiveLimits& limits = {}) {
    const std::string path = folder.path("code.tar.gz");
    gzFile gz = gzopen(path.c_str(), "wb");
    gzwrite(gz, tar.data(), static_cast<unsigned>(tar.size()));
    gzclose(gz);
    fs::create_directories(folder.path("work"));
    return UnpackCode(path, folder.path("work"), limits);
  }
  std::string Refusal(const std::string& tar, const CodeArchiveLimits& limits = {}) {
    const Status status = Unpack(tar, limits);
    return status.ok() ? "(it was unpacked)" : status.error().message;
  }
  TempFolder folder;
};

// As of a disk that fails; it was told as one that ends too early.
TEST_F(CodeArchive, OneThatCannotBeReadSaysWhy) {
  fs::create_directories(folder.path("code.tar.gz"));
  const Status status = UnpackCode(folder.path("code.tar.gz"), folder.path());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "read the code archive " + folder.path("code.tar.gz") + ": Is a directory");
}

TEST_F(CodeArchive, FilesFoldersModesAndLongNames) {
  const std::string deep = std::string(90, 'd') + "/" + std::string(90, 'e') + "/mod.py";
  const std::string pax = "folder/" + std::string(200, 'p') + ".py";
  const std::string record = " path=" + pax + "\n";
  const std::string length = std::to_string(record.size() + 3);
  const Status status = Unpack(Tar()
                                   .Add("./", "", '5')
                                   .Add("./score.py", "print(1)\n")
                                   .Add("pkg/", "", '5', 0700)
                                   .Add("pkg/run.sh", "#!/bin/sh\n", '0', 0755)
                                   .Add("empty", "", '\0', 0)
                                   .Add("mod.py", "deep", '0', 0644, "far/away")
                                   .Add("././@LongLink", deep + '\0', 'L')
                                   .Add("cut", "long")
                                   .Add("PaxHeader/x", length + record, 'x')
                                   .Add("cut", "pax")
                                   .Add("PaxHeader/g", "", 'g')
                                   .Add("big.bin", std::string(200'000, 'b'))
                                   .Add("logs/old.txt", "x")
                                   .Add("pkg/__pycache__/x.pyc", "x")
                                   .Add(".git/config", "x")
                                   .End());
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(folder.Read("work/score.py"), "print(1)\n");
  EXPECT_EQ(folder.Read("work/far/away/mod.py"), "deep");
  EXPECT_EQ(folder.Read("work/" + deep), "long");
  EXPECT_EQ(folder.Read("work/" + pax), "pax");
  EXPECT_EQ(folder.Read("work/big.bin").size(), 200'000U);
  struct stat info {};
  ASSERT_EQ(stat(folder.path("work/pkg/run.sh").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0755U);
  ASSERT_EQ(stat(folder.path("work/empty").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);  // its owner can always read it
  for (const char* name : {"logs", ".git", "pkg/__pycache__", "cut"}) {
    EXPECT_FALSE(folder.Exists(std::string("work/") + name)) << name;
  }
}

TEST_F(CodeArchive, EntriesThatLeadOutAreRefusedByName) {
  EXPECT_THAT(Refusal(Tar().Add("a/../../evil", "x").End()),
              HasSubstr("\"a/../../evil\" leads out of the code"));
  EXPECT_THAT(Refusal(Tar().Add("/etc/evil", "x").End()), HasSubstr("has an absolute path"));
  EXPECT_THAT(Refusal(Tar().Add("", "x").End()), HasSubstr("has no proper name"));
  for (const char type : {'1', '2', '3', '4', '6', '7', 'K', 'S'}) {
    EXPECT_THAT(Refusal(Tar().Add("link", "", type).End()),
                HasSubstr("\"link\" is neither a regular file nor a folder"))
        << type;
  }
  EXPECT_FALSE(folder.Exists("evil"));
}

TEST_F(CodeArchive, TheLimitsHold) {
  EXPECT_THAT(Refusal(Tar().Add("a", std::string(2000, 'x')).End(), {1000, 10}),
              HasSubstr("the entry \"a\" makes it larger"));
  EXPECT_THAT(Refusal(Tar().Add("a", "").Add("b", "").Add("c", "").End(), {1000, 2}),
              HasSubstr("more than 2 entries"));
  // Small once it is compressed.
  EXPECT_THAT(Refusal(Tar().Add("bomb", std::string(65 << 20, '\0')).End()),
              HasSubstr("the entry \"bomb\" makes it larger than 64 MiB"));
}

TEST_F(CodeArchive, WhatIsDamagedIsSaid) {
  const std::string good = Tar().Add("a", std::string(3000, 'x')).End();
  EXPECT_THAT(Refusal(good.substr(0, 1500)), HasSubstr("ends too early"));
  EXPECT_THAT(Refusal(""), HasSubstr("ends too early"));
  std::string wrong = good;
  wrong[3] = 'y';
  EXPECT_THAT(Refusal(wrong), HasSubstr("not a tar archive"));
  EXPECT_THAT(Refusal(Tar().Add("x", "999999 path=y\n", 'x').End()), HasSubstr("pax header"));
  EXPECT_THAT(Refusal(Tar().Add("x", "path=y\n", 'x').End()), HasSubstr("pax header"));
  EXPECT_THAT(Refusal(Tar().Add("x", std::string(70'000, 'n'), 'L').End()),
              HasSubstr("above 64 KiB"));
  // Cut within the compressed bytes.
  ASSERT_TRUE(Unpack(good).ok());
  fs::resize_file(folder.path("code.tar.gz"), 30);
  const Status cut = UnpackCode(folder.path("code.tar.gz"), folder.path("work"));
  EXPECT_FALSE(cut.ok());
  EXPECT_FALSE(UnpackCode(folder.path("none"), folder.path("work")).ok());
}

// As the kubelet mounts it: ..data leads to a folder with the time in its name.
TEST_F(CodeArchive, AMountedConfigMapIsPlainFiles) {
  folder.Write("code/..2026_11_21/score.py", "print(1)\n");
  folder.Write("code/..2026_11_21/helper.py", "print(2)\n");
  fs::create_directory_symlink("..2026_11_21", folder.path("code/..data"));
  fs::create_symlink("..data/score.py", folder.path("code/score.py"));
  fs::create_symlink("..data/helper.py", folder.path("code/helper.py"));
  const Status copied = CopyCode(folder.path("code"), folder.path("work"));
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path("work"))) {
    names.push_back(entry.path().filename());
    EXPECT_FALSE(entry.is_symlink()) << entry.path();
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("score.py", "helper.py", "logs"));
}

// A disk that fills up takes a part of a write first: the cause must still be told, because a node
// without room is started again later, and one with a bad archive is not.
TEST_F(CodeArchive, WhatDoesNotFitIsToldByItsCause) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string refusal = Refusal(Tar().Add("big.bin", std::string(200'000, 'b')).End());
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(refusal, HasSubstr("big.bin"));
  EXPECT_THAT(refusal, HasSubstr("File too large"));
}

TEST_F(CodeArchive, AMountedArchiveIsUnpacked) {
  fs::create_directories(folder.path("code/..2026_11_21"));
  ASSERT_TRUE(Unpack(Tar().Add("pkg/score.py", "print(1)\n").End()).ok());
  fs::rename(folder.path("code.tar.gz"), folder.path("code/..2026_11_21/code.tar.gz"));
  fs::create_directory_symlink("..2026_11_21", folder.path("code/..data"));
  fs::create_symlink("..data/code.tar.gz", folder.path("code/code.tar.gz"));
  const Status copied = CopyCode(folder.path("code"), folder.path("node"));
  ASSERT_TRUE(copied.ok()) << copied.error().message;
  EXPECT_EQ(folder.Read("node/pkg/score.py"), "print(1)\n");
  EXPECT_FALSE(folder.Exists("node/code.tar.gz"));
  EXPECT_TRUE(folder.Exists("node/logs"));
  // Beside other files it is one of them.
  folder.Write("code/..2026_11_21/other.py", "");
  ASSERT_TRUE(CopyCode(folder.path("code"), folder.path("second")).ok());
  EXPECT_TRUE(folder.Exists("second/code.tar.gz"));
}

}  // namespace
}  // namespace parallelrun::agent
