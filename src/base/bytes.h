// Little-endian encoding for the ledger, the node API and the worker protocol. A decoder never
// reads past its end: the first short read makes it fail, every later read gives zero, and the
// caller checks ok() once. Not thread-safe.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace parallelrun {

class Encoder {
 public:
  // Appends to `out`, which must outlive the encoder.
  explicit Encoder(std::string& out) : out_(out) {}

  void U8(uint8_t v) { Fixed(v); }
  void U16(uint16_t v) { Fixed(v); }
  void U32(uint32_t v) { Fixed(v); }
  void U64(uint64_t v) { Fixed(v); }
  void I64(int64_t v) { Fixed(v); }
  void Bytes(std::string_view v) { out_.append(v); }
  // A u32 length, then the bytes.
  void Text(std::string_view v) {
    U32(static_cast<uint32_t>(v.size()));
    out_.append(v);
  }

 private:
  template <typename T>
  void Fixed(T v) {
    static_assert(std::is_integral_v<T>);
    char raw[sizeof(T)];
    std::memcpy(raw, &v, sizeof(T));  // x86-64 and arm64 are little-endian; static_assert below
    out_.append(raw, sizeof(T));
  }
  std::string& out_;
};

class Decoder {
 public:
  // Reads from `in`, whose bytes must outlive the decoder and the views it returns.
  explicit Decoder(std::string_view in) : in_(in) {}

  uint8_t U8() { return Fixed<uint8_t>(); }
  uint16_t U16() { return Fixed<uint16_t>(); }
  uint32_t U32() { return Fixed<uint32_t>(); }
  uint64_t U64() { return Fixed<uint64_t>(); }
  int64_t I64() { return Fixed<int64_t>(); }
  std::string_view Bytes(size_t n) {
    if (n > in_.size()) return Fail(), std::string_view();
    const std::string_view v = in_.substr(0, n);
    in_.remove_prefix(n);
    return v;
  }
  std::string_view Text() { return Bytes(U32()); }

  // A count that announces at least `item_size` bytes each: one that cannot fit fails at once,
  // so that a hostile count never sizes a buffer.
  uint32_t Count(size_t item_size) {
    const uint32_t n = U32();
    if (n > in_.size() / item_size) return Fail(), 0;
    return n;
  }

  size_t left() const { return in_.size(); }
  bool ok() const { return ok_; }
  // All bytes were read, and none too many.
  bool Done() const { return ok_ && in_.empty(); }
  void Fail() {
    ok_ = false;
    in_ = {};
  }

 private:
  template <typename T>
  T Fixed() {
    if (in_.size() < sizeof(T)) return Fail(), T{0};
    T v;
    std::memcpy(&v, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return v;
  }
  std::string_view in_;
  bool ok_ = true;
};

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire and file formats are written for little-endian machines"
#endif

}  // namespace parallelrun
