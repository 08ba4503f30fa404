#include "agent/processes/frames.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/bytes.h"
#include "base/escape.h"
#include "base/json.h"
#include "job/failure_text.h"
#include "job/node_messages.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMaxFailureMessage = 4096;
constexpr size_t kMaxName = 256;

// [from, to] of bytes; zeros unless it is one.
std::pair<uint64_t, uint64_t> RangeOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& range = lenient::List(object, key);
  if (range.size() != 2) return {};
  const nlohmann::json& from = range[0];
  const nlohmann::json& to = range[1];
  if (!from.is_number_unsigned() || !to.is_number_unsigned()) return {};
  return {from.get<uint64_t>(), to.get<uint64_t>()};
}

}  // namespace

void AppendFrame(std::string& out, FrameType type, std::string_view body) {
  Encoder encoder(out);
  encoder.U32(static_cast<uint32_t>(body.size()));
  encoder.U8(static_cast<uint8_t>(type));
  encoder.Bytes(body);
}

void AppendSideFilesSent(std::string& out, SideFilesAnswer answer, std::string_view text) {
  Encoder encoder(out);
  encoder.U32(static_cast<uint32_t>(1 + text.size()));
  encoder.U8(static_cast<uint8_t>(FrameType::kSideFilesSent));
  encoder.U8(static_cast<uint8_t>(answer));
  encoder.Bytes(text);
}

void AppendBatchFrame(std::string& out, uint64_t sequence, std::string_view work) {
  Encoder encoder(out);
  encoder.U32(static_cast<uint32_t>(sizeof(sequence) + work.size()));
  encoder.U8(static_cast<uint8_t>(FrameType::kBatch));
  encoder.U64(sequence);
  encoder.Bytes(work);
}

std::optional<bool> ParseReady(std::string_view body) {
  Decoder in(body);
  in.U64();  // how long that took
  const uint8_t shutdown = in.U8();
  if (!in.Done() || shutdown > 1) return std::nullopt;
  return shutdown == 1;
}

std::optional<ResultAnswer> ParseResult(std::string_view body) {
  Decoder in(body);
  ResultAnswer answer;
  answer.sequence = in.U64();
  GetResult(in, answer, job::Carrier::kFrame, true);
  answer.rows = in.Bytes(in.left());
  if (!in.ok()) return std::nullopt;
  return answer;
}

std::optional<RowsFrame> ParseRows(std::string_view body) {
  Decoder in(body);
  RowsFrame frame;
  frame.sequence = in.U64();
  frame.rows = in.Bytes(in.left());
  if (!in.ok()) return std::nullopt;
  return frame;
}

std::optional<SideFilesFrame> ParseSideFiles(std::string_view body) {
  Decoder in(body);
  SideFilesFrame frame;
  frame.sequence = in.U64();
  const std::string_view line = in.Bytes(in.left());
  if (!in.ok()) return std::nullopt;
  Result<job::SideList> list = job::ParseSideList(line);
  if (!list.ok() || list->files.empty()) return std::nullopt;
  frame.list = std::move(*list);
  return frame;
}

std::optional<uint64_t> ParseSequence(std::string_view body) {
  Decoder in(body);
  const uint64_t sequence = in.U64();
  if (!in.Done()) return std::nullopt;
  return sequence;
}

std::optional<FailureText> ParseFailure(std::string_view json) {
  const nlohmann::json parsed = ParseJson(json).value_or(nullptr);
  FailureText failure;
  failure.kind = lenient::Text(parsed, "kind");
  if (failure.kind.empty() || failure.kind.size() > kMaxName) return std::nullopt;
  const std::string type = lenient::Text(parsed, "type");
  const std::string location = lenient::Text(parsed, "location");
  // What ParallelRun itself found wrong has its kind as its type: no need to say it twice.
  failure.message =
      job::JoinFailure({type == failure.kind ? "" : Printable(type, kMaxName),
                        lenient::Text(parsed, "message"), Printable(location, 2 * kMaxName)},
                       kMaxFailureMessage);
  failure.fatal = lenient::Boolean(parsed, "fatal");
  std::tie(failure.output.stdout_begin, failure.output.stdout_end) = RangeOf(parsed, "stdout");
  std::tie(failure.output.stderr_begin, failure.output.stderr_end) = RangeOf(parsed, "stderr");
  return failure;
}

job::Cause CauseOf(std::string_view kind) {
  if (kind == "Misfit") return job::Cause::kMisfit;
  const bool input = kind == "InputChanged" || kind == "InputUnreadable";
  return input ? job::Cause::kInput : job::Cause::kRun;
}

std::optional<FailedAnswer> ParseFailed(std::string_view body) {
  Decoder in(body);
  FailedAnswer answer;
  answer.sequence = in.U64();
  GetResult(in, answer, job::Carrier::kFrame, false);
  const std::string_view json = in.Bytes(in.left());
  if (!in.ok()) return std::nullopt;
  std::optional<FailureText> failure = ParseFailure(json);
  if (!failure) return std::nullopt;
  answer.cause = CauseOf(failure->kind);
  answer.kind = std::move(failure->kind);
  answer.message = std::move(failure->message);
  answer.output = failure->output;
  return answer;
}

bool IsMetric(std::string_view body) {
  if (body.size() > job::kMaxMetricBytes) return false;
  return ParseObject(body).has_value();
}

uint32_t ItemsOfWork(std::string_view work) {
  Decoder in(work);
  in.Bytes(20);  // kind, attempts, id, first item
  return in.U32();
}

}  // namespace parallelrun::agent
