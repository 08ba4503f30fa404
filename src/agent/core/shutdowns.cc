#include "agent/core/shutdowns.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace parallelrun::agent {

std::string Shutdowns::OwingText() const {
  std::string text;
  for (const auto& [process, end] : owing_) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", process);
  }
  return text;
}

void Shutdowns::Stopped(uint32_t process, std::string failure, std::string log) {
  const auto found = owing_.find(process);
  if (found == owing_.end() || found->second) return;
  if (failure.empty()) {
    found->second = ShutdownEnd{};
  } else {
    found->second =
        ShutdownEnd{job::ProcessEvent::Kind::kCloseFailed, std::move(failure), std::move(log)};
  }
}

std::optional<ShutdownEnd> Shutdowns::Exited(uint32_t process, const std::string& words,
                                             std::optional<Duration> cut_off, Duration timeout) {
  const auto found = owing_.find(process);
  if (found == owing_.end()) return std::nullopt;
  const std::optional<ShutdownEnd> ended = std::move(found->second);
  owing_.erase(found);
  // What is written as the interpreter ends is nobody's to judge; shutdown() has said how it went.
  if (ended) return ended;
  if (!cut_off) {
    return ShutdownEnd{job::ProcessEvent::Kind::kCloseLost,
                       "the process " + words + " before its shutdown() had ended"};
  }
  const std::string why =
      *cut_off < timeout
          ? "its node had no more time (a drain, a preemption, or the end of its pod)"
          : "raise spec.shutdownTimeoutSeconds if it, a thread of the script or what the "
            "script gave to atexit needs more";
  return ShutdownEnd{
      job::ProcessEvent::Kind::kCutOff,
      fmt::format("shutdown() was cut off after {}: {}", HumanDuration(*cut_off), why)};
}

}  // namespace parallelrun::agent
