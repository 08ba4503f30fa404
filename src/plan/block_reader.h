// Reads one object of a store from front to back, 256 KiB at a time, as far as it was long when it
// was opened. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/read_window.h"
#include "store/store.h"

namespace parallelrun::plan {

class BlockReader : public ReadWindow {
 public:
  // Fill() is refused once `stop` was asked for: a scan of a huge file must not hold up the end of
  // a job.
  static Result<std::unique_ptr<BlockReader>> Open(store::Store& store, const std::string& name,
                                                   std::stop_token stop = {});

  const store::Found& found() const { return object_->found(); }
  // Where it is, for messages.
  const std::string& path() const { return path_; }

  // Reads the next bytes into the empty rest(), which stays empty at the end of the file.
  Status Fill();
  // Reads `size` bytes at `offset`, whatever rest() is; kInvalid when there are fewer.
  Result<std::string> ReadAt(uint64_t offset, size_t size) const;

 private:
  BlockReader(std::unique_ptr<store::Object> object, std::string path, std::stop_token stop);

  static constexpr size_t kBufferSize = 256 * 1024;
  const std::unique_ptr<store::Object> object_;
  const std::string path_;
  const std::stop_token stop_;
  const std::unique_ptr<char[]> buffer_;
};

}  // namespace parallelrun::plan
