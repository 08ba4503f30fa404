#include "job/work_objects.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/json.h"
#include "job/work_flags.h"

namespace parallelrun::job {
namespace {

constexpr uint8_t kFiles = 1;
constexpr uint8_t kSlice = 2;
constexpr uint8_t kLines = 3;
constexpr uint8_t kTables = 5;
constexpr size_t kFlags = 1;                     // byte of Work
constexpr size_t kHead = 1 + 1 + 2 + 8 + 8 + 4;  // in front of the context
constexpr uint64_t kNotLooked = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kSmall = uint64_t{16} << 20;  // bytes of an object that is fetched whole

using FileOf = std::function<std::string(const ObjectName&)>;

// Reads Work, asks for the file of each object and writes the Work with these.
class Translation {
 public:
  Translation(std::string_view work, std::string folder, const FileOf& file_of)
      : from_(work), folder_(std::move(folder)), file_of_(file_of) {}

  // False: it is no Work.
  bool Run() {
    std::string head(from_.Bytes(kHead));
    const std::string_view context = from_.Text();
    store_ = from_.Text();
    if (!from_.ok() || store_.empty()) return false;
    const auto kind = static_cast<uint8_t>(head[0]);
    const auto flags = static_cast<uint8_t>(head[kFlags]);
    head[kFlags] = static_cast<char>(flags & ~kOfStore);
    to_.Bytes(head);
    to_.Text(context);
    switch (kind) {
      case kFiles: Files(Decoder(std::string_view(head).substr(kHead - 4)).U32()); break;
      case kSlice: Table(true); break;
      case kLines: Table(false); break;
      case kTables: Tables(); break;
      default: return false;
    }
    if ((flags & kHasMetadata) != 0) to_.Text(from_.Text());
    return from_.Done();
  }

  std::string TakeWork() { return std::move(work_); }

 private:
  std::string FileOfObject(std::string location, std::string_view version,
                           uint64_t size = ObjectName::kAnySize, const ByteRange& range = {}) {
    return file_of_({std::string(store_), std::move(location), std::string(version), size, range});
  }

  void PutFound() {
    to_.U64(kNotLooked);
    to_.I64(0);
  }

  void Files(uint32_t items) {
    const std::string root(from_.Text());
    std::string_view names = from_.Text();
    if (items == 0 || std::count(names.begin(), names.end(), '\0') + 1 != int64_t{items}) {
      return from_.Fail();
    }
    std::string files;
    for (uint32_t i = 0; i < items && from_.ok(); ++i) {
      const size_t end = std::min(names.find('\0'), names.size());
      const std::string_view version = from_.Bytes(from_.U8());
      if (!from_.ok()) return;
      if (i > 0) files += '\0';
      files += FileOfObject((root + "/").append(names.substr(0, end)), version);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
    to_.Text(folder_);
    to_.Text(files);
    for (uint32_t i = 0; i < items; ++i) PutFound();
  }

  struct Slice {
    std::string location;
    uint64_t offset = 0;
    uint64_t length = 0;
    std::string_view header;
    uint64_t size = 0;
    std::string_view version;
  };

  Slice ReadSlice(bool with_header) {
    Slice slice;
    slice.location = from_.Text();
    slice.offset = from_.U64();
    slice.length = from_.U64();
    if (with_header) slice.header = from_.Text();
    slice.size = from_.U64();
    slice.version = from_.Bytes(from_.U8());
    return slice;
  }

  void PutSlice(Slice slice, bool with_header, const ByteRange& range) {
    to_.Text(folder_ + "/" +
             FileOfObject(std::move(slice.location), slice.version, slice.size, range));
    to_.U64(slice.offset);
    to_.U64(slice.length);
    if (with_header) to_.Text(slice.header);
    PutFound();
  }

  // Of a slice that stands in the object as it is.
  static ByteRange RangeOf(const Slice& slice, std::string_view format) {
    if (slice.size <= kSmall || slice.size == ObjectName::kAnySize) return {};
    if (slice.offset > slice.size || slice.length > slice.size - slice.offset) return {};
    const nlohmann::json read = ParseJson(format).value_or(nullptr);
    const bool elsewhere =
        lenient::Boolean(read, "compressed") || lenient::Text(read, "format") == "parquet";
    return elsewhere ? ByteRange{} : ByteRange{slice.offset, slice.length};
  }

  void Table(bool with_header) {
    Slice slice = ReadSlice(with_header);
    const std::string_view format = from_.Text();
    if (!from_.ok()) return;
    const ByteRange range = RangeOf(slice, format);
    PutSlice(std::move(slice), with_header, range);
    to_.Text(format);
  }

  // Slices of a group are whole files.
  void Tables() {
    const uint32_t slices = from_.U32();
    to_.U32(slices);
    for (uint32_t i = 0; i < slices && from_.ok(); ++i) {
      Slice slice = ReadSlice(true);
      if (from_.ok()) PutSlice(std::move(slice), true, {});
    }
    to_.Text(from_.Text());
  }

  Decoder from_;
  const std::string folder_;
  const FileOf& file_of_;
  std::string_view store_;
  std::string work_;
  Encoder to_{work_};
};

}  // namespace

bool NamesObjects(std::string_view work) {
  return work.size() > kHead && (static_cast<uint8_t>(work[kFlags]) & kOfStore) != 0;
}

Result<std::vector<ObjectName>> ObjectsOf(std::string_view work) {
  std::vector<ObjectName> objects;
  const FileOf note = [&](const ObjectName& object) {
    objects.push_back(object);
    return std::string();
  };
  if (Translation(work, "", note).Run()) return objects;
  return Error{Code::kCorrupt, "the Work of a mini-batch cannot be read"};
}

std::string WithFiles(std::string_view work, const std::string& folder, const FileOf& file_of) {
  Translation translation(work, folder, file_of);
  translation.Run();
  return translation.TakeWork();
}

}  // namespace parallelrun::job
