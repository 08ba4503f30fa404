// Reads Thrift's compact protocol, in which what describes a Parquet file is written. Bytes are not
// trusted: like Decoder, whose reads it makes, the first one that cannot be fails all later ones.
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace parallelrun::parquet {

enum class ThriftType : uint8_t {
  kStop = 0,
  kTrue = 1,
  kFalse = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kDouble = 7,
  kBinary = 8,
  kList = 9,
  kSet = 10,
  kMap = 11,
  kStruct = 12,
  kUuid = 13,
};

class ThriftReader {
 public:
  static constexpr int kMostDepth = 32;

  explicit ThriftReader(std::string_view bytes) : from_(bytes) {}

  bool ok() const { return from_.ok(); }
  size_t left() const { return from_.left(); }

  struct Field {
    ThriftType type = ThriftType::kStop;
    int64_t id = 0;
  };
  // The next field of a struct, whose last one had the id `before`; kStop at its end.
  Field NextField(int64_t before) {
    const uint8_t head = from_.U8();
    const auto type = ThriftType{static_cast<uint8_t>(head & 0x0F)};
    if (type == ThriftType::kStop) return {};
    const int64_t delta = head >> 4;
    return {type, delta != 0 ? before + delta : Integer()};
  }

  struct Elements {
    ThriftType type = ThriftType::kStop;
    uint64_t count = 0;
  };
  Elements List() {
    const uint8_t head = from_.U8();
    const uint64_t count = head >> 4 == 15 ? Varint() : head >> 4;
    if (count > from_.left()) from_.Fail();  // an element has a byte at least
    return {ThriftType{static_cast<uint8_t>(head & 0x0F)}, ok() ? count : 0};
  }

  int64_t Integer() {
    const uint64_t zigzag = Varint();
    return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
  }

  void Skip(ThriftType type, int depth) {
    if (depth > kMostDepth) return from_.Fail();
    switch (type) {
      case ThriftType::kTrue:
      case ThriftType::kFalse: return;  // the value is the type
      case ThriftType::kI8: from_.U8(); return;
      case ThriftType::kI16:
      case ThriftType::kI32:
      case ThriftType::kI64: Varint(); return;
      case ThriftType::kDouble: from_.U64(); return;
      case ThriftType::kBinary: from_.Bytes(Varint()); return;
      case ThriftType::kUuid: from_.Bytes(16); return;
      case ThriftType::kList:
      case ThriftType::kSet: return SkipElements(List(), depth);
      case ThriftType::kMap: return SkipMap(depth);
      case ThriftType::kStruct: {
        Field field;
        while (ok() && (field = NextField(field.id)).type != ThriftType::kStop) {
          Skip(field.type, depth + 1);
        }
        return;
      }
      case ThriftType::kStop: break;
    }
    from_.Fail();
  }

  uint8_t Byte() { return from_.U8(); }

  // The bytes of a binary field.
  std::string_view Binary() { return from_.Bytes(Varint()); }

  void Fail() { from_.Fail(); }

 private:
  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = from_.U8();
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return from_.Fail(), 0;
  }

  // An element, unlike a field, holds the value of a boolean.
  void SkipElement(ThriftType type, int depth) {
    if (type == ThriftType::kTrue || type == ThriftType::kFalse) {
      from_.U8();
    } else {
      Skip(type, depth);
    }
  }

  void SkipElements(const Elements& elements, int depth) {
    for (uint64_t i = 0; i < elements.count && ok(); ++i) SkipElement(elements.type, depth + 1);
  }

  void SkipMap(int depth) {
    const uint64_t count = Varint();
    if (count == 0) return;
    const uint8_t types = from_.U8();
    for (uint64_t i = 0; i < count && ok(); ++i) {
      SkipElement(ThriftType{static_cast<uint8_t>(types >> 4)}, depth + 1);
      SkipElement(ThriftType{static_cast<uint8_t>(types & 0x0F)}, depth + 1);
    }
  }

  Decoder from_;
};

}  // namespace parallelrun::parquet
