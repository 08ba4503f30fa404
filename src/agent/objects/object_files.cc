#include "agent/objects/object_files.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "agent/folder_tree.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kPart = size_t{8} << 20;
constexpr uint64_t kDiskBlock = 4096;

std::string PathOf(uint64_t number, const std::string& name) {
  return std::to_string(number) + "/" + name;
}

// Without "to the end".
Result<job::ByteRange> BytesOf(const store::Object& object, const job::ByteRange& range) {
  const uint64_t size = object.found().size;
  if (range.whole()) return job::ByteRange{0, size};
  if (range.offset > size || range.length > size - range.offset) {
    return Error{Code::kStale, "it is shorter than it was"};
  }
  return range;
}

Status Copy(const store::Object& object, const job::ByteRange& bytes, File& to) {
  std::vector<char> part(static_cast<size_t>(std::min<uint64_t>(bytes.length, kPart)));
  const uint64_t end = bytes.offset + bytes.length;
  for (uint64_t at = bytes.offset; at < end;) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(end - at, kPart));
    const Result<size_t> read = object.ReadAt(at, {part.data(), wanted});
    if (!read.ok()) return read.error();
    if (*read == 0) return Error{Code::kStale, "it is shorter than it was"};
    const Status written = to.WriteAt(at, {part.data(), *read});
    if (!written.ok()) return written;
    at += *read;
  }
  return {};
}

}  // namespace

uint64_t RoomOf(const std::string& name, uint64_t size) {
  const auto folders = static_cast<uint64_t>(std::count(name.begin(), name.end(), '/')) + 1;
  const uint64_t blocks = size / kDiskBlock + (size % kDiskBlock == 0 ? 0 : 1) + folders;
  return blocks > std::numeric_limits<uint64_t>::max() / kDiskBlock
             ? std::numeric_limits<uint64_t>::max()
             : blocks * kDiskBlock;
}

Status ObjectFiles::Begin() {
  if (const Status gone = End(); !gone.ok()) return gone;
  if (const Status made = files_.MakeFolders(folder_); !made.ok()) return made;
  Result<std::unique_ptr<Folder>> opened = files_.OpenFolder(folder_, Links::kRefuse);
  if (!opened.ok()) return opened.error();
  below_ = std::move(*opened);
  return {};
}

Result<std::unique_ptr<File>> ObjectFiles::MakeFile(const std::string& path) {
  for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1)) {
    const Status made = below_->MakeFolder(path.substr(0, at));
    if (!made.ok() && made.error().code != Code::kExists) return made.error();
  }
  return below_->CreateExclusive(path);
}

Status ObjectFiles::WriteNew(const std::string& path, const store::Object& object,
                             const job::ByteRange& range) {
  const Result<std::unique_ptr<File>> file = MakeFile(path);
  if (!file.ok()) return file.error();
  const Result<job::ByteRange> bytes = BytesOf(object, range);
  return bytes.ok() ? Copy(object, *bytes, **file) : bytes.error();
}

Status ObjectFiles::Write(uint64_t number, const std::string& name, const store::Object& object,
                          const job::ByteRange& range) {
  Status written = WriteNew(PathOf(number, name), object, range);
  if (!written.ok()) static_cast<void>(Remove(number));  // the first error tells
  return written;
}

Result<job::ByteRange> ObjectFiles::Make(uint64_t number, const std::string& name,
                                         const store::Object& object, const job::ByteRange& range) {
  Result<job::ByteRange> bytes = BytesOf(object, range);
  if (!bytes.ok()) return bytes;
  const Result<std::unique_ptr<File>> file = MakeFile(PathOf(number, name));
  if (file.ok()) return bytes;
  static_cast<void>(Remove(number));
  return file.error();
}

Status ObjectFiles::WritePart(uint64_t number, const std::string& name, const store::Object& object,
                              const job::ByteRange& part) {
  // One file is one thread's.
  const Result<std::unique_ptr<File>> file = below_->OpenOrCreate(PathOf(number, name));
  return file.ok() ? Copy(object, part, **file) : file.error();
}

Status ObjectFiles::Remove(uint64_t number) { return RemoveTree(*below_, std::to_string(number)); }

Status ObjectFiles::End() {
  const Result<std::unique_ptr<Folder>> holds =
      files_.OpenFolder(FolderOf(folder_), Links::kRefuse);
  if (!holds.ok()) return holds.error().code == Code::kNotFound ? Status() : holds.error();
  return RemoveTree(**holds, folder_.substr(folder_.rfind('/') + 1));
}

}  // namespace parallelrun::agent
