// AttemptResult: what an attempt came to, in numbers, from the worker's frame by the exchange to
// the ledger's record and the reports. Each of these is one of it with more around, so that a
// number is named once, here, and nowhere handed on by its name:
//
//     finished.result() = outcome.result();
//
// Who adds one writes it into the struct and into EachNumber, which is all there is of its bytes;
// and into the documents of the formats, of which each that changes needs its own next version.
// Plain data; pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace parallelrun::job {

struct AttemptResult {
  uint64_t run_ns = 0;
  uint64_t cpu_ns = 0;      // of the process, during run()
  uint64_t elapsed_ns = 0;  // on the node, loading and rows included; at least run_ns
  int64_t finished_us = 0;  // wall time of the record, since 1970
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
  if (!succeeded) return;
  each(of.items_succeeded);
  if (in != Carrier::kRecord) each(of.items_skipped);
  each(of.row_count);
}

constexpr size_t BytesOfResult(Carrier in, bool succeeded) {
  size_t bytes = 0;
  const AttemptResult any;
  EachNumber(any, in, succeeded, [&bytes](const auto& number) { bytes += sizeof(number); });
  return bytes;
}

inline void PutResult(Encoder& out, const AttemptResult& result, Carrier in, bool succeeded) {
  struct Write {
    Encoder& bytes;
    void operator()(uint32_t number) const { bytes.U32(number); }
    void operator()(uint64_t number) const { bytes.U64(number); }
    void operator()(int64_t number) const { bytes.I64(number); }
  };
  EachNumber(result, in, succeeded, Write{out});
}

inline void GetResult(Decoder& from, AttemptResult& result, Carrier in, bool succeeded) {
  struct Read {
    Decoder& bytes;
    void operator()(uint32_t& number) const { number = bytes.U32(); }
    void operator()(uint64_t& number) const { number = bytes.U64(); }
    void operator()(int64_t& number) const { number = bytes.I64(); }
  };
  EachNumber(result, in, succeeded, Read{from});
}

}  // namespace parallelrun::job
