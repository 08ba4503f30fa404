#include "plan/decompressor.h"

#include <spdlog/fmt/fmt.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <new>
#include <string>

namespace parallelrun::plan {
namespace {

using namespace std::string_view_literals;

Error Broken(const char* why) {
  return {Code::kInvalid, fmt::format("it cannot be decompressed ({})", why)};
}

class Gzip : public Decompressor {
 public:
  Gzip() {
    constexpr int kGzipOnly = 15 + 16;  // the largest window, with gzip's header
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Result<Step> Run(std::string_view from, std::span<char> to) override {
    Step step;
    if (at_ == At::kBehindMember) {
      // Zeros fill the last block of a tape or disk; as Python's gzip takes them.
      step.used = std::min(from.find_first_not_of('\0'), from.size());
      from.remove_prefix(step.used);
      if (from.empty()) return step;
      inflateReset(&stream_);
    }
    if (!from.empty()) at_ = At::kMember;
    constexpr size_t kMost = std::numeric_limits<uInt>::max();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(from.data()));
    stream_.avail_in = static_cast<uInt>(std::min(from.size(), kMost));
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(std::min(to.size(), kMost));
    const uInt given = stream_.avail_in;
    const uInt room = stream_.avail_out;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
      at_ = At::kBehindMember;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      return Broken(stream_.msg != nullptr ? stream_.msg : "its bytes are not gzip");
    }
    step.used += given - stream_.avail_in;
    step.made = room - stream_.avail_out;
    if (step.made == 0 && step.used == 0 && given > 0) return Broken("its bytes are not gzip");
    return step;
  }

  bool whole() const override { return at_ == At::kBehindMember; }

 private:
  enum class At { kFront, kMember, kBehindMember };
  z_stream stream_{};
  At at_ = At::kFront;
};

class Zstd : public Decompressor {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  Result<Step> Run(std::string_view from, std::span<char> to) override {
    if (whole_ && from.empty()) return Step();  // the library would begin a frame
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    const size_t left = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(left) != 0) return Broken(ZSTD_getErrorName(left));
    if (in.pos == 0 && out.pos == 0 && !from.empty()) return Broken("its bytes are not zstd");
    whole_ = left == 0;
    return Step{in.pos, out.pos};
  }

  bool whole() const override { return whole_; }

 private:
  ZSTD_DStream* const stream_;
  bool whole_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> MakeDecompressor(std::string_view begin) {
  if (begin.starts_with("\x1F\x8B"sv)) return std::make_unique<Gzip>();
  if (begin.starts_with("\x28\xB5\x2F\xFD"sv)) return std::make_unique<Zstd>();
  return nullptr;
}

}  // namespace parallelrun::plan
