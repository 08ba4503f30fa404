#include "store/s3/url_store.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

#include "base/escape.h"
#include "base/http/client.h"
#include "base/http/target.h"
#include "store/objects/asking.h"
#include "store/objects/content_range.h"
#include "store/objects/object.h"
#include "store/objects/object_version.h"
#include "store/objects/refusal.h"
#include "store/s3/address.h"
#include "store/s3/answers.h"
#include "store/s3/failure.h"
#include "store/s3/outcome.h"
#include "store/s3/surroundings.h"

namespace parallelrun::store::s3 {
namespace {

constexpr size_t kMostInBody = size_t{1} << 20;  // errors; all else fills what the reader has
constexpr Duration kDeadline = seconds(300);     // of one request

// A URL in its parts: "https://host", "/bucket/key", "X-Amz-…".
struct UrlParts {
  std::string server;
  std::string path;
  std::string query;
};

// Whatever the URL is, nothing of its query is in the server's part, which messages show.
UrlParts PartsOf(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  const size_t path = std::min(url.find_first_of("/?", scheme + 3), url.size());
  const size_t query = std::min(url.find('?', path), url.size());
  return {url.substr(0, path), url.substr(path, query - path),
          url.substr(std::min(query + 1, url.size()))};
}

// For messages: the region stands in the signature's scope, "AKIA…/20150830/eu-west-1/s3/…".
std::string RegionOf(const UrlParts& parts) {
  std::string scope = QueryParameter(parts.query, "X-Amz-Credential").value_or("");
  for (int i = 0; i < 2; ++i) scope.erase(0, std::min(scope.find('/'), scope.size() - 1) + 1);
  const std::string region = scope.substr(0, scope.find('/'));
  return IsRegion(region) ? region : "";
}

// Whether it counts no more, as S3 says of one whose time is over, or whose keys have ended or were
// changed for others. Anything else is a right that is missing.
bool HasEnded(const Answered& answered) {
  const ErrorBody& body = answered.refusal.body;
  if (answered.outcome == Outcome::kExpired || answered.outcome == Outcome::kClockSkew) return true;
  if (answered.refusal.status != kForbidden) return false;
  return body.code == "InvalidAccessKeyId" || body.code == "InvalidToken" ||
         (body.code == "AccessDenied" && body.message.find("expired") != std::string::npos);
}

// A server may repeat what it was asked, and a message goes into logs and reports.
void Redact(ErrorBody& body) {
  for (std::string* text : {&body.code, &body.message, &body.region}) {
    if (text->find("X-Amz-") != std::string::npos) *text = "";
  }
}

// Reads by the URLs of a table.
class UrlReader {
 public:
  UrlReader(const UrlStoreOptions& options, Address address, std::shared_ptr<UrlTable> urls,
            std::shared_ptr<const Clock> clock)
      : options_(options),
        address_(std::move(address)),
        urls_(std::move(urls)),
        clock_(std::move(clock)),
        asker_(address_.Url(""), options_.limits, clock_, options_.stop, options_.tally),
        on_stop_(options_.stop, [this] {
          const std::lock_guard lock(mutex_);
          for (auto& [server, client] : clients_) client->Cancel();
        }) {}

  const Address& address() const { return address_; }
  AnswerCounts CountAnswers() const { return asker_.CountAnswers(); }
  // Where a key is, in the table and for people.
  std::string Location(const std::string& key) const {
    return "s3://" + address_.bucket + "/" + key;
  }
  std::optional<UrlTable::Entry> UrlOf(const std::string& key) const {
    return urls_->Get(Location(key), clock_->Now());
  }
  // `said`: by the store, if it was asked.
  Error NoUrl(const std::string& key, const std::string& said = "") const {
    return {
        Code::kUnavailable,
        fmt::format("{}: the URL that it is read by has ended{}; the coordinator gives another",
                    Printable(Location(key), kShownLong), said.empty() ? "" : " (" + said + ")")};
  }

  Result<HttpResponse> Read(const std::string& key, const HttpHeaders& headers,
                            std::span<char> into) {
    UrlTable::Entry entry;
    UrlParts parts;
    std::shared_ptr<HttpClient> client;
    const auto take = [&]() -> Status {
      std::optional<UrlTable::Entry> counts = UrlOf(key);
      if (!counts) return NoUrl(key);
      entry = std::move(*counts);
      parts = PartsOf(entry.url);
      Result<std::shared_ptr<HttpClient>> of = ClientOf(parts.server);
      if (!of.ok()) return of.error();
      client = std::move(*of);
      return {};
    };
    const auto send = [&] {
      HttpCall call;
      call.request.path = parts.path;
      call.request.query = parts.query;
      call.request.headers = headers;
      Answered answered = SendInto(*client, call, kDeadline, into);
      if (!answered.refusal.broken.empty()) return answered;
      const HttpResponse& response = *answered.response;
      if (response.status / 100 != 2) {
        answered.refusal.body = ParseErrorBody(response.body).value_or(ErrorBody{});
        Redact(answered.refusal.body);
      }
      answered.refusal.request_id = response.Header("x-amz-request-id");
      answered.outcome = OutcomeOf(response.status, answered.refusal.body.code, false);
      return answered;
    };
    const auto mend = [](const Answered& answered) { return !HasEnded(answered); };
    const auto explain = [&](const Answered& answered) -> Error {
      if (HasEnded(answered)) {
        urls_->End(Location(key), entry.url);
        return NoUrl(key, Said(answered.refusal));
      }
      Server server;
      server.host = parts.server.substr(std::min(parts.server.find("://"), parts.server.size()));
      server.host.erase(0, std::min<size_t>(3, server.host.size()));
      server.region = RegionOf(parts);
      return Explain({Action::kRead, address_, key, "the keys of the coordinator"}, server,
                     answered.refusal);
    };
    return asker_.Ask({take, send, mend, explain});
  }

 private:
  Result<std::shared_ptr<HttpClient>> ClientOf(const std::string& server) {
    const std::lock_guard lock(mutex_);
    if (const auto known = clients_.find(server); known != clients_.end()) return known->second;
    Result<std::unique_ptr<HttpClient>> made =
        MakeClient({server, options_.ca_pem, kMostInBody, options_.first_byte});
    if (!made.ok()) return made.error();
    std::shared_ptr<HttpClient> client = std::move(*made);
    if (options_.stop.stop_requested()) client->Cancel();
    return clients_.emplace(server, std::move(client)).first->second;
  }

  const UrlStoreOptions options_;
  const Address address_;
  const std::shared_ptr<UrlTable> urls_;
  const std::shared_ptr<const Clock> clock_;
  Asker asker_;
  std::mutex mutex_;                                            // guards what follows
  std::map<std::string, std::shared_ptr<HttpClient>> clients_;  // by server
  std::stop_callback<std::function<void()>> on_stop_;           // last: what it uses is there
};

// One version of one object.
class UrlObject final : public Object, private ObjectServer {
 public:
  UrlObject(UrlReader& reader, const std::string& key, Found found)
      : reader_(reader), object_(MakeObject(*this, key, std::move(found))) {}

  const Found& found() const override { return object_->found(); }
  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    return object_->ReadAt(offset, to);
  }

 private:
  Result<HttpResponse> Read(const std::string& key, HttpHeaders headers,
                            std::span<char> into) override {
    return reader_.Read(key, headers, into);
  }
  // A URL reads its version, and says nothing of another one.
  Result<std::optional<Found>> Stat(const std::string& key) override {
    return Error{Code::kInvalid, Place(key) + ": its URL does not tell what is there now"};
  }
  std::string Place(const std::string& key) const override {
    return Printable(reader_.Location(key), kShown);
  }

  UrlReader& reader_;
  const std::unique_ptr<Object> object_;
};

class UrlStore final : public Store {
 public:
  UrlStore(const UrlStoreOptions& options, Address address, std::shared_ptr<UrlTable> urls,
           std::shared_ptr<const Clock> clock)
      : reader_(options, std::move(address), std::move(urls), std::move(clock)) {}

  Result<std::unique_ptr<store::Listing>> List(Wanted, const std::string&) override {
    return NoKeys();
  }
  Result<bool> IsThere() override { return NoKeys(); }
  Result<std::optional<Found>> Stat(const std::string&) override { return NoKeys(); }

  Result<std::unique_ptr<Object>> Open(const std::string& name) override {
    const std::string key = reader_.address().KeyOf(name);
    const std::optional<UrlTable::Entry> entry = reader_.UrlOf(key);
    if (!entry) return reader_.NoUrl(key);
    if (entry->version.bytes() == kNoObject) {
      const Result<Found> found = AskWhatIsThere(key);
      if (!found.ok()) return found.error();
      return std::unique_ptr<Object>(std::make_unique<UrlObject>(reader_, key, *found));
    }
    const std::string_view etag = EtagOf(entry->version);
    std::optional<uint64_t> size = SizeOf(entry->version);
    // Reading notices what has changed. An empty object is not read, and the plans of earlier
    // releases do not say how long any is: then it is asked for here.
    if (!size || *size == 0) {
      Result<uint64_t> asked = size ? AskForEmpty(key, etag) : AskForSize(key, etag);
      if (!asked.ok()) return asked.error();
      size = *asked;
    }
    return std::unique_ptr<Object>(
        std::make_unique<UrlObject>(reader_, key, Found{*size, VersionOf(etag, *size)}));
  }

  // Where there is no URL for it, or one of another version, reads say so, or Open does.
  std::unique_ptr<Object> OpenUnseen(const std::string& name, const Version& version) override {
    const std::string key = reader_.address().KeyOf(name);
    const std::optional<UrlTable::Entry> entry = reader_.UrlOf(key);
    if (entry && entry->version != version) return nullptr;
    const std::optional<uint64_t> size = SizeOf(version);
    if (!size || *size == 0) return nullptr;
    return std::make_unique<UrlObject>(reader_, key, Found{*size, version});
  }

  AnswerCounts CountAnswers() const override { return reader_.CountAnswers(); }
  std::string Location(std::string_view name) const override { return reader_.address().Url(name); }
  Result<std::string> RealRoot() override { return Location(""); }
  std::string Difference(const Version& was, const Version& is) const override {
    return DifferenceOfObjects(was, is);
  }
  Version AsBefore(const Version& version) const override { return WithoutSize(version); }

 private:
  Error NoKeys() const {
    return {Code::kPermission, Location("") + ": there are no keys here, but URLs of objects"};
  }
  static HttpHeader Matching(std::string_view etag) {
    return {"If-Match", fmt::format("\"{}\"", etag)};
  }

  Result<uint64_t> AskForEmpty(const std::string& key, std::string_view etag) {
    const Result<HttpResponse> answer = reader_.Read(key, {Matching(etag)}, {});
    if (!answer.ok()) return Gone(answer.error());
    return uint64_t{answer->body.size()};
  }

  Result<uint64_t> AskForSize(const std::string& key, std::string_view etag) {
    char byte = 0;
    const Result<HttpResponse> answer =
        reader_.Read(key, {{"Range", "bytes=0-0"}, Matching(etag)}, {&byte, 1});
    // It has no first byte.
    if (!answer.ok() && answer.error().code == Code::kInvalid) return AskForEmpty(key, etag);
    if (!answer.ok()) return Gone(answer.error());
    const auto range = ParseContentRange(answer->Header("Content-Range"));
    if (range && range->total) return *range->total;
    return Error{Code::kInvalid, Printable(reader_.Location(key), kShownLong) +
                                     ": the server does not say how long it is (Content-Range)"};
  }

  // By a URL that reads whatever that is: its first byte says how long all of it is.
  Result<Found> AskWhatIsThere(const std::string& key) {
    char byte = 0;
    Result<HttpResponse> answer = reader_.Read(key, {{"Range", "bytes=0-0"}}, {&byte, 1});
    std::optional<uint64_t> size;
    if (answer.ok()) {
      const auto range = ParseContentRange(answer->Header("Content-Range"));
      if (range) size = range->total;
    } else if (answer.error().code == Code::kInvalid) {  // it has no first byte
      answer = reader_.Read(key, {}, {});
      if (answer.ok()) size = answer->body.size();
    }
    if (!answer.ok()) return answer.error();
    const std::string etag = PlainEtag(answer->Header("ETag"));
    if (size && !etag.empty() && etag.size() <= kMostEtag) {
      return Found{*size, VersionOf(etag, *size)};
    }
    return Error{Code::kInvalid, Printable(reader_.Location(key), kShownLong) +
                                     ": the server does not say which object it is, or how long "
                                     "(ETag, Content-Range)"};
  }

  static Error Gone(Error error) {
    if (error.code == Code::kNotFound) error.code = Code::kStale;
    return error;
  }

  UrlReader reader_;
};

}  // namespace

Result<std::unique_ptr<Store>> MakeUrlStore(const UrlStoreOptions& options,
                                            std::shared_ptr<UrlTable> urls,
                                            std::shared_ptr<const Clock> clock) {
  Result<Address> address = ParseAddress(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<Store>(
      std::make_unique<UrlStore>(options, std::move(*address), std::move(urls), std::move(clock)));
}

Result<std::unique_ptr<Store>> OpenUrlStore(const Wished& wished, std::shared_ptr<UrlTable> urls,
                                            std::stop_token stop) {
  const Result<Surroundings> around = ReadSurroundings();
  if (!around.ok()) return around.error().With(wished.url);
  UrlStoreOptions options;
  options.url = wished.url;
  options.stop = std::move(stop);
  options.tally = wished.tally;
  if (const std::string file = around->Variable("AWS_CA_BUNDLE"); !file.empty()) {
    Result<std::string> pem = ReadTrimmed(file);
    if (!pem.ok()) return pem.error().With("AWS_CA_BUNDLE");
    options.ca_pem = std::move(*pem);
  }
  return MakeUrlStore(options, std::move(urls), std::make_shared<SystemClock>());
}

}  // namespace parallelrun::store::s3
