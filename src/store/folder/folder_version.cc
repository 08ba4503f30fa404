#include "store/folder/folder_version.h"

#include <string>
#include <utility>

#include "base/bytes.h"

namespace parallelrun::store {

Version VersionOf(const FileStamp& stamp) {
  std::string bytes;
  bytes.reserve(sizeof stamp);
  Encoder to(bytes);
  to.U64(stamp.size);
  to.I64(stamp.mtime_ns);
  return Version(std::move(bytes));
}

FileStamp StampIn(const Version& version) {
  Decoder from(version.bytes());
  const FileStamp stamp{from.U64(), from.I64()};
  return from.ok() ? stamp : FileStamp();
}

Found FoundAs(const FileFacts& facts) {
  return {facts.size, VersionOf({facts.size, facts.modified_ns})};
}

}  // namespace parallelrun::store
