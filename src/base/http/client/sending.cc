#include "base/http/client/sending.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace parallelrun {
namespace {

// A body this small travels in one piece with its head.
constexpr size_t kJoinBytes = 16 * 1024;
// Of a file, at a time.
constexpr uint64_t kFileBytes = 64 * 1024;

}  // namespace

Sending::Sending(std::string head, const HttpCall& call)
    : piece_(std::move(head)), file_(call.file) {
  if (!file_) {
    const std::string_view body = call.request.body;
    const size_t joined = body.size() <= kJoinBytes ? body.size() : 0;
    piece_ += body.substr(0, joined);
    rest_ = body.substr(joined);
  }
  next_ = piece_;
}

Result<std::string_view> Sending::Next() {
  if (!next_.empty()) return next_;
  if (!rest_.empty()) {
    next_ = std::exchange(rest_, {});
  } else if (file_ && file_->size > 0) {
    piece_.resize(std::min(file_->size, kFileBytes));
    const ssize_t n =
        pread(file_->fd, piece_.data(), piece_.size(), static_cast<off_t>(file_->offset));
    if (n < 0) return ErrnoError(errno, "read the file to send");
    if (n == 0) {
      return Error{Code::kInvalid, fmt::format("the file to send ends {} bytes early; it was cut "
                                               "while it was sent",
                                               file_->size)};
    }
    file_->offset += static_cast<uint64_t>(n);
    file_->size -= static_cast<uint64_t>(n);
    piece_.resize(static_cast<size_t>(n));
    next_ = piece_;
  }
  return next_;
}

void Sending::Sent(size_t count) { next_.remove_prefix(count); }

}  // namespace parallelrun
