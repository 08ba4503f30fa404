// Writes Thrift's compact protocol, in which what describes a Parquet file is written. Fields come
// in the order of their ids, and each struct ends. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parquet/thrift_reader.h"

namespace parallelrun::parquet {

class ThriftWriter {
 public:
  // Appends to `out`, which must outlive the writer. It begins within a struct.
  explicit ThriftWriter(std::string& out) : out_(out), last_{0} {}

  void I32(int16_t id, int32_t value) {
    Head(id, ThriftType::kI32);
    Zigzag(value);
  }
  void I64(int16_t id, int64_t value) {
    Head(id, ThriftType::kI64);
    Zigzag(value);
  }
  void Boolean(int16_t id, bool value) { Head(id, value ? ThriftType::kTrue : ThriftType::kFalse); }
  void Binary(int16_t id, std::string_view bytes) {
    Head(id, ThriftType::kBinary);
    BinaryElement(bytes);
  }
  // Its elements follow.
  void List(int16_t id, ThriftType of, uint64_t count) {
    Head(id, ThriftType::kList);
    const auto type = static_cast<uint8_t>(of);
    if (count < 15) {
      out_ += static_cast<char>(count << 4 | type);
    } else {
      out_ += static_cast<char>(0xF0 | type);
      Varint(count);
    }
  }
  void I32Element(int32_t value) { Zigzag(value); }
  void BinaryElement(std::string_view bytes) {
    Varint(bytes.size());
    out_ += bytes;
  }
  void BeginStruct(int16_t id) {
    Head(id, ThriftType::kStruct);
    last_.push_back(0);
  }
  void BeginElement() { last_.push_back(0); }
  // Of a struct that has begun, or of the one around all.
  void EndStruct() {
    out_ += '\0';
    last_.pop_back();
  }

 private:
  void Head(int16_t id, ThriftType type) {
    const int delta = id - last_.back();
    if (delta > 0 && delta < 16) {
      out_ += static_cast<char>(delta << 4 | static_cast<uint8_t>(type));
    } else {
      out_ += static_cast<char>(type);
      Zigzag(id);
    }
    last_.back() = id;
  }
  void Zigzag(int64_t value) {
    Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
  }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string& out_;
  std::vector<int16_t> last_;  // field of each struct that has begun
};

}  // namespace parallelrun::parquet
