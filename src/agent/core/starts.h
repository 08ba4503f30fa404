// Starts: under which name the next worker process is started, and when enough were tried. A node
// where none can be kept running gives up, so that a job always ends. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace parallelrun::agent {

class Starts {
 public:
  // A registration grants the names from `first` on, kProcessRange of them.
  void Grant(uint32_t first);
  // Nothing: all names are used, and another registration is needed.
  std::optional<uint32_t> Next();

  // Why stands in WhyEnough: who looks at the node's pod sees the last one's words and not its log.
  void Failed(std::string why);  // while it was starting
  void Ready() {
    failed_ = 0;
    any_ready_ = true;
  }
  bool any_ready() const { return any_ready_; }  // ever
  void EndedIdle(std::string why);  // it was ready, and ended before its first mini-batch
  void Answered() { idle_ = 0; }

  // So many in a row failed that a node with `processes` of them starts no more.
  bool Enough(uint32_t processes) const;
  std::string WhyEnough() const;

 private:
  uint32_t next_ = 0;
  uint32_t end_ = 0;
  uint32_t failed_ = 0;  // in a row
  uint32_t idle_ = 0;    // in a row
  bool any_ready_ = false;
  std::string last_;  // why the last of either ended
};

}  // namespace parallelrun::agent
