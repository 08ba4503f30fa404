#include "store/s3/url_store.h"

#include <spdlog/fmt/fmt.h>

#include <span>
#include <utility>

#include "base/escape.h"
#include "store/objects/content_range.h"
#include "store/objects/object.h"
#include "store/objects/object_version.h"
#include "store/objects/refusal.h"
#include "store/s3/address.h"

namespace parallelrun::store::s3 {
namespace {

// Reads by the URLs of a table.
class UrlReader {
 public:
  UrlReader(const UrlStoreOptions& options, Address address, std::shared_ptr<UrlTable> urls,
            const std::shared_ptr<const Clock>& clock)
      : asker_(options, std::move(address), clock), urls_(std::move(urls)), clock_(clock) {}

  const Address& address() const { return asker_.address(); }
  AnswerCounts CountAnswers() const { return asker_.CountAnswers(); }
  // Where a key is, in the table and for people.
  std::string Location(const std::string& key) const {
    return "s3://" + address().bucket + "/" + key;
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
    UrlQuestion question;
    question.key = key;
    question.headers = headers;
    question.into = into;
    question.url = [&]() -> Result<std::string> {
      std::optional<UrlTable::Entry> counts = UrlOf(key);
      if (!counts) return NoUrl(key);
      return std::move(counts->url);
    };
    question.ended = [&](const std::string& url, const std::string& said) {
      urls_->End(Location(key), url);
      return NoUrl(key, said);
    };
    return asker_.Ask(question);
  }

 private:
  UrlAsker asker_;
  const std::shared_ptr<UrlTable> urls_;
  const std::shared_ptr<const Clock> clock_;
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
           const std::shared_ptr<const Clock>& clock)
      : reader_(options, std::move(address), std::move(urls), clock) {}

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
                                            const std::shared_ptr<const Clock>& clock) {
  Result<Address> address = ParseAddress(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<Store>(
      std::make_unique<UrlStore>(options, std::move(*address), std::move(urls), clock));
}

Result<std::unique_ptr<Store>> OpenUrlStore(const Wished& wished, std::shared_ptr<UrlTable> urls,
                                            std::stop_token stop) {
  const Result<UrlStoreOptions> options = UrlOptionsOf(wished, std::move(stop));
  if (!options.ok()) return options.error();
  return MakeUrlStore(*options, std::move(urls), std::make_shared<SystemClock>());
}

}  // namespace parallelrun::store::s3
