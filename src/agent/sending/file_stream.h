// Files as one stream of bytes, as `parallelrun-agent send` writes them and `parallelrun fetch`
// reads them (docs/coordinator-api.md, "The files of a pod"). Pure; one object for one stream.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::agent {

inline constexpr std::string_view kFileStreamMagic = "PRFILES1";
// Of the bytes of one frame.
inline constexpr size_t kMostFrame = size_t{1} << 20;

enum class FrameKind : uint8_t {
  kFile = 1,    // its name; its bytes follow
  kBytes = 2,   // the next bytes of that file
  kEnd = 3,     // all was sent: u64 files, u64 bytes
  kFailed = 4,  // why the rest is missing
};

std::string FileFrame(const std::string& name);
// `bytes` are at most kMostFrame.
std::string BytesFrame(std::string_view bytes);
std::string EndFrame(uint64_t files, uint64_t bytes);
std::string FailedFrame(const std::string& why);

// Whether `name` is one that a stream may hold: relative, each part neither empty, "." nor "..",
// without a zero byte, and no longer than a path may be.
bool IsFileName(std::string_view name);

class FileStreamReader {
 public:
  struct Sink {
    // A file begins; the name is checked. Its bytes follow. Their errors end the stream.
    std::function<Status(const std::string& name)> file;
    std::function<Status(std::string_view bytes)> bytes;
  };

  explicit FileStreamReader(Sink sink) : sink_(std::move(sink)) {}

  // The next bytes, cut anywhere. After an error nothing more may be given.
  Status Take(std::string_view bytes);
  // Once no byte comes any more: kUnavailable if something is missing.
  Status End() const;

  uint64_t files() const { return files_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Status TakeFrame(FrameKind kind, std::string_view body);

  const Sink sink_;
  std::string left_;  // the begin of the next frame
  bool begun_ = false;
  bool ended_ = false;
  uint64_t files_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace parallelrun::agent
