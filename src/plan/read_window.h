// What a reader has read and its caller has not passed yet, and where that stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parallelrun::plan {

class ReadWindow {
 public:
  // Offset of the first byte of rest().
  uint64_t offset() const { return offset_; }
  // Bytes that were read and not passed yet.
  std::string_view rest() const { return rest_; }
  void Pass(size_t size) {
    rest_.remove_prefix(size);
    offset_ += size;
  }
  // The next Fill() of the reader goes on there.
  void Seek(uint64_t offset) {
    offset_ = offset;
    rest_ = {};
  }

 protected:
  ReadWindow() = default;
  ~ReadWindow() = default;
  // What was read at offset().
  void Show(std::string_view bytes) { rest_ = bytes; }

 private:
  uint64_t offset_ = 0;
  std::string_view rest_;
};

}  // namespace parallelrun::plan
