// The frames between an agent and a worker process (docs/worker-protocol.md). Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/core/agent_types.h"
#include "job/side_list.h"

namespace parallelrun::agent {

inline constexpr size_t kFrameHead = 5;
inline constexpr size_t kMaxFrameBody = size_t{64} << 20;
inline constexpr size_t kStatusPageBytes = 4096;
// A worker process that gets it writes its Python stacks: a signal that scripts and
// libraries leave alone.
inline constexpr int kStackSignal = 60;

enum class FrameType : uint8_t {
  kStart = 1,
  kBatch = 2,
  kStop = 3,
  kHeaderOfJob = 4,
  kSideFilesSent = 5,
  kReady = 16,
  kInitFailed = 17,
  kResult = 18,
  kRows = 19,
  kFailed = 20,
  kStopped = 21,
  kMetric = 22,
  kHeader = 23,
  kPassedOver = 24,
  kOwes = 25,
  kSideFiles = 26,
};

// The first byte of kSideFilesSent.
enum class SideFilesAnswer : uint8_t {
  kGoesOn = 0,
  kSent = 1,     // the line that stands in front of the rows follows, without its end
  kNotSent = 2,  // why follows
};

// Appends a whole frame.
void AppendFrame(std::string& out, FrameType type, std::string_view body);
void AppendSideFilesSent(std::string& out, SideFilesAnswer answer, std::string_view text);
void AppendBatchFrame(std::string& out, uint64_t sequence, std::string_view work);

struct RowsFrame {
  uint64_t sequence = 0;
  std::string_view rows;
};

struct SideFilesFrame {
  uint64_t sequence = 0;
  job::SideList list;
};

// The failure JSON, as far as an agent needs it.
struct FailureText {
  std::string kind;
  std::string message;  // "ValueError: could not convert … (score.py:31)"
  bool fatal = false;
  job::OutputRanges output{};
};

// Bodies; nullopt when they are not what the protocol says.
// Whether something of the script's is left for the end of the process, as a shutdown().
std::optional<bool> ParseReady(std::string_view body);
std::optional<ResultAnswer> ParseResult(std::string_view body);
std::optional<RowsFrame> ParseRows(std::string_view body);
std::optional<SideFilesFrame> ParseSideFiles(std::string_view body);
std::optional<uint64_t> ParseSequence(std::string_view body);
std::optional<FailedAnswer> ParseFailed(std::string_view body);
std::optional<FailureText> ParseFailure(std::string_view json);
// Of a metric: one JSON object within its bound.
bool IsMetric(std::string_view body);

// How many items a mini-batch has, by its Work.
uint32_t ItemsOfWork(std::string_view work);

}  // namespace parallelrun::agent
