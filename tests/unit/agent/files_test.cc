// The agent's files: the copy of the code, and the upload of logs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "agent/code_copy.h"
#include "agent/logs/log_upload.h"
#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/http/target.h"
#include "tests/unit/agent/temp_folder.h"

namespace parallelrun {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

TEST(AgentCodeCopy, CopiesWhatAScriptNeeds) {
  const TempFolder t;
  t.Write("code/score.py", "print(1)\n");
  t.Write("code/pkg/deep/mod.py", std::string(300'000, '#'));
  t.Write("code/run.sh", "#!/bin/sh\n");
  t.Write("code/empty", "");
  chmod(t.path("code/run.sh").c_str(), 0555);
  t.Write("code/.git/config", "secret");
  t.Write("code/pkg/__pycache__/x.pyc", "x");
  t.Write("code/logs/old.txt", "x");
  t.Write("outside/data.txt", "far");
  fs::create_symlink("pkg/deep/mod.py", t.path("code/inside"));
  fs::create_symlink("../outside/data.txt", t.path("code/outside"));
  fs::create_symlink("nowhere", t.path("code/dangling"));
  mkfifo(t.path("code/pipe").c_str(), 0600);
  // A work folder within the code root is not copied into itself.
  const std::string work = t.path("code/work");
  const Status status = CopyCode(t.path("code"), work);
  ASSERT_TRUE(status.ok()) << status.error().message;

  EXPECT_EQ(t.Read("code/work/score.py"), "print(1)\n");
  EXPECT_EQ(t.Read("code/work/pkg/deep/mod.py").size(), 300'000U);
  EXPECT_EQ(fs::read_symlink(work + "/inside"), "pkg/deep/mod.py");
  EXPECT_EQ(t.Read("code/work/outside"), "far");
  EXPECT_TRUE(fs::is_symlink(work + "/dangling"));
  EXPECT_EQ(fs::file_size(work + "/empty"), 0U);
  struct stat info {};
  stat((work + "/run.sh").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0755U);
  for (const char* name : {".git", "pkg/__pycache__", "logs/old.txt", "pipe", "work"}) {
    EXPECT_FALSE(fs::exists(work + "/" + name)) << name;
  }
  EXPECT_TRUE(fs::is_directory(work + "/logs"));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/put")).ok());
  t.Write("code/work/outputs/x", "1");
  EXPECT_EQ(t.Read("out/put/x"), "1");
  // What is linked already is left alone: its volume may hang.
  fs::remove_all(t.path("out/put"));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/put")).ok());
  EXPECT_FALSE(fs::exists(t.path("out/put")));
  ASSERT_TRUE(LinkOutputs(work, t.path("out/other")).ok());
  EXPECT_EQ(fs::read_symlink(work + "/outputs"), t.path("out/other"));
}

TEST(AgentCodeCopy, RefusesWhatIsTooBigOrTaken) {
  const TempFolder t;
  t.Write("code/a", std::string(3 << 20, 'x'));
  t.Write("code/b", "x");
  const Status big = CopyCode(t.path("code"), t.path("w1"), {2 << 20, 100});
  ASSERT_FALSE(big.ok());
  EXPECT_EQ(big.error().code, Code::kInvalid);
  EXPECT_THAT(big.error().message, HasSubstr("3.0 MiB"));
  EXPECT_FALSE(CopyCode(t.path("code"), t.path("w2"), {100 << 20, 1}).ok());
  EXPECT_EQ(CopyCode(t.path("code"), t.path("code")).error().code, Code::kExists);
  EXPECT_EQ(CopyCode(t.path("none"), t.path("w3")).error().code, Code::kNotFound);
}

TEST(AgentLogUpload, Targets) {
  EXPECT_EQ(LogTarget("user/stdout/3/process000.stdout.txt", 3),
            "user/stdout/3/process000.stdout.txt");
  EXPECT_EQ(LogTarget("perf/3/x/y", 3), "perf/3/x/y");
  EXPECT_EQ(LogTarget("mine/a b.txt", 3), "user/files/3/mine/a b.txt");
  EXPECT_EQ(LogTarget("user/stdout/4/x", 3), "user/files/3/user/stdout/4/x");
  EXPECT_EQ(LogTarget("a/b/c/d/e/f", 3), std::nullopt);
  EXPECT_EQ(LogTarget(std::string(256, 'x'), 3), std::nullopt);
}

// Writes what is put, as a coordinator does.
class LogServer {
 public:
  LogServer() {
    HttpServerOptions options;
    auto started = HttpServer::Start(
        loop_, options, [](const HttpRequest&) { return size_t{8} << 20; },
        [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(*exchange); });
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LogServer() {
    loop_.Stop();
    thread_.join();
  }
  std::unique_ptr<HttpClient> Client() const {
    HttpClientOptions options;
    options.base_url = "http://127.0.0.1:" + std::to_string(port_);
    return std::move(*HttpClient::Make(options));
  }
  std::map<std::string, std::string> files;  // after Finish
  int requests = 0;
  int unavailable = 0;  // answers of 503 that come first
  size_t largest = 0;

 private:
  void Handle(HttpExchange& exchange) {
    const HttpRequest& request = exchange.request();
    ++requests;
    if (unavailable > 0) {
      --unavailable;
      return exchange.Respond(TextResponse(503, "later"));
    }
    const auto segments = PathSegments(request.path);
    if (!segments.ok()) return exchange.Respond(TextResponse(400, "bad path"));
    std::string name;
    for (size_t i = 4; i < segments->size(); ++i) name += "/" + (*segments)[i];
    if (name.find("forbidden") != std::string::npos) {
      return exchange.Respond(TextResponse(403, "no"));
    }
    const size_t offset = std::stoul(QueryParameter(request.query, "offset").value_or("x"));
    std::string& file = files[name];
    if (file.size() < offset + request.body.size()) file.resize(offset + request.body.size());
    file.replace(offset, request.body.size(), request.body);
    largest = std::max(largest, request.body.size());
    exchange.Respond(TextResponse(200, "ok"));
  }
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST(AgentLogUpload, SendsWhatGrowsAndFollowsNoLinks) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 2;
  std::string big;
  for (int i = 0; big.size() < (5 << 19); ++i) big += std::to_string(i) + "\n";
  t.Write("secret.txt", "secret");
  t.Write("logs/user/stdout/0/process000.stdout.txt", "one\n");
  {
    LogUploader uploader(t.path("logs"), 0, server.Client(), milliseconds(5));
    t.Write("logs/mine/\xC3\xA4 b%.txt", big);
    t.Write("logs/forbidden.txt", "x");
    fs::create_symlink(t.path("secret.txt"), t.path("logs/link.txt"));
    fs::create_symlink(t.path(), t.path("logs/folder"));
    mkfifo(t.path("logs/pipe").c_str(), 0600);
    std::ofstream(t.path("logs/user/stdout/0/process000.stdout.txt"), std::ios::app) << "two\n";
    EXPECT_TRUE(uploader.Finish(seconds(20)));
  }
  EXPECT_EQ(server.files["/user/stdout/0/process000.stdout.txt"], "one\ntwo\n");
  EXPECT_EQ(server.files["/user/files/0/mine/\xC3\xA4 b%.txt"], big);
  EXPECT_EQ(server.files.size(), 2U);
  EXPECT_EQ(server.largest, size_t{1} << 20);
}

TEST(AgentLogUpload, AFileAboveTheLimitIsTriedAgainToo) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 1;
  t.Write("logs/forbidden.txt", "x");
  fs::resize_file(t.path("logs/forbidden.txt"), (uint64_t{1} << 30) + 1);
  {
    LogUploader uploader(t.path("logs"), 0, server.Client(), milliseconds(5));
    EXPECT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_EQ(server.requests, 2);  // 503, 403
}

TEST(AgentLogUpload, GivesUpAtTheLimit) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 1 << 30;
  t.Write("logs/x", "x");
  LogUploader uploader(t.path("logs"), 0, server.Client(), milliseconds(5));
  EXPECT_FALSE(uploader.Finish(milliseconds(100)));
}

}  // namespace
}  // namespace parallelrun
