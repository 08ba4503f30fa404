#include "store/s3/url_parts.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

#include "base/escape.h"
#include "store/objects/refusal.h"
#include "store/s3/address.h"

namespace parallelrun::store::s3 {
namespace {

class UrlPartPutter final : public PartPutter {
 public:
  UrlPartPutter(const UrlStoreOptions& options, Address address, std::shared_ptr<const Clock> clock)
      : asker_(options, std::move(address), std::move(clock)) {}

  Result<std::string> Put(const std::string& name, const std::string& url,
                          const HttpFileRange& bytes, const std::stop_token& stop) override {
    UrlQuestion question;
    question.action = Action::kWrite;
    question.key = asker_.address().KeyOf(name);
    question.method = "PUT";
    question.file = bytes;
    question.stop = stop;
    question.url = [&url]() -> Result<std::string> { return url; };
    const std::string place = Printable(asker_.address().Url(name), kShownLong);
    question.ended = [&place](const std::string&, const std::string& said) {
      return Error{Code::kStale,
                   fmt::format("{}: the URL that a part is sent by has ended ({})", place, said)};
    };
    const Result<HttpResponse> answer = asker_.Ask(question);
    if (!answer.ok()) return answer.error();
    std::string etag = PlainEtag(answer->Header("ETag"));
    if (etag.empty()) return Error{Code::kInvalid, place + ": the server gives a part no ETag"};
    return etag;
  }

 private:
  UrlAsker asker_;
};

}  // namespace

Result<std::unique_ptr<PartPutter>> MakePartPutter(const UrlStoreOptions& options,
                                                   std::shared_ptr<const Clock> clock) {
  Result<Address> address = ParseAddress(options.url);
  if (!address.ok()) return address.error();
  return std::unique_ptr<PartPutter>(
      std::make_unique<UrlPartPutter>(options, std::move(*address), std::move(clock)));
}

Result<std::unique_ptr<PartPutter>> OpenPartPutter(const Wished& wished, std::stop_token stop) {
  const Result<UrlStoreOptions> options = UrlOptionsOf(wished, std::move(stop));
  if (!options.ok()) return options.error();
  return MakePartPutter(*options, std::make_shared<SystemClock>());
}

}  // namespace parallelrun::store::s3
