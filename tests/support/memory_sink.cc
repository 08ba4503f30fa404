#include "tests/support/memory_sink.h"

#include <utility>

namespace parallelrun {

class MemorySink::Upload final : public Writer {
 public:
  Upload(MemorySink& sink, std::string token) : sink_(sink), token_(std::move(token)) {}

  Status Append(std::string_view bytes) override {
    bytes_.append(bytes);
    return {};
  }

  Result<Commit> End(const Published& written, const Replaceable& replaceable) override {
    if (!sink_.tokens_.contains(token_)) return Commit{Committed::kStale, token_ + " ended", ""};
    if (sink_.object_ && !replaceable.whatever && !Ours(*sink_.object_, written, replaceable)) {
      return Commit{Committed::kForeign, written.path + " is somebody else's", ""};
    }
    sink_.object_ = {std::move(bytes_), written};
    if (std::exchange(sink_.lose_answer_, false)) {
      return Error{Code::kUnavailable, "the answer was lost"};
    }
    return Commit{};
  }

 private:
  static bool Ours(const Object& there, const Published& written, const Replaceable& replaceable) {
    if (!there.mark) return false;
    const auto& mark = there.mark->sha256;
    return mark == written.sha256 || (replaceable.last && mark == replaceable.last->sha256);
  }

  MemorySink& sink_;
  const std::string token_;
  std::string bytes_;
};

Result<std::unique_ptr<Writer>> MemorySink::Begin(const std::string& token) {
  if (!tokens_.contains(token)) return Error{Code::kStale, token + " ended"};
  return std::unique_ptr<Writer>(std::make_unique<Upload>(*this, token));
}

}  // namespace parallelrun
