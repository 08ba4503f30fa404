#include "plan/text_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "base/escape.h"

namespace parallelrun::plan {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMarkBytes = 4;    // bytes that tell how a file is compressed
constexpr size_t kLookedAt = 4096;  // bytes that tell an encoding
constexpr size_t kBufferSize = 256 * 1024;

// The encoding of UTF-16 and UTF-32, by their mark or because most every other byte is a NUL, as
// that of plain letters is; empty for others. Told before all else: by bytes such a file is no
// table at all, and each of its rows would be found bad for a reason that helps nobody.
std::string_view WideEncoding(std::string_view begin) {
  using std::string_view_literals::operator""sv;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMarks = {{
      {"\xFF\xFE\0\0"sv, "utf-32"},
      {"\0\0\xFE\xFF"sv, "utf-32"},
      {"\xFF\xFE", "utf-16"},
      {"\xFE\xFF", "utf-16"},
  }};
  for (const auto& [mark, name] : kMarks) {
    if (begin.starts_with(mark)) return name;
  }
  begin = begin.substr(0, std::min(begin.size(), kLookedAt) / 4 * 4);
  std::array<size_t, 4> nuls{};  // by the place in four bytes
  for (size_t i = 0; i < begin.size(); ++i) nuls[i % 4] += begin[i] == '\0' ? 1 : 0;
  const size_t all = begin.size() / 4;
  const auto are = [&](std::array<bool, 4> wide) {
    for (size_t i = 0; i < 4; ++i) {
      if (wide[i] ? nuls[i] * 4 < all * 3 : nuls[i] != 0) return false;
    }
    return all > 0;
  };
  if (are({false, true, true, true})) return "utf-32le";
  if (are({true, true, true, false})) return "utf-32be";
  if (are({false, true, false, true})) return "utf-16le";
  return are({true, false, true, false}) ? "utf-16be" : "";
}

// What begins so is no text, whatever its name is; its rows would be read as rubbish.
Status CheckIsText(std::string_view begin, const std::string& path, bool decompressed) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCompressed = {{
      {"\x1F\x8B", "gzip"},
      {"PK\x03\x04", "zip, as .xlsx is"},
      {"\x28\xB5\x2F\xFD", "zstd"},
      {"\xFD\x37zXZ", "xz"},
      {"BZh91AY&SY", "bzip2"},
  }};
  for (const auto& [mark, name] : kCompressed) {
    if (!begin.starts_with(mark)) continue;
    return Error{Code::kInvalid,
                 fmt::format("{} is compressed {}({}), and rows are read from plain text, gzip and "
                             "zstd: decompress it, or leave it out with pattern or exclude",
                             Printable(path, 4096), decompressed ? "twice " : "", name)};
  }
  if (const std::string_view wide = WideEncoding(begin); !wide.empty()) {
    return Error{
        Code::kInvalid,
        fmt::format("{} is {} text, which cannot be cut into rows by its bytes: convert it "
                    "(`iconv -f {} -t utf-8`), or leave it out with pattern or exclude",
                    Printable(path, 4096), wide, wide)};
  }
  if (begin.starts_with("PAR1")) {
    return Error{Code::kInvalid, Printable(path, 4096) +
                                     " is a Parquet file: set tabular.format to Parquet, or leave "
                                     "it out with pattern or exclude"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TextReader>> TextReader::Open(store::Store& store, const std::string& name,
                                                     bool skip_mark, std::stop_token stop) {
  auto bytes = BlockReader::Open(store, name, stop);
  if (!bytes.ok()) return bytes.error();
  // The block that its caller wants first, mostly: in a bucket each read is a request.
  if (const Status filled = (*bytes)->Fill(); !filled.ok()) return filled.error();
  std::string begin((*bytes)->rest().substr(0, kMarkBytes));
  return std::unique_ptr<TextReader>(
      new TextReader(std::move(*bytes), std::move(begin), skip_mark, std::move(stop)));
}

TextReader::TextReader(std::unique_ptr<BlockReader> bytes, std::string begin, bool skip_mark,
                       std::stop_token stop)
    : bytes_(std::move(bytes)),
      begin_(std::move(begin)),
      skip_mark_(skip_mark),
      stop_(std::move(stop)),
      decompressor_(MakeDecompressor(begin_)),
      buffer_(decompressor_ ? new char[kBufferSize] : nullptr) {}

Status TextReader::Fill() {
  const bool at_front = offset() == 0;
  const Status filled = compressed() ? FillDecompressed() : FillPlain();
  if (!filled.ok() || !at_front) return filled;
  if (Status text = CheckIsText(rest(), path(), compressed()); !text.ok()) return text;
  if (!skip_mark_ || !rest().starts_with(kByteOrderMark)) return {};
  Pass(kByteOrderMark.size());
  return rest().empty() ? Fill() : Status();
}

Status TextReader::FillPlain() {
  if (bytes_->offset() != offset() || bytes_->rest().empty()) {
    bytes_->Seek(offset());
    if (const Status filled = bytes_->Fill(); !filled.ok()) return filled;
  }
  Show(bytes_->rest());
  return {};
}

Status TextReader::FillDecompressed() {
  if (made_ > offset()) {
    bytes_->Seek(0);
    decompressor_ = MakeDecompressor(begin_);
    made_ = 0;
  }
  Show({});
  while (made_ <= offset()) {
    // A small file may hold so much that the bytes are not read anew for a long time.
    if (stop_.stop_requested()) {
      return Error{Code::kUnavailable,
                   Printable(path(), 4096) + " is not read to its end: the job ended"};
    }
    const auto block = Decompress();
    if (!block.ok()) {
      return Error{block.error().code,
                   fmt::format("{}: {}", Printable(path(), 4096), block.error().message)};
    }
    if (block->empty()) return {};
    made_ += block->size();
    if (made_ > offset()) Show(block->substr(block->size() - (made_ - offset())));
  }
  return {};
}

// The next bytes of the text, in buffer_; empty at the end.
Result<std::string_view> TextReader::Decompress() {
  while (true) {
    if (bytes_->rest().empty()) {
      if (const Status filled = bytes_->Fill(); !filled.ok()) return filled.error();
    }
    const bool ended = bytes_->rest().empty();
    const auto step = decompressor_->Run(bytes_->rest(), {buffer_.get(), kBufferSize});
    if (!step.ok()) return step.error();
    bytes_->Pass(step->used);
    if (step->made > 0) return std::string_view(buffer_.get(), step->made);
    if (!ended) continue;
    if (decompressor_->whole()) return std::string_view();
    return Error{Code::kInvalid, "it is compressed, and its end is missing: copy it again"};
  }
}

Result<uint64_t> TextReader::LineEndsBefore(uint64_t end) {
  uint64_t count = 0;
  char before = 0;
  const auto add = [&](std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\r' || (c == '\n' && before != '\r')) ++count;
      before = c;
    }
  };
  if (compressed()) {
    Seek(0);
    while (offset() < end) {
      if (const Status filled = Fill(); !filled.ok()) return filled.error();
      if (rest().empty()) break;
      const std::string_view part = rest().substr(0, end - std::min(end, offset()));
      add(part);
      Pass(part.size());
      Show({});
    }
    if (offset() >= end) return count;
    return Error{Code::kInvalid,
                 fmt::format("{} became shorter while it was read", Printable(path(), 4096))};
  }
  for (uint64_t at = 0; at < end; at += kBufferSize) {
    const auto bytes = bytes_->ReadAt(at, std::min<uint64_t>(kBufferSize, end - at));
    if (!bytes.ok()) return bytes.error();
    add(*bytes);
  }
  Seek(end);
  return count;
}

}  // namespace parallelrun::plan
