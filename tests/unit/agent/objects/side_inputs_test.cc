// Side inputs in a store become files, once a node, or it is told why not.
#include "agent/objects/side_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/fault_files.h"
#include "tests/support/memory_store.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLongest = seconds(60);  // ends a test that hangs
constexpr char kRoot[] = "memory://bucket/m";

class SideInputFetcherTest : public ::testing::Test {
 protected:
  SideInputFetcherTest() { EXPECT_TRUE(disk_->MakeFolders("/work").ok()); }
  ~SideInputFetcherTest() override { disk_->Hang(""); }

  void Put(const std::string& name, const std::string& bytes) {
    objects_->Put(std::string(kRoot) + "/" + name, bytes);
  }
  // As a coordinator lists it now.
  job::SideInput Listed(const std::vector<std::string>& names) {
    job::SideInput side{"model", "bucket", kRoot, kRoot, false, {}};
    const auto store = objects_->Open(kRoot);
    for (const std::string& name : names) {
      const auto found = store->Stat(name);
      side.objects.push_back({name, (*found)->size, std::string((*found)->version.bytes())});
    }
    return side;
  }
  void Begin(const job::SideInput& side, const std::string& boot = "boot 1") {
    ended_.reset();
    JobStore store;
    store.name = "bucket";
    store.wished.url = "memory://bucket";
    store.urls = urls_;
    SideInputFetcher::Facts facts;
    facts.ask_urls = [this](const job::SideUrlsWanted& wanted, const std::stop_token&) {
      return Urls(wanted);
    };
    facts.files = disk_;
    facts.folder = "/work/side-inputs-0";
    facts.boot = boot;
    facts.side_inputs = {side};
    facts.stores = {store};
    facts.open = [this, objects = objects_](const JobStore& at, std::stop_token stop) {
      ++opened_;
      if (gone_) {
        return Result<std::unique_ptr<store::Store>>(
            Error{Code::kUnavailable, "memory://bucket: connection refused"});
      }
      return Result(objects->Open(at.wished.url, std::move(stop)));
    };
    fetcher_ = std::make_unique<SideInputFetcher>(loop_, std::move(facts), [this](Status status) {
      ended_ = std::move(status);
      loop_.Stop();
    });
  }
  // What the coordinator answers: URLs of all objects from that one on.
  Result<job::SideUrls> Urls(const job::SideUrlsWanted& wanted) {
    if (!signs_)
      return Error{Code::kUnavailable, "the coordinator gives no URLs: the keys have ended"};
    job::SideUrls urls{1800, {}};
    for (size_t i = wanted.first; i < 3; ++i) {
      urls.urls.push_back("https://s3/" + wanted.side_input + std::to_string(i));
    }
    return urls;
  }
  // Until it has ended.
  const Status& Await() {
    const auto timer = loop_.After(kLongest, [this] { loop_.Stop(); });
    if (!ended_) loop_.Run();
    loop_.Cancel(timer);
    if (!ended_) ended_ = Error{Code::kTimeout, "nothing came of it"};
    return *ended_;
  }
  std::string AwaitTrouble() {
    const auto until = std::chrono::steady_clock::now() + kLongest;
    std::string text = fetcher_->Now().text;
    while (text.find("tried again") == std::string::npos &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::yield();
      text = fetcher_->Now().text;
    }
    return text;
  }
  // Of the file, where the script finds it.
  std::string FileOf(const job::SideInput& side, const std::string& name) {
    JobSettings settings;
    settings.side_inputs = {side};
    settings.arguments = {job::SideInputMark("model")};
    PlaceSideInputs("/work/side-inputs-0", settings);
    return settings.arguments[0] + "/" + name;
  }

  EventLoop loop_;
  std::shared_ptr<FaultFiles> disk_ = std::make_shared<FaultFiles>();
  std::shared_ptr<MemoryObjects> objects_ = std::make_shared<MemoryObjects>();
  std::atomic<bool> gone_ = false;         // the store
  std::atomic<int> opened_ = 0;            // stores
  std::shared_ptr<store::UrlTable> urls_;  // where its objects are read by URLs
  std::atomic<bool> signs_ = true;         // the coordinator
  std::optional<Status> ended_;
  std::unique_ptr<SideInputFetcher> fetcher_;
};

TEST_F(SideInputFetcherTest, AllOfItIsThereAndStays) {
  Put("config.json", "{}");
  Put("deep/weights.bin", std::string(5000, 'w'));
  Put("empty", "");
  const job::SideInput model = Listed({"config.json", "deep/weights.bin", "empty"});
  Begin(model);
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(disk_->Contents(FileOf(model, "config.json")), "{}");
  EXPECT_EQ(disk_->Contents(FileOf(model, "deep/weights.bin")), std::string(5000, 'w'));
  EXPECT_EQ(disk_->Contents(FileOf(model, "empty")), "");
  EXPECT_EQ(fetcher_->Now().bytes, 5002U);
  EXPECT_TRUE(fetcher_->Finish(kLongest));
  EXPECT_TRUE(disk_->Has(FileOf(model, "config.json")));
}

TEST_F(SideInputFetcherTest, TheNextAgentOfTheNodeFetchesNothingAgain) {
  Put("w", "weights");
  const job::SideInput model = Listed({"w"});
  Begin(model);
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  fetcher_.reset();
  opened_ = 0;
  Begin(model);
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(opened_, 0);
  fetcher_.reset();

  // Of a machine that was down nobody knows what is whole.
  Begin(model, "boot 2");
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(opened_, 1);
  fetcher_.reset();

  // A file that somebody has cut is fetched again, and so is another version.
  disk_->Put(FileOf(model, "w"), "we");
  Begin(model, "boot 2");
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(disk_->Contents(FileOf(model, "w")), "weights");
  fetcher_.reset();
  Put("w", "WEIGHTS");
  const job::SideInput newer = Listed({"w"});
  Begin(newer, "boot 2");
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(disk_->Contents(FileOf(newer, "w")), "WEIGHTS");
  EXPECT_FALSE(disk_->Has(FileOf(model, "w")));
}

TEST_F(SideInputFetcherTest, AnObjectThatChangedOrWentIsNamed) {
  Put("w", "weights");
  const job::SideInput model = Listed({"w"});
  Put("w", "other");
  Begin(model);
  ASSERT_FALSE(Await().ok());
  EXPECT_EQ(Await().error().code, Code::kStale);
  EXPECT_THAT(Await().error().message,
              HasSubstr("the side input model: memory://bucket/m/w is not what was listed: it "));
  EXPECT_THAT(Await().error().message, HasSubstr("--overwrite"));
  fetcher_.reset();
  objects_->Remove("memory://bucket/m/w");
  Begin(model);
  ASSERT_FALSE(Await().ok());
  EXPECT_THAT(Await().error().message, HasSubstr("it was deleted. "));
}

TEST_F(SideInputFetcherTest, AStoreThatIsAwayIsAskedAgain) {
  Put("w", "weights");
  const job::SideInput model = Listed({"w"});
  gone_ = true;
  Begin(model);
  EXPECT_EQ(AwaitTrouble(),
            "fetching side input model, 0 of 7 bytes: memory://bucket: connection refused; it is "
            "tried again");
  gone_ = false;
  ASSERT_TRUE(Await().ok()) << Await().error().message;
}

TEST_F(SideInputFetcherTest, ADiskThatIsFullIsWaitedFor) {
  Put("w", std::string(5000, 'w'));
  const job::SideInput model = Listed({"w"});
  disk_->SetCapacity(100);
  Begin(model);
  EXPECT_THAT(AwaitTrouble(), HasSubstr("make room there"));
  EXPECT_EQ(fetcher_->Now().bytes, 0U);
  disk_->SetCapacity(std::nullopt);
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(disk_->Contents(FileOf(model, "w")), std::string(5000, 'w'));
}

TEST_F(SideInputFetcherTest, ItsEndDoesNotWaitForADiskThatHangs) {
  Put("w", "weights");
  const job::SideInput model = Listed({"w"});
  disk_->Hang("/work/side-inputs-0");
  Begin(model);
  disk_->AwaitHanging();
  EXPECT_FALSE(fetcher_->Finish(milliseconds(1)));
  fetcher_.reset();
  const std::weak_ptr<FaultFiles> disk = std::exchange(disk_, nullptr);
  disk.lock()->Hang("");
  while (!disk.expired()) std::this_thread::yield();
  loop_.Post([this] { loop_.Stop(); });
  loop_.Run();
  EXPECT_FALSE(ended_);
  disk_ = std::make_shared<FaultFiles>();
}

TEST(PlaceSideInputs, TheirPathsStandWhereTheScriptLooks) {
  JobSettings job;
  job.side_inputs = {
      {"model", "s", "s3://b/m/", "s3://b/m", false, {{"w.bin", 1, "e"}}},
      {"words", "s", "s3://b/x/words.txt", "s3://b/x", true, {{"words.txt", 1, "e"}}}};
  const std::string model = job::SideInputMark("model");
  const std::string words = job::SideInputMark("words");
  job.arguments = {"--model", model + "/w.bin", "a=" + words + ":" + model, "plain"};
  job.worker = nlohmann::json{
      {"sideInputs", {{"model", model}, {"words", words}, {"other", "/mnt/other"}}},
      {"modelFolder",
       model}}.dump();
  PlaceSideInputs("/work/side-inputs-3", job);
  const nlohmann::json worker = nlohmann::json::parse(job.worker);
  const std::string folder = worker["sideInputs"]["model"];
  EXPECT_THAT(folder, testing::MatchesRegex("/work/side-inputs-3/[0-9a-f]{16}/model"));
  EXPECT_EQ(worker["modelFolder"], folder);
  const std::string file = folder.substr(0, folder.rfind('/')) + "/words/words.txt";
  EXPECT_EQ(worker["sideInputs"]["words"], file);
  EXPECT_EQ(worker["sideInputs"]["other"], "/mnt/other");
  EXPECT_THAT(job.arguments, testing::ElementsAre("--model", folder + "/w.bin",
                                                  "a=" + file + ":" + folder, "plain"));
}

TEST(FetchingText, IsInTheUnitOfTheWhole) {
  EXPECT_EQ(FetchingText("model", 1288490189, uint64_t{4} << 30),
            "fetching side input model, 1.2 of 4.0 GB");
  EXPECT_EQ(FetchingText("a", 0, 3 << 20), "fetching side input a, 0.0 of 3.0 MB");
  EXPECT_EQ(FetchingText("a", 1024, 2048), "fetching side input a, 1.0 of 2.0 kB");
  EXPECT_EQ(FetchingText("a", 0, 7), "fetching side input a, 0 of 7 bytes");
}

TEST_F(SideInputFetcherTest, ANodeWithoutKeysAsksForUrlsUntilItIsGivenSome) {
  for (const char* name : {"a", "b", "c"}) Put(name, name);
  urls_ = std::make_shared<store::UrlTable>();
  signs_ = false;
  const job::SideInput model = Listed({"a", "b", "c"});
  Begin(model);
  EXPECT_THAT(AwaitTrouble(), HasSubstr("the coordinator gives no URLs: the keys have ended"));
  EXPECT_FALSE(ended_) << "it may give some later";
  signs_ = true;
  ASSERT_TRUE(Await().ok()) << Await().error().message;
  EXPECT_EQ(disk_->Contents(FileOf(model, "c")), "c");
  for (size_t i = 0; i < 3; ++i) {
    const auto url =
        urls_->Get(std::string(kRoot) + "/" + model.objects[i].name, SystemClock().Now());
    ASSERT_TRUE(url) << i;
    EXPECT_EQ(url->url, "https://s3/model" + std::to_string(i));
    EXPECT_EQ(url->version.bytes(), model.objects[i].version);
  }
}

}  // namespace
}  // namespace parallelrun::agent
