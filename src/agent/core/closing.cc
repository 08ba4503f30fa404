#include "agent/core/closing.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace parallelrun::agent {

bool Closing::Begin(Instant now) {
  if (begun_) return false;
  begun_ = now;
  return true;
}

std::string Closing::OwingText() const {
  std::string text;
  for (const auto& [process, end] : owing_) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", process);
  }
  return text;
}

void Closing::Stopped(uint32_t process, std::string failure, std::string log) {
  const auto found = owing_.find(process);
  if (found == owing_.end() || found->second) return;
  if (failure.empty()) {
    found->second = ShutdownEnd{};
  } else {
    found->second =
        ShutdownEnd{ProcessEvent::Kind::kCloseFailed, std::move(failure), std::move(log)};
  }
}

std::optional<ShutdownEnd> Closing::Exited(uint32_t process, const std::string& words,
                                           std::optional<Duration> cut_off, Duration timeout) {
  const auto found = owing_.find(process);
  if (found == owing_.end()) return std::nullopt;
  const std::optional<ShutdownEnd> ended = std::move(found->second);
  owing_.erase(found);
  // What is written as the interpreter ends is nobody's to judge; shutdown() has said how it went.
  if (ended) return ended;
  if (!cut_off) {
    return ShutdownEnd{ProcessEvent::Kind::kCloseLost,
                       "the process " + words + " before its shutdown() had ended"};
  }
  const std::string why =
      *cut_off < timeout
          ? "its node had no more time (a drain, a preemption, or the end of its pod)"
          : "raise spec.shutdownTimeoutSeconds if it needs more";
  return ShutdownEnd{ProcessEvent::Kind::kCutOff, fmt::format("shutdown() was cut off after {}: {}",
                                                              HumanDuration(*cut_off), why)};
}

}  // namespace parallelrun::agent
