// A server that speaks enough of Azure Blob Storage to be listed and read, with the blobs of a test
// in memory: as an account with a flat namespace, or with a hierarchical one, whose folders are
// things of their own and come before what is in them. Before it answers, a test's script may
// answer in its place, byte by byte.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/http/target.h"
#include "store/azure_blob/azure_blob_store.h"
#include "tests/unit/base/http/plain_server.h"
#include "tests/unit/store/small_server.h"

namespace parallelrun::store::azure_blob {

class SmallAzure {
 public:
  // May answer request number `number` (the first is 0) of all that came; true: it did.
  using Script = std::function<bool(PlainConnection&, const Heard&, size_t number)>;

  explicit SmallAzure(Script script = nullptr)
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
            if (script_ && script_(connection, heard, number)) continue;
            connection.Write(Answer(heard));
          }
        }) {}

  void SetHierarchical() { hierarchical_ = true; }
  void Put(const std::string& name, const std::string& bytes, bool is_marker = false) {
    const std::lock_guard lock(mutex_);
    blobs_[name] = {bytes, fmt::format("0x{:X}", ++puts_), is_marker};
  }
  void PutAs(const std::string& name, const std::string& bytes, const std::string& etag) {
    const std::lock_guard lock(mutex_);
    blobs_[name] = {bytes, etag, false};
  }
  void Remove(const std::string& name) {
    const std::lock_guard lock(mutex_);
    blobs_.erase(name);
  }
  std::vector<Heard> heard() {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  std::string url() const { return server_.url(); }

  // As Azure has them: what says why stands in the body and in a header.
  static std::string ErrorReply(int status, const std::string& code) {
    return Reply(status,
                 fmt::format("\xEF\xBB\xBF<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>{}"
                             "</Code><Message>said\nRequestId:1</Message></Error>",
                             code),
                 fmt::format("x-ms-error-code: {}\r\nx-ms-request-id: r1\r\n", code));
  }

 private:
  static constexpr size_t kPage = 3;  // fewer than asked for, as servers may
  struct Kept {
    std::string bytes, etag;
    bool is_marker = false;
  };

  std::string Answer(const Heard& heard) {
    const std::lock_guard lock(mutex_);
    const std::string root = "/account/container";
    if (!heard.path.starts_with(root)) return ErrorReply(404, "ContainerNotFound");
    if (heard.path == root) return List(heard.query);
    const std::string name = heard.path.substr(root.size() + 1);
    const auto found = blobs_.find(name);
    const auto below = blobs_.lower_bound(name + "/");
    if (found == blobs_.end() && hierarchical_ && below != blobs_.end() &&
        below->first.starts_with(name + "/")) {
      return "HTTP/1.1 200 X\r\nContent-Length: 0\r\nETag: \"0x0\"\r\nx-ms-resource-type: "
             "directory\r\nx-ms-meta-hdi_isfolder: true\r\n\r\n";
    }
    if (found == blobs_.end()) {
      return heard.method == "GET" ? ErrorReply(404, "BlobNotFound")
                                   : "HTTP/1.1 404 X\r\nx-ms-error-code: BlobNotFound\r\n"
                                     "Content-Length: 0\r\n\r\n";
    }
    const Kept& kept = found->second;
    const std::string etag = "ETag: \"" + kept.etag + "\"\r\n";
    if (heard.method == "HEAD") {
      return fmt::format("HTTP/1.1 200 X\r\nContent-Length: {}\r\n{}{}\r\n", kept.bytes.size(),
                         etag, kept.is_marker ? "x-ms-meta-hdi_isfolder: true\r\n" : "");
    }
    const std::string match = heard.Header("If-Match");
    if (!match.empty() && match != "\"" + kept.etag + "\"") {
      return ErrorReply(412, "ConditionNotMet");
    }
    const std::string range = heard.Header("Range");  // bytes=FIRST-LAST
    const size_t first = std::stoul(range.substr(6));
    const size_t last = std::stoul(range.substr(range.find('-') + 1));
    return Reply(
        206, kept.bytes.substr(first, last - first + 1),
        fmt::format("{}Content-Range: bytes {}-{}/{}\r\n", etag, first, last, kept.bytes.size()));
  }

  std::string List(const std::string& query) {
    const std::string prefix = QueryParameter(query, "prefix").value_or("");
    const std::string marker = QueryParameter(query, "marker").value_or("");
    const bool by_folder = QueryParameter(query, "delimiter").has_value();
    // Where folders are things, '/' stands before every other character.
    const auto order = [&](std::string name) {
      if (!hierarchical_) return name;
      if (name.ends_with('/')) name.pop_back();
      std::replace(name.begin(), name.end(), '/', '\x01');
      return name;
    };
    std::map<std::string, std::string> entries;  // XML by place
    for (const auto& [name, kept] : blobs_) {
      if (!name.starts_with(prefix)) continue;
      const size_t slash = name.find('/', prefix.size());
      if (by_folder && slash != std::string::npos) {
        const std::string folder = name.substr(0, slash + 1);
        entries[order(folder)] = fmt::format("<BlobPrefix><Name>{}</Name></BlobPrefix>", folder);
        continue;
      }
      for (size_t at = slash; hierarchical_ && at != std::string::npos;
           at = name.find('/', at + 1)) {
        entries[order(name.substr(0, at))] = fmt::format(
            "<Blob><Name>{}</Name><Properties><ResourceType>directory</ResourceType>"
            "<Content-Length>0</Content-Length></Properties></Blob>",
            name.substr(0, at));
      }
      entries[order(name)] = fmt::format(
          "<Blob><Name>{}</Name><Properties><Etag>{}</Etag><Content-Length>{}</Content-Length>"
          "</Properties><Metadata>{}</Metadata></Blob>",
          Escaped(name), kept.etag, kept.bytes.size(),
          kept.is_marker ? "<hdi_isfolder>true</hdi_isfolder>" : "");
    }
    std::string body;
    size_t count = 0;
    auto at =
        marker.empty() ? entries.begin() : entries.upper_bound(*PercentDecode(marker.substr(1)));
    std::string last;
    for (; at != entries.end() && count < kPage; ++at, ++count) {
      body += at->second;
      last = at->first;
    }
    return Reply(200, fmt::format("<EnumerationResults><Blobs>{}</Blobs><NextMarker>{}</NextMarker>"
                                  "</EnumerationResults>",
                                  body, at == entries.end() ? "" : "!" + PercentEncode(last)));
  }

  static std::string Escaped(const std::string& name) {
    std::string out;
    for (const char c : name) {
      out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c);
    }
    return out;
  }

  const Script script_;
  bool hierarchical_ = false;
  std::mutex mutex_;  // guards what follows, up to the server
  std::map<std::string, Kept> blobs_;
  std::vector<Heard> heard_;
  size_t puts_ = 0;
  PlainServer server_;
};

// What must stand in no message.
inline const std::string& Secret() {
  static const std::string key = EncodeBase64("a key of the tests");
  return key;
}

inline Surroundings WithKey() {
  return {{{"AZURE_STORAGE_ACCOUNT", "account"}, {"AZURE_STORAGE_KEY", Secret()}}};
}

inline StoreOptions QuickOptions(const SmallAzure& server, const std::string& prefix = "",
                                 const std::string& container = "container") {
  StoreOptions options;
  options.url = fmt::format("abfss://{}@account.dfs.core.windows.net/{}", container, prefix);
  options.endpoint = server.url() + "/account";
  options.limits.shortest = milliseconds(1);
  options.limits.longest = milliseconds(2);
  return options;
}

inline std::unique_ptr<Store> StoreAt(
    const StoreOptions& options, const Surroundings& around = WithKey(),
    std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>()) {
  Result<std::unique_ptr<Store>> made = MakeStore(options, around, std::move(clock));
  EXPECT_TRUE(made.ok()) << made.error().message;
  return std::move(*made);
}

}  // namespace parallelrun::store::azure_blob
