// The reflector against a server of steps, and the store that it fills. The cases are client-go's:
// tools/cache/reflector_test.go, reflector_watchlist_test.go, the_real_fifo_test.go.
#include "kube/reflector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <stdexcept>
#include <variant>
#include <vector>

#include "kube/informer_store.h"

namespace parallelrun::kube {
namespace {

using Json = nlohmann::json;

struct Digest {
  std::string value;
};
using Store = InformerStore<Digest>;

Json Object(const std::string& name, const std::string& version, const std::string& value = "v") {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}, {"resourceVersion", version}}},
          {"value", value}};
}
WatchEvent Added(const Json& object) { return {WatchEventType::kAdded, object}; }
WatchEvent Modified(const Json& object) { return {WatchEventType::kModified, object}; }
WatchEvent Deleted(const Json& object) { return {WatchEventType::kDeleted, object}; }
WatchEvent Bookmark(const std::string& version, bool initial_end = false) {
  Json object = {{"metadata", {{"resourceVersion", version}}}};
  if (initial_end) object["metadata"]["annotations"]["k8s.io/initial-events-end"] = "true";
  return {WatchEventType::kBookmark, object};
}
ApiError Failure(int status) {
  HttpResponse response;
  response.status = status;
  return ApiErrorOf(response, "test");
}
ApiError NoAnswer(Code code = Code::kUnavailable) { return ApiErrorOf(Error{code, "no answer"}); }
ListPage Page(std::vector<Json> items, const std::string& version, const std::string& token = "") {
  return {std::move(items), version, token};
}

// A watch: what Next answers, one after the other; a clean end comes last.
struct Stream {
  std::vector<std::variant<WatchEvent, ApiError>> steps;
};
using Step = std::variant<ListPage, Stream, ApiError>;

// Answers the reflector's calls from a script, and writes them down. Stops it at the script's end.
class FakeServer : public ListWatcher {
 public:
  ApiResult<ListPage> List(const std::string& token, int limit) override {
    log.push_back("list" + (token.empty() ? "" : " " + token) +
                  (limit == 500 ? "" : " limit " + std::to_string(limit)));
    Step step = Take();
    if (auto* page = std::get_if<ListPage>(&step)) return std::move(*page);
    return ErrorOf(step);
  }
  ApiResult<std::unique_ptr<EventSource>> Watch(const WatchOptions& options) override {
    log.push_back(options.send_initial_events ? "watch-list" : "watch " + options.resource_version);
    timeouts.push_back(options.timeout);
    Step step = Take();
    if (auto* stream = std::get_if<Stream>(&step)) {
      return std::unique_ptr<EventSource>(new Source(*this, std::move(*stream)));
    }
    return ErrorOf(step);
  }

  std::deque<Step> script;
  std::vector<std::string> log;
  std::vector<Duration> timeouts;
  std::function<void()> stop;
  std::function<void()> on_end;  // of a stream, before its clean end

 private:
  class Source : public EventSource {
   public:
    Source(FakeServer& server, Stream stream) : server_(server), stream_(std::move(stream)) {}
    ApiResult<std::optional<WatchEvent>> Next() override {
      if (next_ == stream_.steps.size()) {
        if (server_.on_end) server_.on_end();
        return std::optional<WatchEvent>();
      }
      auto& step = stream_.steps[next_++];
      if (auto* event = std::get_if<WatchEvent>(&step)) {
        return std::optional<WatchEvent>(std::move(*event));
      }
      return std::get<ApiError>(step);
    }
    void Cancel() override {}

   private:
    FakeServer& server_;
    Stream stream_;
    size_t next_ = 0;
  };

  Step Take() {
    if (script.empty()) {
      stop();
      return NoAnswer();
    }
    Step step = std::move(script.front());
    script.pop_front();
    return step;
  }
  static ApiError ErrorOf(const Step& step) {
    if (const auto* error = std::get_if<ApiError>(&step)) return *error;
    ADD_FAILURE() << "the script has something else here";
    return NoAnswer();
  }
};

class FakeClock : public Clock {
 public:
  Instant Now() const override { return now; }
  WallTime WallNow() const override { return {}; }
  Instant now{seconds(1000)};
};

class KubeReflector : public testing::Test {
 protected:
  KubeReflector()
      : store_(
            [](const Json& object) -> std::optional<Digest> {
              if (object.value("value", "") == "hidden") return std::nullopt;
              return Digest{object.at("value").get<std::string>()};
            },
            [](const Digest& digest) { return digest.value; },
            [this](const InformerEvent<Digest>& event) {
              events_.push_back(event.key + " " + (event.before ? event.before->value : "-") + ">" +
                                (event.after ? event.after->value : "-"));
              if (on_event_) on_event_(events_.back());
            }),
        sink_(store_.MakeScope("")) {
    // As real ones, streams that end do so after a while.
    server_.on_end = [this] { clock_->now += seconds(5); };
  }

  // Runs the script; what was done stands in server_.log, waits_ and events_.
  void Run(bool watch_list = false) {
    ReflectorOptions options;
    options.name = "test";
    options.watch_list = watch_list;
    options.clock = clock_;
    options.random = [this] { return random_; };
    options.sleep = [this](Duration wait) {
      waits_.push_back(wait);
      clock_->now += wait;
    };
    Reflector reflector(server_, *sink_, std::move(options));
    server_.stop = [&] { reflector.Stop(); };
    reflector.Run();
    stats_ = reflector.stats();
  }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, digest] : store_.All()) keys.push_back(key + "=" + digest->value);
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  using Texts = std::vector<std::string>;

  const std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  FakeServer server_;
  double random_ = 0;
  Texts events_;
  std::function<void(const std::string&)> on_event_;
  std::vector<Duration> waits_;
  Store store_;
  std::unique_ptr<ReflectorSink> sink_;
  ReflectorStats stats_;
};

TEST_F(KubeReflector, ListsThenWatches) {
  server_.script = {Page({Object("a", "1"), Object("b", "2")}, "10"),
                    Stream{{Modified(Object("a", "11", "w")), Deleted(Object("b", "12")),
                            Added(Object("c", "13")), Bookmark("20")}},
                    Stream{{}}};
  EXPECT_FALSE(store_.HasSynced());
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "watch 20", "watch 20"}));
  EXPECT_EQ(Keys(), (Texts{"ns/a=w", "ns/c=v"}));
  EXPECT_TRUE(store_.HasSynced());
  EXPECT_TRUE(store_.HasSeen("ns", 20));
  EXPECT_FALSE(store_.HasSeen("ns", 21));
  EXPECT_EQ(stats_.lists, 1u);
  EXPECT_EQ(stats_.events, 4u);
  EXPECT_TRUE(waits_.empty());
}

TEST_F(KubeReflector, WatchesLastARandomTimeFromFiveToTenMinutes) {
  for (const double random : {0.0, 0.5, 0.999}) {
    random_ = random;
    server_.script = {Page({}, "10"), Stream{{}}};
    Run();
  }
  EXPECT_EQ(server_.timeouts[0], seconds(300));
  for (const Duration timeout : server_.timeouts) EXPECT_LT(timeout, seconds(600));
  EXPECT_GT(server_.timeouts.back(), seconds(599));
}

TEST_F(KubeReflector, PagesAreOneReplacement) {
  server_.script = {Page({Object("a", "1")}, "10", "next"), Page({Object("b", "2")}, "10"),
                    Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "list next", "watch 10", "watch 10"}));
  EXPECT_EQ(Keys(), (Texts{"ns/a=v", "ns/b=v"}));
}

TEST_F(KubeReflector, AnExpiredContinueListsInFull) {
  server_.script = {Page({Object("gone", "1")}, "10", "next"), Failure(410),
                    Page({Object("b", "2")}, "11"), Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "list next", "list limit 0", "watch 11", "watch 11"}));
  EXPECT_EQ(Keys(), (Texts{"ns/b=v"}));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(KubeReflector, ConnectionRefusedAnd429KeepTheVersionAndDoNotRelist) {
  ApiError busy = Failure(429);
  busy.retry_after = seconds(9);
  server_.script = {Page({}, "10"),           NoAnswer(), busy, Failure(503),
                    NoAnswer(Code::kTimeout), Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "watch 10", "watch 10", "watch 10", "watch 10",
                                "watch 10"}));
  ASSERT_EQ(waits_.size(), 4u);
  EXPECT_EQ(waits_[0], milliseconds(800));
  EXPECT_EQ(waits_[1], seconds(9)) << "Retry-After is longer than the back-off";
  EXPECT_EQ(waits_[2], milliseconds(3200));
  EXPECT_EQ(stats_.lists, 1u);
}

TEST_F(KubeReflector, BackOffDoublesTo30SecondsWithJitterAndResetsAfterTwoHealthyMinutes) {
  random_ = 0.5;
  server_.script = {Page({}, "10")};
  for (int i = 0; i < 8; ++i) server_.script.emplace_back(NoAnswer());
  server_.script.emplace_back(Stream{{Bookmark("11")}});
  server_.script.emplace_back(NoAnswer());
  server_.on_end = [this] { clock_->now += seconds(121); };
  Run();
  ASSERT_EQ(waits_.size(), 9u);
  const std::vector<int> expected = {1200, 2400, 4800, 9600, 19200, 38400, 45000, 45000, 1200};
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(waits_[i], milliseconds(expected[i])) << i;
}

TEST_F(KubeReflector, GoneOnAWatchRelistsAtOnce) {
  server_.script = {Page({Object("a", "1")}, "10"), Failure(410), Page({}, "30"), Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "list", "watch 30", "watch 30"}));
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/a v>-"})) << "a relist makes the deletions up";
  EXPECT_TRUE(waits_.empty());
}

TEST_F(KubeReflector, GoneWithinTheStreamRelists) {
  server_.script = {Page({}, "10"), Stream{{Added(Object("a", "11")), Failure(410)}},
                    Page({Object("a", "11"), Object("b", "12")}, "30"), Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "list", "watch 30", "watch 30"}));
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/b ->v"})) << "what is held already is no news";
}

TEST_F(KubeReflector, GoneAgainAndAgainBacksOff) {
  server_.script = {Page({}, "10"), Failure(410),   Page({}, "10"),
                    Failure(410),   Page({}, "10"), Failure(410)};
  Run();
  EXPECT_EQ(waits_.size(), 2u);
}

TEST_F(KubeReflector, ATooLargeResourceVersionRelists) {
  ApiError ahead = Failure(504);
  ahead.message =
      "Too large resource version: 10, current: 7";  // of a server restored from a backup
  server_.script = {Page({}, "10"), ahead, Page({}, "7"), Stream{{}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "list", "watch 7", "watch 7"}));
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(KubeReflector, ADeletionThatAListFoundIsToldOnce) {
  server_.script = {Page({Object("a", "1")}, "10"),
                    Failure(410),
                    Page({}, "20"),
                    Stream{{Deleted(Object("a", "3")), Failure(410)}},
                    Page({}, "30"),
                    Stream{{}}};
  Run();
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/a v>-"}));
}

TEST_F(KubeReflector, DeletedThenAddedAgainIsBoth) {
  server_.script = {Page({Object("a", "1")}, "10"),
                    Stream{{Deleted(Object("a", "11")), Added(Object("a", "12", "w"))}}};
  Run();
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/a v>-", "ns/a ->w"}));
}

TEST_F(KubeReflector, OtherErrorsOfAWatchRelist) {
  for (const int status : {400, 403, 404}) {
    server_.log.clear();
    waits_.clear();
    server_.script = {Page({}, "10"), Failure(status), Page({}, "11"), Stream{{}}};
    Run();
    EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "list", "watch 11", "watch 11"})) << status;
    EXPECT_EQ(waits_.size(), 1u) << status;
  }
}

TEST_F(KubeReflector, ABrokenStreamGoesOnFromTheLastVersionAndABadOneRelists) {
  server_.script = {Page({}, "10"), Stream{{Added(Object("a", "11")), NoAnswer()}},
                    Stream{{Bookmark("15"), NoAnswer(Code::kTimeout)}},
                    Stream{{NoAnswer(Code::kCorrupt)}}, Page({Object("a", "11")}, "20")};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "watch 11", "watch 15", "list", "watch 20"}));
  EXPECT_EQ(waits_.size(), 3u);
}

TEST_F(KubeReflector, AWatchThatEndsAtOnceWithoutAnEventBacksOff) {
  server_.on_end = nullptr;
  server_.script = {Page({}, "10"), Stream{{}}, Stream{{Bookmark("11")}}};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "watch 10", "watch 11"}));
  EXPECT_EQ(waits_.size(), 1u);
}

TEST_F(KubeReflector, AListThatFailsIsTriedAgain) {
  server_.script = {Failure(500), NoAnswer(), Failure(403), Page({}, ""), Page({}, "10")};
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "list", "list", "list", "list", "watch 10"}));
  EXPECT_EQ(waits_.size(), 4u);
  EXPECT_EQ(stats_.errors, 4u);
}

TEST_F(KubeReflector, AWrongTypeInTheStreamIsDroppedAndTheRestKept) {
  Json nameless = {{"metadata", {{"resourceVersion", "11"}}}};
  Json valueless = Object("odd", "12");
  valueless["value"] = 7;  // the digest function throws
  server_.script = {Page({}, "10"),
                    Stream{{Added(nameless), Added(valueless), Added(Object("a", "13"))}}};
  Run();
  EXPECT_EQ(Keys(), (Texts{"ns/a=v"}));
  EXPECT_EQ(server_.log.back(), "watch 13");
}

TEST_F(KubeReflector, ObjectsWithoutADigestAreLeftOutAndLeaveWhenTheyLoseIt) {
  server_.script = {Page({Object("a", "1"), Object("h", "2", "hidden")}, "10"),
                    Stream{{Modified(Object("a", "11", "hidden"))}}};
  Run();
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/a v>-"}));
}

TEST_F(KubeReflector, TheIndexFollows) {
  server_.script = {Page({Object("a", "1", "x"), Object("b", "2", "x")}, "10"),
                    Stream{{Modified(Object("a", "11", "y"))}}};
  Run();
  EXPECT_EQ(store_.Indexed("x").size(), 1u);
  EXPECT_EQ(store_.Indexed("y").size(), 1u);
  EXPECT_TRUE(store_.Indexed("z").empty());
}

TEST_F(KubeReflector, EachNamespaceIsReplacedByItself) {
  const auto other = store_.MakeScope("other");
  other->BeginStage();
  Json object = Object("o", "5");
  object["metadata"]["namespace"] = "other";
  other->Stage(object);
  other->CommitStage("6");
  server_.script = {Page({Object("a", "1")}, "10"), Failure(410), Page({}, "12"), Stream{{}}};
  Run();
  EXPECT_EQ(Keys(), (Texts{"other/o=v"}));
  EXPECT_TRUE(store_.HasSeen("other", 6));
  EXPECT_FALSE(store_.HasSeen("other", 7));
}

TEST_F(KubeReflector, AHandlerThatThrowsHearsTheNextEvent) {
  on_event_ = [](const std::string& event) {
    if (event.starts_with("ns/a ")) throw std::runtime_error("odd");
  };
  server_.script = {Page({Object("a", "1"), Object("b", "2")}, "10"),
                    Stream{{Modified(Object("a", "11", "w")), Added(Object("c", "12"))}}};
  Run();
  std::sort(events_.begin(), events_.end());
  EXPECT_EQ(events_, (Texts{"ns/a ->v", "ns/a v>w", "ns/b ->v", "ns/c ->v"}));
  EXPECT_EQ(Keys(), (Texts{"ns/a=w", "ns/b=v", "ns/c=v"})) << "the cache shows what was not told";
  EXPECT_TRUE(store_.HasSynced());
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10", "watch 12"}));
}

TEST_F(KubeReflector, StopBeforeTheWatchBegan) {
  server_.script = {Page({Object("a", "1")}, "10")};  // and nothing to watch: it is stopped there
  Run();
  EXPECT_EQ(server_.log, (Texts{"list", "watch 10"}));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(KubeReflector, WatchListIsSyncedAtTheAnnotatedBookmarkAndGoesOnInTheSameStream) {
  server_.script = {Stream{{Added(Object("a", "1")), Bookmark("5"), Added(Object("b", "2")),
                            Deleted(Object("a", "6")), Modified(Object("b", "7", "w")),
                            Bookmark("8", true), Added(Object("c", "9"))}}};
  Run(true);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "watch 9"}));
  EXPECT_EQ(events_, (Texts{"ns/b ->w", "ns/c ->v"})) << "nothing is shown before it is whole";
  EXPECT_TRUE(store_.HasSynced());
}

TEST_F(KubeReflector, ABookmarkWithoutTheAnnotationIsNotSynced) {
  server_.script = {Stream{{Added(Object("a", "1")), Bookmark("5")}}};
  Run(true);
  EXPECT_FALSE(store_.HasSynced());
  EXPECT_EQ(store_.size(), 0u);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "watch-list"})) << "ended before: a fresh request";
  EXPECT_EQ(waits_.size(), 1u);
}

// client-go's cache-sync time-out ends the process; here a stream that is silent for too long
// before all objects have come is told of, and begun again.
TEST_F(KubeReflector, ACacheThatIsNotFilledInTimeIsToldAndFilledAnew) {
  server_.script = {Stream{{Added(Object("a", "1")), NoAnswer(Code::kTimeout)}}};
  Run(true);
  EXPECT_FALSE(store_.HasSynced());
  EXPECT_EQ(store_.size(), 0u) << "half a list is not shown";
  EXPECT_EQ(stats_.last_error, "no answer");
  EXPECT_EQ(waits_.size(), 1u);

  server_.script = {Stream{{Added(Object("b", "2")), NoAnswer(Code::kTimeout)}},
                    Stream{{Added(Object("c", "3")), Bookmark("8", true)}}};
  server_.log.clear();
  Run(true);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "watch-list", "watch 8"}));
  EXPECT_TRUE(store_.HasSynced());
  EXPECT_EQ(Keys(), (Texts{"ns/c=v"})) << "and nothing of what came before";
}

TEST_F(KubeReflector, WatchListBacksOffOn429AndIsTriedAgain) {
  server_.script = {Failure(429), NoAnswer(), Stream{{Bookmark("8", true)}}};
  Run(true);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "watch-list", "watch-list", "watch 8"}));
  EXPECT_EQ(waits_.size(), 2u);
  EXPECT_TRUE(store_.HasSynced());
}

TEST_F(KubeReflector, WatchListFallsBackToAListAndIsNotAskedForAgainWhereItIsUnknown) {
  server_.script = {Failure(422), Page({Object("a", "1")}, "10"), Failure(410), Page({}, "11"),
                    Stream{{}}};
  Run(true);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "list", "watch 10", "list", "watch 11", "watch 11"}));
}

TEST_F(KubeReflector, AnotherErrorFallsBackThisTimeOnly) {
  server_.script = {Failure(403), Page({}, "10"), Failure(410), Stream{{Bookmark("11", true)}}};
  Run(true);
  EXPECT_EQ(server_.log, (Texts{"watch-list", "list", "watch 10", "watch-list", "watch 11"}));
}

}  // namespace
}  // namespace parallelrun::kube
