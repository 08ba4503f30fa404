#include "base/files.h"

#include "base/random.h"

namespace parallelrun {
namespace {

Status WriteNew(Files& files, const std::string& path, std::string_view bytes) {
  auto file = files.CreateExclusive(path);
  if (!file.ok()) return file.error();
  if (Status written = (*file)->WriteAt(0, bytes); !written.ok()) return written;
  return (*file)->Sync();
}

}  // namespace

Result<std::string> File::ReadAt(uint64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  const Result<size_t> got = ReadInto(offset, bytes);
  if (!got.ok()) return got.error();
  bytes.resize(*got);
  return bytes;
}

Result<uint64_t> File::Size() const {
  const Result<FileFacts> facts = Stat();
  if (!facts.ok()) return facts.error();
  return facts->size;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status PublishFile(Files& files, const std::string& path, std::string_view bytes) {
  // A fresh name: what an earlier crash left behind must not be in the way.
  const std::string temporary = path + ".tmp-" + RandomHex(8);
  Status done = WriteNew(files, temporary, bytes);
  if (done.ok()) done = files.Rename(temporary, path);
  if (!done.ok()) {
    (void)files.Remove(temporary);  // the error to report is the first one
    return done;
  }
  return files.SyncFolder(FolderOf(path));
}

}  // namespace parallelrun
