// A server that speaks enough of S3 to be listed and read, with the objects of a test in memory:
// also "a" beside "a/b", which servers on top of folders cannot hold. Before it answers, a test's
// script may answer in its place, byte by byte.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/http/target.h"
#include "store/s3/s3_store.h"
#include "tests/unit/base/http/plain_server.h"
#include "tests/unit/store/small_server.h"

namespace parallelrun::store::s3 {

class SmallS3 {
 public:
  // May answer request number `number` (the first is 0) of all that came; true: it did.
  using Script = std::function<bool(PlainConnection&, const Heard&, size_t number)>;

  explicit SmallS3(Script script = nullptr)
      : script_(std::move(script)), server_([this](PlainConnection& connection) {
          for (std::string text = connection.ReadRequest(); !text.empty();
               text = connection.ReadRequest()) {
            const Heard heard(text);
            size_t number = 0;
            {
              const std::lock_guard lock(mutex_);
              number = heard_.size();
              heard_.push_back(heard);
            }
            if (script_ && script_(connection, heard, number)) {
              if (closes_) return;
              continue;
            }
            connection.Write(Answer(heard));
          }
        }) {}

  // After an answer of the script the connection is closed.
  void CloseAfterScript() { closes_ = true; }
  void Put(const std::string& key, const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    objects_[key] = {bytes, fmt::format("{:x}-{}", std::hash<std::string>()(bytes), ++puts_)};
  }
  void PutAs(const std::string& key, const std::string& bytes, const std::string& etag) {
    const std::lock_guard lock(mutex_);
    objects_[key] = {bytes, etag};
  }
  void Remove(const std::string& key) {
    const std::lock_guard lock(mutex_);
    objects_.erase(key);
  }
  std::vector<Heard> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  std::string url() const { return server_.url(); }

  static std::string Reply(int status, const std::string& body, const std::string& headers = "") {
    return store::Reply(status, body, headers);
  }
  static std::string ErrorXml(const std::string& code, const std::string& more = "") {
    return fmt::format("<Error><Code>{}</Code><Message>m</Message>{}</Error>", code, more);
  }

 private:
  static constexpr size_t kPage = 3;  // fewer than asked for, as servers may
  struct Kept {
    std::string bytes, etag;
  };

  std::string Answer(const Heard& heard) {
    const std::lock_guard lock(mutex_);
    if (!heard.path.starts_with("/bucket/")) return Reply(404, ErrorXml("NoSuchBucket"));
    const std::string key = heard.path.substr(8);
    if (key.empty()) return List(heard.query);
    const auto found = objects_.find(key);
    if (found == objects_.end()) {
      return Reply(404, heard.method == "HEAD" ? "" : ErrorXml("NoSuchKey"));
    }
    const Kept& kept = found->second;
    const std::string etag = "ETag: \"" + kept.etag + "\"\r\n";
    if (heard.method == "HEAD") {
      return fmt::format("HTTP/1.1 200 X\r\nContent-Length: {}\r\n{}\r\n", kept.bytes.size(), etag);
    }
    const std::string match = heard.Header("If-Match");
    if (!match.empty() && match != "\"" + kept.etag + "\"") {
      return Reply(412, ErrorXml("PreconditionFailed"));
    }
    const std::string range = heard.Header("Range");  // bytes=FIRST-LAST
    if (range.empty()) return Reply(200, kept.bytes, etag);
    if (kept.bytes.empty()) return Reply(416, ErrorXml("InvalidRange"));
    const size_t first = std::stoul(range.substr(6));
    const size_t last = std::stoul(range.substr(range.find('-') + 1));
    return Reply(
        206, kept.bytes.substr(first, last - first + 1),
        fmt::format("{}Content-Range: bytes {}-{}/{}\r\n", etag, first, last, kept.bytes.size()));
  }

  std::string List(const std::string& query) {
    const std::string prefix = QueryParameter(query, "prefix").value_or("");
    const std::string after = QueryParameter(query, "start-after").value_or("");
    const bool by_folder = QueryParameter(query, "delimiter") == "/";
    std::string body, folder;
    size_t count = 0;
    auto at = objects_.upper_bound(after);
    for (; at != objects_.end() && count < kPage; ++at) {
      if (!at->first.starts_with(prefix)) continue;
      if (by_folder && !folder.empty() && at->first.starts_with(folder)) continue;
      ++count;
      const size_t slash = at->first.find('/', prefix.size());
      if (by_folder && slash != std::string::npos) {
        folder = at->first.substr(0, slash + 1);
        body += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>",
                            PercentEncode(folder));
        continue;
      }
      body += fmt::format(
          "<Contents><Key>{}</Key><ETag>&quot;{}&quot;</ETag><Size>{}</Size></Contents>",
          PercentEncode(at->first), at->second.etag, at->second.bytes.size());
    }
    bool more = false;
    for (; at != objects_.end(); ++at) {
      const bool told = by_folder && !folder.empty() && at->first.starts_with(folder);
      more = more || (at->first.starts_with(prefix) && !told);
    }
    return Reply(200,
                 fmt::format("<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{}"
                             "</IsTruncated>{}</ListBucketResult>",
                             more, body));
  }

  const Script script_;
  std::atomic<bool> closes_{false};
  std::mutex mutex_;  // guards what follows, up to the server
  std::map<std::string, Kept> objects_;
  std::vector<Heard> heard_;
  size_t puts_ = 0;
  PlainServer server_;
};

// Keys that must stand in no message.
inline constexpr const char* kSecret = "wJalrXUtnFEMI-secret";

inline Surroundings StaticKeys() {
  Surroundings around;
  around.variables = {{"AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"},
                      {"AWS_SECRET_ACCESS_KEY", kSecret}};
  return around;
}

inline StoreOptions QuickOptions(const SmallS3& server, const std::string& url = "s3://bucket") {
  StoreOptions options;
  options.url = url;
  options.endpoint = server.url();
  options.limits.shortest = milliseconds(1);
  options.limits.longest = milliseconds(2);
  return options;
}

inline std::unique_ptr<Store> StoreAt(
    const StoreOptions& options, const Surroundings& around = StaticKeys(),
    std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>()) {
  Result<std::unique_ptr<Store>> made = MakeStore(options, around, std::move(clock));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

}  // namespace parallelrun::store::s3
