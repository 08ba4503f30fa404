#include "coordinator/plan/parquet_footer.h"

#include <limits>
#include <optional>

#include "base/bytes.h"

namespace parallelrun {
namespace {

constexpr int kMostDepth = 32;

enum class Type : uint8_t {
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

// Thrift's compact protocol. Like Decoder, whose reads it makes: the first one that cannot be
// fails all later ones.
class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : from_(bytes) {}

  bool ok() const { return from_.ok(); }

  struct Field {
    Type type = Type::kStop;
    int64_t id = 0;
  };
  // The next field of a struct, whose last one had the id `before`; kStop at its end.
  Field NextField(int64_t before) {
    const uint8_t head = from_.U8();
    const auto type = Type{static_cast<uint8_t>(head & 0x0F)};
    if (type == Type::kStop) return {};
    const int64_t delta = head >> 4;
    return {type, delta != 0 ? before + delta : Integer()};
  }

  struct Elements {
    Type type = Type::kStop;
    uint64_t count = 0;
  };
  Elements List() {
    const uint8_t head = from_.U8();
    const uint64_t count = head >> 4 == 15 ? Varint() : head >> 4;
    if (count > from_.left()) from_.Fail();  // an element has a byte at least
    return {Type{static_cast<uint8_t>(head & 0x0F)}, ok() ? count : 0};
  }

  int64_t Integer() {
    const uint64_t zigzag = Varint();
    return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
  }

  void Skip(Type type, int depth) {
    if (depth > kMostDepth) return from_.Fail();
    switch (type) {
      case Type::kTrue:
      case Type::kFalse: return;  // the value is the type
      case Type::kI8: from_.U8(); return;
      case Type::kI16:
      case Type::kI32:
      case Type::kI64: Varint(); return;
      case Type::kDouble: from_.U64(); return;
      case Type::kBinary: from_.Bytes(Varint()); return;
      case Type::kUuid: from_.Bytes(16); return;
      case Type::kList:
      case Type::kSet: return SkipElements(List(), depth);
      case Type::kMap: return SkipMap(depth);
      case Type::kStruct: {
        Field field;
        while (ok() && (field = NextField(field.id)).type != Type::kStop) {
          Skip(field.type, depth + 1);
        }
        return;
      }
      case Type::kStop: break;
    }
    from_.Fail();
  }

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
  void SkipElement(Type type, int depth) {
    if (type == Type::kTrue || type == Type::kFalse) {
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
      SkipElement(Type{static_cast<uint8_t>(types >> 4)}, depth + 1);
      SkipElement(Type{static_cast<uint8_t>(types & 0x0F)}, depth + 1);
    }
  }

  Decoder from_;
};

// A count that must be there and not be negative.
uint64_t Count(ThriftReader& from, const std::optional<int64_t>& value) {
  if (!value || *value < 0) return from.Fail(), 0;
  return static_cast<uint64_t>(*value);
}

ParquetRowGroup ReadRowGroup(ThriftReader& from) {
  std::optional<int64_t> rows;
  std::optional<int64_t> decoded;
  std::optional<int64_t> stored;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != Type::kStop) {
    const bool i64 = field.type == Type::kI64;
    if (i64 && field.id == 2) {
      decoded = from.Integer();
    } else if (i64 && field.id == 3) {
      rows = from.Integer();
    } else if (i64 && field.id == 6) {
      stored = from.Integer();
    } else {
      from.Skip(field.type, 0);
    }
  }
  return {Count(from, rows), Count(from, stored ? stored : decoded)};
}

}  // namespace

Result<std::vector<ParquetRowGroup>> ParseParquetFooter(std::string_view footer) {
  ThriftReader from(footer);
  std::optional<int64_t> rows;
  std::optional<std::vector<ParquetRowGroup>> groups;
  uint64_t sum = 0;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != Type::kStop) {
    if (field.id == 3 && field.type == Type::kI64) {
      rows = from.Integer();
    } else if (field.id == 4 && field.type == Type::kList && !groups) {
      const auto list = from.List();
      if (list.type != Type::kStruct && list.count > 0) from.Fail();
      groups.emplace();
      for (uint64_t i = 0; i < list.count && from.ok(); ++i) {
        groups->push_back(ReadRowGroup(from));
        // Every count is below 2^63, so the sum is right up to here.
        sum += groups->back().rows;
        if (sum > std::numeric_limits<int64_t>::max()) from.Fail();
      }
    } else {
      from.Skip(field.type, 0);
    }
  }
  const uint64_t total = Count(from, rows);
  if (!from.ok() || !groups || sum != total) {
    return Error{Code::kInvalid, "its footer is not that of a Parquet file"};
  }
  return *std::move(groups);
}

}  // namespace parallelrun
