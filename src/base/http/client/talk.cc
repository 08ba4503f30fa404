#include "base/http/client/talk.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace parallelrun {
namespace {

constexpr size_t kReadBytes = 64 * 1024;
// Sent before it is looked whether the server says something already.
constexpr size_t kWriteBytes = 64 * 1024;

}  // namespace

Result<bool> Talk::Run() {
  while (!answer_.done()) {
    const bool sends = !sent_ && !failed_ && !refused_;
    bool moved = false;
    if (sends) {
      const Result<bool> sent = Send();
      if (!sent) return sent;
      moved = *sent;
    }
    // Just after the last byte of a request its answer cannot be there: one system call less.
    const bool asked = sends && sent_;
    if (!asked || may_have_more_) {
      const Result<bool> received = Receive();
      if (!received) return received;
      moved = moved || *received;
      refused_ = refused_ || (!sent_ && answer_.head_done() && answer_.response().status >= 300);
    }
    if (answer_.done()) break;
    if (moved) since_ = std::chrono::steady_clock::now();
    // A peer that always has a byte ready must not keep us beyond our time: a wait would find it.
    if (moved && since_ >= limits_.whole) return Error{Code::kTimeout, ""};
    if (moved && !asked) continue;
    if (const Status waited = Wait(); !waited.ok()) return waited.error();
  }
  if (sent_) return answer_.keeps_alive();
  if (refused_) return false;
  // A success that is told before it can be true.
  return failed_ ? *failed_
                 : Error{Code::kUnavailable, "the server answered before it had the whole request"};
}

// Whether something went out.
Result<bool> Talk::Send() {
  const Result<std::string_view> next = sending_.Next();
  if (!next) return next.error();
  if (next->empty()) {
    sent_ = true;
    return false;
  }
  const Result<Moved> moved = wire_.Write(next->substr(0, kWriteBytes));
  if (!moved) {
    failed_ = moved.error();
    return true;  // to listen: it may have said why
  }
  sending_.Sent(moved->bytes);
  const Result<std::string_view> more = sending_.Next();
  if (!more) return more.error();
  sent_ = more->empty();
  return moved->bytes > 0;
}

// Whether something came.
Result<bool> Talk::Receive() {
  std::array<char, kReadBytes> bytes;
  const Result<Moved> moved = wire_.Read(bytes.data(), bytes.size());
  if (!moved) return failed_ ? *failed_ : moved.error();
  may_have_more_ = moved->bytes > 0;
  if (moved->end) {
    if (const Status end = answer_.End(); !end.ok()) return failed_ ? *failed_ : end.error();
    return true;
  }
  if (const Status put = answer_.Put({bytes.data(), moved->bytes}); !put.ok()) return put.error();
  return moved->bytes > 0;
}

Status Talk::Wait() {
  const bool sends = !sent_ && !failed_ && !refused_;
  const bool silent = !sends && !answer_.heard();
  const Duration patience = silent ? limits_.first_byte : limits_.idle;
  const SteadyTime limit = std::min(limits_.whole, since_ + patience);
  Status waited = wire_.Wait(true, sends, limit);
  if (waited.ok() || waited.error().code != Code::kTimeout) return waited;
  if (std::chrono::steady_clock::now() < limit) return {};  // a clock's rounding
  if (limit == limits_.whole) return waited;
  const char* what = sends    ? "the server took no byte"
                     : silent ? "no answer"
                              : "no byte of the answer";
  return Error{Code::kTimeout, fmt::format("{} for {}", what, HumanDuration(patience))};
}

}  // namespace parallelrun
