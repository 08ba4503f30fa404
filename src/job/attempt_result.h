// AttemptResult: what an attempt came to, in numbers, from the worker's frame by the exchange to
// the ledger's record and the reports. Each of these is one of it with more around, so that a
// number is named once, here, and nowhere handed on by its name:
//
//     finished.result() = outcome.result();
//
// Who adds one writes it into the struct and into EachNumber, which is all there is of its bytes;
// and into the documents of the formats. The records of the ledger are what they are: one more goes
// into EachAmount instead, which older programs pass over, and which says what people see of it:
// the report and `parallelrun ledger --records` show all that stands there.
// Plain data; pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "job/ids.h"

namespace parallelrun::job {

struct AttemptResult {
  uint64_t run_ns = 0;
  uint64_t cpu_ns = 0;      // of the process, during run()
  uint64_t elapsed_ns = 0;  // on the node, loading and rows included; at least run_ns
  int64_t finished_us = 0;  // wall time of the record, since 1970
  // Of the process, beside run_ns: how long it waited for the mini-batch, read what that names, and
  // made its rows. Absent where nobody measured it, as of a process that died.
  std::optional<uint64_t> waited_ns{};
  std::optional<uint64_t> read_ns{};
  std::optional<uint64_t> wrote_ns{};
  // Of one that succeeded:
  uint32_t items_succeeded = 0;
  uint32_t items_skipped = 0;  // left out as unreadable; in the ledger a SkippedRecord says it
  uint32_t row_count = 0;

  AttemptResult& result() { return *this; }
  const AttemptResult& result() const { return *this; }
};

// What carries it (docs/worker-protocol.md, docs/coordinator-api.md, docs/ledger.md).
enum class Carrier : uint8_t { kFrame, kExchange, kRecord };

// The numbers that a carrier has, in the order of its bytes. They came to be one by one, and
// ledgers of before must be read: so the orders differ.
template <typename Of, typename Each>
constexpr void EachNumber(Of& of, Carrier in, bool succeeded, Each each) {
  each(of.run_ns);
  if (in == Carrier::kRecord) each(of.elapsed_ns);
  each(of.cpu_ns);
  if (in == Carrier::kExchange) each(of.elapsed_ns);
  if (in == Carrier::kRecord) each(of.finished_us);
  if (in != Carrier::kRecord) {
    each(of.waited_ns);
    each(of.read_ns);
    each(of.wrote_ns);
  }
  if (!succeeded) return;
  each(of.items_succeeded);
  if (in != Carrier::kRecord) each(of.items_skipped);
  each(of.row_count);
}

constexpr size_t BytesOfResult(Carrier in, bool succeeded) {
  size_t bytes = 0;
  const AttemptResult any;
  EachNumber(any, in, succeeded, [&bytes](const auto& number) {
    bytes += sizeof(number) == sizeof(uint32_t) ? sizeof(uint32_t) : sizeof(uint64_t);
  });
  return bytes;
}

inline constexpr uint64_t kNotKnown = ~uint64_t{0};  // in place of a number that is absent

inline void PutResult(Encoder& out, const AttemptResult& result, Carrier in, bool succeeded) {
  struct Write {
    Encoder& bytes;
    void operator()(uint32_t number) const { bytes.U32(number); }
    void operator()(uint64_t number) const { bytes.U64(number); }
    void operator()(int64_t number) const { bytes.I64(number); }
    void operator()(const std::optional<uint64_t>& number) const {
      bytes.U64(number.value_or(kNotKnown));
    }
  };
  EachNumber(result, in, succeeded, Write{out});
}

inline void GetResult(Decoder& from, AttemptResult& result, Carrier in, bool succeeded) {
  struct Read {
    Decoder& bytes;
    void operator()(uint32_t& number) const { number = bytes.U32(); }
    void operator()(uint64_t& number) const { number = bytes.U64(); }
    void operator()(int64_t& number) const { number = bytes.I64(); }
    void operator()(std::optional<uint64_t>& number) const {
      number = bytes.U64();
      if (number == kNotKnown) number.reset();
    }
  };
  EachNumber(result, in, succeeded, Read{from});
}

// What the record of an attempt has no place for lies in front of it, in a record of this type. It
// decides nothing, so for the ledger it is an UnknownRecord (docs/ledger.md, "usage").
inline constexpr uint8_t kUsageType = 128;

// One of its amounts, each of nanoseconds.
struct Amount {
  uint8_t what = 0;            // stored: never renumber
  std::string_view name = {};  // for people, as in "waitedSeconds"
};

template <typename Of, typename Each>
void EachAmount(Of& of, Each each) {
  each(Amount{7, "waited"}, of.waited_ns);
  each(Amount{8, "read"}, of.read_ns);
  each(Amount{9, "wrote"}, of.wrote_ns);
}

// Whose usage it is.
struct UsageName {
  BatchId id = 0;
  Fence fence;
  bool operator==(const UsageName&) const = default;
};

// Its body; empty: nothing is known.
inline std::string EncodeUsage(const UsageName& name, const AttemptResult& result) {
  std::string amounts;
  uint32_t count = 0;
  EachAmount(result, [&](const Amount& amount, const std::optional<uint64_t>& ns) {
    if (!ns) return;
    Encoder out(amounts);
    out.U8(amount.what);
    out.U64(*ns);
    ++count;
  });
  if (count == 0) return {};
  std::string body;
  Encoder out(body);
  out.U64(name.id);
  out.U32(name.fence.epoch);
  out.U64(name.fence.number);
  out.U32(count);
  out.Bytes(amounts);
  return body;
}

// What it says goes into `result`. Nothing, if it is none; what is not known here is passed over.
inline std::optional<UsageName> DecodeUsage(std::string_view body, AttemptResult& result) {
  Decoder in(body);
  UsageName name;
  name.id = in.U64();
  name.fence.epoch = in.U32();
  name.fence.number = in.U64();
  const uint32_t count = in.Count(sizeof(uint8_t) + sizeof(uint64_t));
  for (uint32_t i = 0; i < count; ++i) {
    const uint8_t what = in.U8();
    const uint64_t ns = in.U64();
    EachAmount(result, [&](const Amount& known, std::optional<uint64_t>& number) {
      if (what == known.what) number = ns;
    });
  }
  return in.Done() ? std::optional(name) : std::nullopt;
}

}  // namespace parallelrun::job
