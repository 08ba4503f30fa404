// One bucket, as something that can be asked: signs requests, sends them again where that may help,
// follows the bucket to its region once, and says in words what went wrong. Thread-safe; blocks.
// Once there is a stop, what waits ends soon, and all else fails at once.
#pragma once

#include <atomic>
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
#include "store/objects/object.h"
#include "store/objects/retry.h"
#include "store/s3/address.h"
#include "store/s3/credentials.h"
#include "store/s3/failure.h"
#include "store/url_signer.h"

namespace parallelrun::store::s3 {

struct Question {
  Action action = Action::kList;
  std::string key;  // of an object; for kList the prefix, which is only told in messages
  std::string query;
  HttpHeaders headers;
  std::string method = "GET";  // kStat has its own
  std::string body;
  // 409, another write of the same object at the same time, is worth another try.
  bool repeats_conflicts = false;
  // What the answer's body fills to the last byte, in place of HttpResponse::body.
  std::span<char> into;
  // Nobody waits for the answer any more: beside that of the bucket, which ends requests as well.
  std::stop_token stop;
};

struct BucketOptions {
  Address address;
  std::string region;
  std::string endpoint;  // empty: AWS's own
  std::optional<Style> style;
  std::string ca_pem;  // trusted in place of the system's; may be empty
  RetryLimits limits;
  Duration deadline = seconds(300);   // of one request
  Duration first_byte = seconds(30);  // of its answer
  std::shared_ptr<const Clock> clock;
  std::stop_token stop;
  std::shared_ptr<AnswerTally> tally = nullptr;  // none: one of its own
};

class Bucket final : public ObjectServer {
 public:
  // kInvalid: an endpoint, a region or certificates that cannot be such.
  static Result<std::unique_ptr<Bucket>> Make(BucketOptions options,
                                              std::unique_ptr<Credentials> credentials);

  // An answer 2xx. Errors: as Explain has them, and those of the credentials.
  Result<HttpResponse> Ask(Question question);

  // A URL that reads the object of that ETag (of kNoObject: whatever is there) for `life`, or as
  // long as the keys are good. Asks at most for keys; `Ask` something before, since that finds the
  // bucket's region and the clock.
  Result<SignedUrl> SignUrl(const std::string& key, std::string_view etag, Duration life);
  // Likewise one by which that request is sent, and no other: its path is the key's.
  Result<SignedUrl> SignRequest(const std::string& key, HttpRequest request, Duration life);

  Result<HttpResponse> Read(const std::string& key, HttpHeaders headers,
                            std::span<char> into) override;
  Result<std::optional<Found>> Stat(const std::string& key) override;
  std::string Place(const std::string& key) const override;

  const Address& address() const { return options_.address; }
  AnswerCounts CountAnswers() const { return asker_.CountAnswers(); }

 private:
  // Where requests go, for as long as somebody sends one there.
  struct Target {
    Server server;
    std::unique_ptr<HttpClient> client;
  };

  Bucket(BucketOptions options, std::unique_ptr<Credentials> credentials);
  static Result<std::shared_ptr<Target>> MakeTarget(const BucketOptions& options,
                                                    const std::string& region);
  std::shared_ptr<Target> Current();
  // The question's body is lent to the request meanwhile, since it may be large.
  Answered Try(Question& question, const Target& target, const Keys& keys);
  Answered Send(Question& question, const std::string& method, const Target& target,
                const Keys& keys);
  bool Mend(const Answered& answered, const Target& target, const Keys& keys);
  bool Move(const std::string& from, const std::string& to);

  const BucketOptions options_;
  const std::unique_ptr<Credentials> credentials_;
  Asker asker_;
  std::atomic<int64_t> skew_{0};  // microseconds that the server's clock is ahead of ours
  std::mutex mutex_;              // guards what follows
  std::shared_ptr<Target> current_;
  std::shared_ptr<Target> first_;                      // before the move, if there was one
  std::stop_callback<std::function<void()>> on_stop_;  // last: what it uses is there
};

}  // namespace parallelrun::store::s3
