#include "agent/sending/file_stream.h"

#include <climits>

#include "base/bytes.h"
#include "base/escape.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kHeader = 5;  // the kind, and the length of the body
constexpr size_t kMostPart = NAME_MAX;

std::string Frame(FrameKind kind, std::string_view body) {
  std::string frame;
  Encoder encoder(frame);
  encoder.U8(static_cast<uint8_t>(kind));
  encoder.Text(body);
  return frame;
}

Error Damaged(const std::string& what) {
  return {Code::kCorrupt, "what arrives is no stream of files: " + what};
}

}  // namespace

std::string FileFrame(const std::string& name) { return Frame(FrameKind::kFile, name); }

std::string BytesFrame(std::string_view bytes) { return Frame(FrameKind::kBytes, bytes); }

std::string EndFrame(uint64_t files, uint64_t bytes) {
  std::string body;
  Encoder encoder(body);
  encoder.U64(files);
  encoder.U64(bytes);
  return Frame(FrameKind::kEnd, body);
}

std::string FailedFrame(const std::string& why) { return Frame(FrameKind::kFailed, why); }

bool IsFileName(std::string_view name) {
  if (name.size() >= PATH_MAX || name.find('\0') != std::string_view::npos) return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kMostPart) return false;
    begin = end + 1;
  }
  return true;
}

Status FileStreamReader::Take(std::string_view bytes) {
  left_.append(bytes);
  std::string_view rest = left_;
  if (!begun_) {
    const std::string_view magic = rest.substr(0, kFileStreamMagic.size());
    if (!kFileStreamMagic.starts_with(magic)) return Damaged("it begins otherwise");
    if (magic.size() < kFileStreamMagic.size()) return {};
    begun_ = true;
    rest.remove_prefix(kFileStreamMagic.size());
  }
  while (rest.size() >= kHeader) {
    Decoder decoder(rest);
    const auto kind = static_cast<FrameKind>(decoder.U8());
    const uint32_t size = decoder.U32();
    if (size > kMostFrame) return Damaged("a part of it is too long");
    if (rest.size() < kHeader + size) break;
    if (const Status taken = TakeFrame(kind, rest.substr(kHeader, size)); !taken.ok()) return taken;
    rest.remove_prefix(kHeader + size);
  }
  left_.erase(0, left_.size() - rest.size());
  return {};
}

Status FileStreamReader::TakeFrame(FrameKind kind, std::string_view body) {
  if (ended_) return Damaged("something follows its end");
  switch (kind) {
    case FrameKind::kFile:
      if (!IsFileName(body)) return Damaged("a file is named " + Printable(body, kShown));
      ++files_;
      return sink_.file(std::string(body));
    case FrameKind::kBytes:
      if (files_ == 0) return Damaged("bytes of no file");
      bytes_ += body.size();
      return sink_.bytes(body);
    case FrameKind::kEnd: {
      Decoder decoder(body);
      const uint64_t files = decoder.U64();
      const uint64_t bytes = decoder.U64();
      if (!decoder.Done() || files != files_ || bytes != bytes_) {
        return Damaged("it counts other files or bytes than came");
      }
      ended_ = true;
      return {};
    }
    case FrameKind::kFailed: return Error{Code::kUnavailable, Printable(body, kShown)};
  }
  return Damaged("an unknown part");
}

Status FileStreamReader::End() const {
  if (ended_) return {};
  return Error{Code::kUnavailable, "what arrived has no end: the way to the pod was cut"};
}

}  // namespace parallelrun::agent
