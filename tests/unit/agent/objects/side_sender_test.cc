// Side files on their way to a store: whatever is away meanwhile, the attempt is answered once, by
// the line that names them with their uploads.
#include "agent/objects/side_sender.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "job/side_list.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;

constexpr Duration kSendLimit = seconds(60);  // ends a test that hangs

// What the coordinator and the store know.
struct Cloud {
  std::mutex mutex;  // guards what follows
  size_t begun = 0;
  size_t asked = 0;
  std::map<std::string, std::map<uint32_t, std::string>> parts;  // by upload
  // Of the next calls; nothing: as it should be.
  std::vector<std::optional<Error>> ask_fails;
  std::vector<std::optional<Error>> put_fails;

  static std::optional<Error> Next(std::vector<std::optional<Error>>& fails) {
    if (fails.empty()) return std::nullopt;
    const std::optional<Error> next = fails.front();
    fails.erase(fails.begin());
    return next;
  }

  Result<job::SideUploads> Ask(const job::SideUploadsWanted& wanted) {
    const std::lock_guard lock(mutex);
    ++asked;
    if (const auto fails = Next(ask_fails)) return *fails;
    job::SideUploads uploads{600, {}};
    for (const job::SideUploadWanted& file : wanted.files) {
      job::SideUpload& one = uploads.files.emplace_back();
      one.id = file.upload.empty() ? "u" + std::to_string(++begun) : file.upload;
      // As few as may be, so that more are asked for.
      one.urls.push_back(one.id + "/" + std::to_string(file.part));
      EXPECT_LE(file.part, job::SidePartsOf(file.bytes));
    }
    return uploads;
  }
};

class CloudPutter final : public store::PartPutter {
 public:
  explicit CloudPutter(std::shared_ptr<Cloud> cloud) : cloud_(std::move(cloud)) {}
  Result<std::string> Put(const std::string& name, const std::string& url,
                          const HttpFileRange& bytes, const std::stop_token&) override {
    const std::lock_guard lock(cloud_->mutex);
    if (const auto fails = Cloud::Next(cloud_->put_fails)) return *fails;
    std::string read(bytes.size, '\0');
    EXPECT_EQ(pread(bytes.fd, read.data(), read.size(), static_cast<off_t>(bytes.offset)),
              static_cast<ssize_t>(read.size()));
    const size_t slash = url.find('/');
    const auto part = static_cast<uint32_t>(std::stoul(url.substr(slash + 1)));
    cloud_->parts[url.substr(0, slash)][part] = read;
    return "etag-" + name + "-" + std::to_string(part);
  }

 private:
  const std::shared_ptr<Cloud> cloud_;
};

class SideSenderTest : public ::testing::Test {
 protected:
  SideSenderTest() {
    SideSender::Facts facts;
    facts.folder = folder_.path();
    facts.pause = milliseconds(1);
    facts.refused_for = milliseconds(50);
    facts.open = [cloud = cloud_](const std::stop_token&) {
      return Result<std::unique_ptr<store::PartPutter>>(std::make_unique<CloudPutter>(cloud));
    };
    facts.ask = [cloud = cloud_](const job::SideUploadsWanted& wanted, const std::stop_token&) {
      return cloud->Ask(wanted);
    };
    sender_.emplace(loop_, std::move(facts),
                    [this](uint32_t process, SideFilesAnswer answer, const std::string& text) {
                      EXPECT_EQ(process, 3u);
                      if (answer == SideFilesAnswer::kGoesOn) return;
                      EXPECT_FALSE(answer_) << "it is answered once";
                      answer_ = answer;
                      text_ = text;
                      loop_.Stop();
                    });
  }

  void Put(const std::string& name, const std::string& bytes) {
    const std::filesystem::path path =
        std::filesystem::path(folder_.path()) / "process003-1f/9" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
    job::SideFile file;
    file.name = name;
    file.bytes = bytes.size();
    list_.files.push_back(std::move(file));
  }
  void Send() {
    list_.folder = "process003-1f/9";
    sender_->Send(3, 4, list_);
    const auto timer = loop_.After(kSendLimit, [this] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(timer);
  }
  // What the line says of where a file is.
  std::string BytesOf(const job::SideFile& file) const {
    std::string bytes;
    for (const auto& [number, part] : cloud_->parts.at(file.upload)) bytes += part;
    return bytes;
  }
  job::SideList Sent() const {
    EXPECT_EQ(answer_, SideFilesAnswer::kSent) << text_;
    const Result<job::SideList> list = job::ParseSideList(text_);
    EXPECT_TRUE(list.ok()) << text_;
    return list.ok() ? *list : job::SideList{};
  }

  TempFolder folder_;
  EventLoop loop_;
  std::shared_ptr<Cloud> cloud_ = std::make_shared<Cloud>();
  job::SideList list_;
  std::optional<SideFilesAnswer> answer_;
  std::string text_;
  std::optional<SideSender> sender_;
};

TEST_F(SideSenderTest, TheLineNamesTheUploadsOfAllFiles) {
  const std::string large((size_t{32} << 20) + 7, 'x');
  Put("a.txt", "one");
  Put("empty", "");
  Put("m/large", large);
  Send();
  const job::SideList list = Sent();
  ASSERT_EQ(list.files.size(), 3u);
  EXPECT_EQ(BytesOf(list.files[0]), "one");
  EXPECT_EQ(BytesOf(list.files[1]), "");
  EXPECT_TRUE(BytesOf(list.files[2]) == large);
  EXPECT_EQ(list.files[2].etags,
            (std::vector<std::string>{"etag-m/large-1", "etag-m/large-2", "etag-m/large-3"}));
  EXPECT_EQ(cloud_->begun, 3u);
}

TEST_F(SideSenderTest, ManyFilesAreBegunTogether) {
  for (int i = 100; i < 350; ++i) Put("f" + std::to_string(i), std::to_string(i));
  Send();
  const job::SideList list = Sent();
  ASSERT_EQ(list.files.size(), 250u);
  for (const job::SideFile& file : list.files) EXPECT_EQ("f" + BytesOf(file), file.name);
  EXPECT_EQ(cloud_->begun, 250u);
  EXPECT_LT(cloud_->asked, 250u) << "not one by one";
}

TEST_F(SideSenderTest, WhoIsAwayCostsNoTry) {
  Put("a", "bytes");
  cloud_->ask_fails = {Error{Code::kUnavailable, "away"}, Error{Code::kStale, "not its own yet"},
                       std::nullopt};
  cloud_->put_fails = {Error{Code::kUnavailable, "away"}, Error{Code::kStale, "the URL has ended"}};
  Send();
  EXPECT_EQ(BytesOf(Sent().files[0]), "bytes");
  EXPECT_EQ(cloud_->begun, 1u);
}

// As after the coordinator was replaced, and where a rule of the bucket has ended it.
TEST_F(SideSenderTest, AnUploadThatIsGoneIsBegunAnewWithAllItsParts) {
  const std::string two((size_t{16} << 20) + 1, 'y');
  Put("a", two);
  cloud_->ask_fails = {std::nullopt, Error{Code::kNotFound, "there is no such upload here"}};
  Send();
  EXPECT_TRUE(BytesOf(Sent().files[0]) == two);
  EXPECT_EQ(cloud_->begun, 2u);
  answer_.reset();
  list_.files.clear();
  Put("b", two);
  cloud_->put_fails = {std::nullopt, Error{Code::kNotFound, "NoSuchUpload"}};
  Send();
  EXPECT_TRUE(BytesOf(Sent().files[0]) == two);
  EXPECT_EQ(cloud_->begun, 4u);
}

TEST_F(SideSenderTest, WhatNobodyMendsIsTheEndOfTheAttempt) {
  Put("a", "bytes");
  cloud_->put_fails = {Error{Code::kPermission, "s3:PutObject is missing"}};
  Send();
  EXPECT_EQ(answer_, SideFilesAnswer::kNotSent);
  EXPECT_EQ(text_, "\"a\" could not be sent to the store: s3:PutObject is missing");
  // A mini-batch that is not this node's any more.
  answer_.reset();
  cloud_->ask_fails.assign(100'000, Error{Code::kStale, "node 0 does not hold mini-batch 4"});
  Send();
  EXPECT_EQ(answer_, SideFilesAnswer::kNotSent);
  EXPECT_THAT(text_, HasSubstr("does not hold mini-batch 4"));
}

TEST_F(SideSenderTest, AFileThatIsAnotherByThenIsNotSent) {
  Put("a", "bytes");
  list_.files[0].bytes = 4;
  Send();
  EXPECT_EQ(answer_, SideFilesAnswer::kNotSent);
  EXPECT_THAT(text_, HasSubstr("it was changed after run() had returned"));
}

TEST_F(SideSenderTest, AProcessThatIsGoneIsAnsweredNothing) {
  Put("a", "bytes");
  cloud_->ask_fails.assign(100'000, Error{Code::kUnavailable, "away"});
  list_.folder = "process003-1f/9";
  sender_->Send(3, 4, list_);
  sender_->Forget(3);
  {
    const std::lock_guard lock(cloud_->mutex);
    cloud_->ask_fails.clear();
  }
  Put("b", "more");
  Send();  // of its successor
  ASSERT_EQ(Sent().files.size(), 2u);
  EXPECT_TRUE(sender_->Finish(kSendLimit));
}

}  // namespace
}  // namespace parallelrun::agent
