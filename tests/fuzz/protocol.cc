// What agent, coordinator and worker processes say to each other, and segments of logs. The first
// byte of an input says which message the others are.
#include <nlohmann/json.hpp>

#include "agent/processes/frames.h"
#include "coordinator/control.h"
#include "coordinator/log_tree/log_segment.h"
#include "job/node_messages.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

// A message that was understood means the same when it is written again.
template <typename Decode>
void CheckExchange(std::string_view bytes, const Decode& decode) {
  const auto message = decode(bytes);
  if (!message.ok()) return;
  const std::string once = job::Encode(*message);
  const auto again = decode(once);
  Expect(again.ok(), "an encoded message is refused");
  Expect(job::Encode(*again) == once, "a message changes when it is written again");
}

// The whole records of a segment of logs are so when they are written again.
void CheckLogSegment(std::string_view bytes) {
  const auto written = [](std::string_view segment) {
    std::string text;
    const auto whole =
        coordinator::ReadLogRecords(segment, [&text](const coordinator::LogRecord& record) {
          text += coordinator::EncodeLogRecord(record);
          return Status();
        });
    Expect(whole.ok() && *whole <= segment.size(), "a segment is longer than it is");
    return text;
  };
  const std::string once = written(bytes);
  Expect(written(once) == once, "a segment changes when it is written again");
}

// What a control says of the thresholds is what the job says then, whatever else it holds.
void CheckControl(const std::string& body) {
  const auto control = coordinator::ParseControl(body);
  const job::Thresholds now =
      control.ok() ? control->ChangedFrom({}) : job::RulesOf(body).thresholds;
  const std::string job = job::WithThresholds(body, now);
  Expect(job::RulesOf(job).thresholds == now, "thresholds change when they are written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: CheckExchange(bytes, job::DecodeExchangeRequest); break;
    case 1: CheckExchange(bytes, job::DecodeExchangeReply); break;
    case 2: CheckControl(std::string(bytes)); break;
    default:
      agent::ParseResult(bytes);
      agent::ParseRows(bytes);
      agent::ParseSequence(bytes);
      agent::ParseFailed(bytes);
      agent::ParseFailure(bytes);
      agent::IsMetric(bytes);
      agent::ItemsOfWork(bytes);
      CheckLogSegment(bytes);
  }
  return 0;
}
