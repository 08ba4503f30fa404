#include "coordinator/log_tree/log_segment.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <optional>

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostOfHead = 4096;  // a name has 8 parts of 255 bytes

std::optional<uint64_t> TakeNumber(std::string_view& head) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(head.data(), head.data() + head.size(), number);
  if (error != std::errc() || end == head.data() + head.size() || *end != ' ') return std::nullopt;
  head.remove_prefix(static_cast<size_t>(end - head.data()) + 1);
  return number;
}

bool TakeWord(std::string_view& head, std::string_view word) {
  if (!head.starts_with(word)) return false;
  head.remove_prefix(word.size());
  return true;
}

}  // namespace

std::string EncodeLogRecord(const LogRecord& record) {
  std::string text = fmt::format("log {} {} {} {}\n", record.offset, record.bytes.size(),
                                 record.anew ? "anew" : "at", record.name);
  text += record.bytes;
  text += '\n';
  return text;
}

Result<size_t> ReadLogRecords(std::string_view segment,
                              const std::function<Status(const LogRecord&)>& each) {
  size_t whole = 0;
  for (;;) {
    std::string_view rest = segment.substr(whole);
    const size_t end = rest.substr(0, kMostOfHead).find('\n');
    if (end == std::string_view::npos) return whole;
    std::string_view head = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    LogRecord record;
    if (!TakeWord(head, "log ")) return whole;
    const std::optional<uint64_t> offset = TakeNumber(head);
    const std::optional<uint64_t> bytes = TakeNumber(head);
    if (!offset || !bytes) return whole;
    record.anew = TakeWord(head, "anew ");
    if (!record.anew && !TakeWord(head, "at ")) return whole;
    if (rest.size() <= *bytes || rest[*bytes] != '\n') return whole;
    record.name = head;
    record.offset = *offset;
    record.bytes = rest.substr(0, *bytes);
    if (Status taken = each(record); !taken.ok()) return taken.error();
    whole += end + 1 + *bytes + 1;
  }
}

}  // namespace parallelrun::coordinator
