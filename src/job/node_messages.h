// The exchange between an agent and its coordinator (docs/coordinator-api.md). Plain data; views
// point into the decoded bytes, or into the caller's memory when encoding. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/attempt_result.h"
#include "job/ids.h"

namespace parallelrun::job {

// Of register and exchange: raised with every change of either.
inline constexpr uint32_t kNodeProtocol = 9;

struct HeldLease {
  BatchId id = 0;
  Fence fence;
  bool started = false;
  bool wants_urls = false;  // it has not started, and of an object the URL has ended
};

struct OfferedLease {
  BatchId id = 0;
  Fence fence;
  uint64_t digest = 0;
};

// An earlier part of the rows of a result that follows.
struct RowsPart {
  BatchId id = 0;
  Fence fence;
  uint64_t offset = 0;  // within the rows of this mini-batch
  std::string_view rows;
};

struct Finished : AttemptResult {
  enum class Kind : uint8_t { kSucceeded = 1, kFailed = 2, kReturned = 3 };
  BatchId id = 0;
  Fence fence;
  Kind kind = Kind::kSucceeded;
  uint32_t process = 0;
  // kSucceeded
  uint64_t rows_offset = 0;  // bytes that were sent before, in parts
  std::string_view rows;
  // kFailed
  Cause cause = Cause::kRun;
  std::string_view error_kind;
  std::string_view message;
  std::string_view log;
  OutputRanges output{};
};

struct ProcessEvent {
  // In place of a process, with kWhere: what the whole node waits for.
  static constexpr uint32_t kWholeNode = std::numeric_limits<uint32_t>::max();
  enum class Kind : uint8_t {
    kInitFailed = 1,
    kScriptUnusable = 2,
    kReady = 3,
    kExited = 4,
    kGaveUp = 5,
    kMetric = 6,  // message: JSON of kMaxMetricBytes at most; log: see docs/coordinator-api.md
    kHeader = 7,  // message: a line of kMaxHeaderBytes at most
    kNoRoom = 8,  // message: why the node begins nothing; empty: there is room again
    kRanOut = 9,  // message: what a process had no space for; empty: results come again
    // Of processes whose script has a shutdown(), in this order:
    kOwes = 10,         // it is ready: shutdown() is to be run
    kOwing = 11,        // message: the numbers of all that live here and owe it
    kClosed = 12,       // shutdown() has returned
    kCloseFailed = 13,  // it raised: message and log
    kCutOff = 14,       // it was given no more time: message
    kCloseLost = 15,    // its process was gone before: message
    kWhere = 16,        // where its script is in Python: message, and the log with all of it
    // Of side inputs in stores, before a process of the node is started:
    kFetching = 17,     // message: what it is at; log: bytes that it has. Empty: all are there
    kFetchFailed = 18,  // message: why no node will ever have them
    kStoreWait = 19,    // message: which store keeps the node waiting, and how; empty: none does
  };
  uint32_t process = 0;
  Kind kind = Kind::kReady;
  std::string_view message;
  std::string_view log;
};

inline constexpr size_t kMaxMetricBytes = size_t{4} << 10;
inline constexpr size_t kMaxHeaderBytes = size_t{64} << 10;

struct ExchangeRequest {
  Incarnation incarnation;
  uint64_t settings_digest = 0;
  uint64_t number = 0;   // of this request, within the incarnation
  uint64_t open = 0;     // number of the other one under way; 0: none
  bool unheard = false;  // an earlier one got no answer; `held` and `offered` are complete
  uint32_t want = 0;
  uint32_t park_ms = 0;
  std::vector<HeldLease> held;
  std::vector<OfferedLease> offered;
  std::vector<RowsPart> parts;
  std::vector<Finished> finished;
  std::vector<ProcessEvent> events;
};

enum class Directive : uint8_t {
  kGoOn = 0,
  kDrain = 1,
  kFinish = 2,
  kClose = 3,
  kWhere = 4,  // go on, and tell where the processes are
};

struct LeaseName {
  BatchId id = 0;
  Fence fence;
  auto operator<=>(const LeaseName&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Adopted {
  BatchId id = 0;
  Fence old_fence;
  Fence fence;
};

struct Leased {
  BatchId id = 0;
  Fence fence;
  uint64_t digest = 0;
  std::string_view work;
};

// By which a node reads the objects that the Work of a mini-batch names, where it has no keys of
// their store. Secrets.
struct ObjectUrls {
  BatchId id = 0;
  Fence fence;
  uint32_t seconds = 0;                // that they are good for, from now on
  std::string_view why;                // there are none
  std::vector<std::string_view> urls;  // in the order of the objects (ObjectsOf)
};

struct ExchangeReply {
  uint32_t epoch = 0;
  Directive directive = Directive::kGoOn;
  std::vector<LeaseName> settled;
  std::vector<LeaseName> refused;
  std::vector<Adopted> adopted;
  std::vector<Leased> leased;
  std::string_view header;       // that of the job, where the request told one; else empty
  std::vector<ObjectUrls> urls;  // of what is leased, and of what the request holds
};

// Bound of a body, and how many bytes of rows one exchange may carry.
inline constexpr size_t kMaxExchangeBytes = size_t{16} << 20;
inline constexpr size_t kMaxRowsBytes = size_t{4} << 20;
// Of the URLs in one answer, half of what its reader takes; those of 15,000 objects and more.
inline constexpr size_t kMaxUrlBytes = size_t{32} << 20;

std::string Encode(const ExchangeRequest& request);
std::string Encode(const ExchangeReply& reply);
// Adds URLs to an encoded reply that has none: they are signed when what it says is gone.
void AddUrls(std::string& reply, const std::vector<ObjectUrls>& urls);
// kInvalid when the bytes are not exactly one message.
Result<ExchangeRequest> DecodeExchangeRequest(std::string_view bytes);
// Also of a request of another protocol; zeros when there is none.
Incarnation IncarnationOf(std::string_view request);
Result<ExchangeReply> DecodeExchangeReply(std::string_view bytes);

}  // namespace parallelrun::job
