// Credentials from memory and from files.
#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "kube/config.h"
#include "kube/text_file.h"

namespace parallelrun::kube {
namespace {

class Files final : public CredentialSource {
 public:
  Files(Credential fixed, CredentialFiles files, std::shared_ptr<const Clock> clock)
      : files_(std::move(files)), clock_(std::move(clock)), held_(std::move(fixed)) {}

  Result<Credential> Get() override {
    const std::lock_guard lock(mutex_);
    const Instant now = clock_->Now();
    if (read_ && now < *read_ + kTokenPeriod - kTokenLeeway) return held_;
    Credential next = held_;
    const Status status = Read(next);
    if (status.ok()) {
      held_ = std::move(next);
      read_ = now;
      ever_ = true;
    } else if (!ever_) {
      return status.error();
    } else {
      spdlog::warn("credentials: {}; the old ones stay in use", status.error().message);
      read_ = now - (kTokenPeriod - kTokenLeeway) + kRetry;
    }
    return held_;
  }

  Credential Latest() override {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  void Refused(const std::string& token) override {
    const std::lock_guard lock(mutex_);
    if (token == held_.token) read_.reset();
  }

 private:
  static constexpr Duration kRetry = seconds(5);  // after a file could not be read

  Status Read(Credential& next) const {
    for (const auto& [path, text] : {std::pair{&files_.token, &next.token},
                                     std::pair{&files_.certificate, &next.certificate_pem},
                                     std::pair{&files_.key, &next.key_pem}}) {
      if (path->empty()) continue;
      Result<std::string> read = ReadTextFile(*path);
      if (!read.ok()) return read.error();
      *text = std::move(*read);
    }
    next.token = Trimmed(next.token);
    return {};
  }

  const CredentialFiles files_;
  const std::shared_ptr<const Clock> clock_;
  std::mutex mutex_;  // guards what follows
  Credential held_;
  std::optional<Instant> read_;
  bool ever_ = false;
};

class Fixed final : public CredentialSource {
 public:
  explicit Fixed(Credential credential) : credential_(std::move(credential)) {}
  Result<Credential> Get() override { return credential_; }
  Credential Latest() override { return credential_; }
  void Refused(const std::string&) override {}

 private:
  const Credential credential_;
};

}  // namespace

std::shared_ptr<CredentialSource> FixedCredential(Credential credential) {
  return std::make_shared<Fixed>(std::move(credential));
}

std::shared_ptr<CredentialSource> FileCredential(Credential fixed, CredentialFiles files,
                                                 std::shared_ptr<const Clock> clock) {
  return std::make_shared<Files>(std::move(fixed), std::move(files), std::move(clock));
}

}  // namespace parallelrun::kube
