// Reads parts of a job's logs for who looks at them, in a thread of its own: the volume may hang,
// and the decisions must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/errands.h"
#include "base/error.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::coordinator {

struct LogPart {
  uint64_t from = 0;  // of the bytes, in the file
  uint64_t size = 0;  // of the file
  std::string bytes;
};

inline constexpr size_t kMostLogPart = size_t{64} << 10;

// From byte `from` on, or the end of the file; at most kMostLogPart. What is beyond the end is an
// empty part there. kNotFound, kPermission (a link), kInvalid (no file).
Result<LogPart> ReadLogPart(const LogFolder& folder, const std::string& name,
                            std::optional<uint64_t> from);

class LogPartReader {
 public:
  static constexpr size_t kMostWaiting = 32;
  using Answer = std::function<void(Result<LogPart>)>;  // in the thread

  explicit LogPartReader(LogFolder folder) : folder_(std::move(folder)) {}

  // As ReadLogPart. False: too many wait already.
  bool Ask(std::string name, std::optional<uint64_t> from, Answer answer);
  // What waits is forgotten. False: a read goes on for longer than `limit`. Where it does, so does
  // the end of this.
  bool Finish(Duration limit) { return thread_.Finish(limit); }

 private:
  const LogFolder folder_;
  Errands thread_{"read logs", kMostWaiting, Errands::AtEnd::kForgets};
};

}  // namespace parallelrun::coordinator
