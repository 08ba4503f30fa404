#include "tests/support/memory_sink.h"

#include <utility>

namespace parallelrun {

class MemorySink::Upload final : public output::Writer {
 public:
  explicit Upload(MemorySink& sink) : sink_(sink) {}

  Status Append(std::string_view bytes) override {
    bytes_.append(bytes);
    return {};
  }

  Status AppendIndex(std::string_view bytes) override {
    index_.append(bytes);
    return {};
  }

  Result<output::Commit> End(const job::Published& written,
                             const output::Replaceable& replaceable) override {
    if (sink_.stale_) return output::Commit{output::Committed::kStale, "the token has ended", ""};
    if (sink_.object_ && !replaceable.whatever && !Ours(*sink_.object_, written, replaceable)) {
      return output::Commit{output::Committed::kForeign, written.path + " is somebody else's", ""};
    }
    sink_.object_ = {std::move(bytes_), written};
    sink_.index_ = std::move(index_);
    if (std::exchange(sink_.lose_answer_, false)) {
      return Error{Code::kUnavailable, "the answer was lost"};
    }
    return output::Commit{};
  }

 private:
  static bool Ours(const Object& there, const job::Published& written,
                   const output::Replaceable& replaceable) {
    if (!there.mark) return false;
    const auto& mark = there.mark->sha256;
    return mark == written.sha256 || (replaceable.last && mark == replaceable.last->sha256);
  }

  MemorySink& sink_;
  std::string bytes_;
  std::string index_;
};

Result<std::unique_ptr<output::Writer>> MemorySink::Begin(uint64_t) {
  if (stale_) return Error{Code::kStale, "the token has ended"};
  return std::unique_ptr<output::Writer>(std::make_unique<Upload>(*this));
}

}  // namespace parallelrun
