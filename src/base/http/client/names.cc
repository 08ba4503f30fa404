#include "base/http/client/names.h"

#include <netdb.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/thread.h"

namespace parallelrun {
namespace {

constexpr size_t kMostAddresses = 16;

Result<Addresses> Ask(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* first = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &first);
  if (failed != 0) {
    return Error{Code::kUnavailable,
                 "look up the name " + host + ": " +
                     (failed == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(failed))};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(first, freeaddrinfo);
  Addresses found;
  for (const addrinfo* one = first; one != nullptr && found.size() < kMostAddresses;
       one = one->ai_next) {
    Address& address = found.emplace_back();
    address.size = one->ai_addrlen;
    std::memcpy(&address.bytes, one->ai_addr, one->ai_addrlen);
  }
  return found;
}

}  // namespace

std::string Address::Text() const {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&bytes), size, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  const std::string name = host.data();
  return (bytes.ss_family == AF_INET6 ? "[" + name + "]:" : name + ":") + port.data();
}

Result<Addresses> LookUp(const std::string& host, uint16_t port) { return Ask(host, port, 0); }

Names::Names(std::string host, uint16_t port, Look look)
    : host_(std::move(host)), port_(port), look_(std::move(look)) {
  // This asks nobody.
  if (const Result<Addresses> known = Ask(host_, port_, AI_NUMERICHOST); known) fixed_ = *known;
}

Result<Addresses> Names::Find(SteadyTime limit) {
  if (fixed_) return *fixed_;
  std::unique_lock lock(shared_->mutex);
  if (!shared_->current) {
    shared_->current = std::make_shared<std::optional<Result<Addresses>>>();
    // It goes on alone, with what it holds itself.
    try {
      Thread("name look-up", [look = look_, host = host_, port = port_, shared = shared_] {
        Result<Addresses> found = look(host, port);
        const std::lock_guard done(shared->mutex);
        *shared->current = std::move(found);
        shared->current.reset();
        shared->changed.notify_all();
      }).detach();
    } catch (const std::system_error& error) {
      // A script has forked until its node may no more: the call is to be tried again.
      shared_->current.reset();
      return Error{Code::kUnavailable,
                   "look up the name " + host_ + ": no thread can be started: " + error.what()};
    }
  }
  const auto mine = shared_->current;
  const auto over = [&] { return shared_->cancelled || mine->has_value(); };
  if (!shared_->changed.wait_until(lock, limit, over)) {
    return Error{Code::kTimeout, "look up the name " + host_ + ": no answer in time"};
  }
  if (shared_->cancelled) return CancelledError();
  return **mine;
}

void Names::Cancel() {
  const std::lock_guard lock(shared_->mutex);
  shared_->cancelled = true;
  shared_->changed.notify_all();
}

}  // namespace parallelrun
