// One container, as something that can be asked: proves whose requests are, sends them again where
// that may help, and says in words what went wrong. Thread-safe; blocks. Once there is a stop, what
// waits ends soon, and all else fails at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/http/client.h"
#include "base/time.h"
#include "store/answer_tally.h"
#include "store/azure_blob/address.h"
#include "store/azure_blob/credentials.h"
#include "store/azure_blob/failure.h"
#include "store/objects/asking.h"
#include "store/objects/object.h"
#include "store/objects/retry.h"

namespace parallelrun::store::azure_blob {

struct Question {
  Action action = Action::kList;
  std::string key;  // of a blob; for kList the prefix, which is only told in messages
  std::string query;
  HttpHeaders headers;
  // What the answer's body fills to the last byte, in place of HttpResponse::body.
  std::span<char> into;
};

inline constexpr size_t kMostInPage = 5000;  // Azure gives no more

struct ContainerOptions {
  Address address;
  std::string endpoint;       // empty: that of the credentials, or Azure's own
  size_t page = kMostInPage;  // blobs in a page of a list
  RetryLimits limits;
  Duration deadline = seconds(300);   // of one request
  Duration first_byte = seconds(30);  // of its answer
  std::shared_ptr<const Clock> clock;
  std::stop_token stop;
  std::shared_ptr<AnswerTally> tally = nullptr;  // none: one of its own
};

// What is there under a name.
struct Looked {
  Found found;
  // It stands for a folder, as ListedBlob has it. An account with a hierarchical namespace says so
  // of every prefix.
  bool is_folder = false;
};

class Container final : public ObjectServer {
 public:
  // kInvalid: an endpoint that cannot be such, or one to which no secret may go.
  static Result<std::unique_ptr<Container>> Make(ContainerOptions options, Source source);

  // An answer 2xx. Errors: as Explain has them, and those of the credentials.
  Result<HttpResponse> Ask(const Question& question);

  // Nothing: it is not there.
  Result<std::optional<Looked>> Look(const std::string& key);

  Result<HttpResponse> Read(const std::string& key, HttpHeaders headers,
                            std::span<char> into) override;
  // A folder is no object.
  Result<std::optional<Found>> Stat(const std::string& key) override;
  std::string Place(const std::string& key) const override;

  const Address& address() const { return options_.address; }
  AnswerCounts CountAnswers() const { return asker_.CountAnswers(); }
  size_t page() const { return options_.page; }

 private:
  Container(ContainerOptions options, Server server, std::unique_ptr<HttpClient> client,
            Source source);
  Answered Send(const Question& question, const Proof& proof);
  bool Mend(const Answered& answered, const Proof& proof);
  // How far the server's clock is ahead of the one that signed, where that alone explains a
  // refusal.
  std::optional<Duration> Skew(const HttpResponse& response) const;

  const ContainerOptions options_;
  const Server server_;
  const std::unique_ptr<HttpClient> client_;
  Credentials credentials_;
  Asker asker_;
  std::atomic<int64_t> skew_{0};  // microseconds that the server's clock is ahead of ours
  std::stop_callback<std::function<void()>> on_stop_;  // last: what it uses is there
};

}  // namespace parallelrun::store::azure_blob
