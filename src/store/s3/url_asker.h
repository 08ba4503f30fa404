// Sends requests by URLs that somebody else has signed, with no keys of its own: to read objects
// (url_store.h), to send parts of uploads (url_parts.h). See README.md, "URLs". Thread-safe;
// blocks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/http/client.h"
#include "base/time.h"
#include "store/answer_tally.h"
#include "store/objects/asking.h"
#include "store/objects/retry.h"
#include "store/s3/address.h"
#include "store/s3/failure.h"
#include "store/store.h"
#include "store/wished.h"

namespace parallelrun::store::s3 {

struct UrlStoreOptions {
  std::string url;     // s3://bucket/prefix
  std::string ca_pem;  // trusted in place of the system's; may be empty
  RetryLimits limits;
  Duration first_byte = seconds(30);             // of an answer
  std::stop_token stop;                          // ends all waits
  std::shared_ptr<AnswerTally> tally = nullptr;  // none: one of its own
};

// With the certificates that this process trusts (AWS_CA_BUNDLE).
Result<UrlStoreOptions> UrlOptionsOf(const Wished& wished, std::stop_token stop);

struct UrlQuestion {
  Action action = Action::kRead;
  std::string key;  // for messages
  // By which it is sent, anew for each try. An error ends the question with it.
  std::function<Result<std::string>()> url;
  // What it comes to where that URL counts no more; `said`: by the store.
  std::function<Error(const std::string& url, const std::string& said)> ended;
  std::string method = "GET";
  HttpHeaders headers{};
  std::span<char> into{};               // what the answer's body fills
  std::optional<HttpFileRange> file{};  // the body of the request
  std::stop_token stop{};               // beside that of the options
};

class UrlAsker {
 public:
  UrlAsker(const UrlStoreOptions& options, Address address, std::shared_ptr<const Clock> clock);

  const Address& address() const { return address_; }
  AnswerCounts CountAnswers() const { return asker_.CountAnswers(); }
  // An answer 2xx. Errors: as Explain has them, and those of the question.
  Result<HttpResponse> Ask(const UrlQuestion& question);

 private:
  Result<std::shared_ptr<HttpClient>> ClientOf(const std::string& server);

  const UrlStoreOptions options_;
  const Address address_;
  Asker asker_;
  std::mutex mutex_;                                            // guards what follows
  std::map<std::string, std::shared_ptr<HttpClient>> clients_;  // by server
  std::stop_callback<std::function<void()>> on_stop_;           // last: what it uses is there
};

}  // namespace parallelrun::store::s3
