#include "base/error.h"

#include <cerrno>
#include <system_error>

namespace parallelrun {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kInvalid: return "Invalid";
    case Code::kNotFound: return "NotFound";
    case Code::kExists: return "Exists";
    case Code::kStale: return "Stale";
    case Code::kUnavailable: return "Unavailable";
    case Code::kNoSpace: return "NoSpace";
    case Code::kCorrupt: return "Corrupt";
    case Code::kPermission: return "Permission";
    case Code::kTimeout: return "Timeout";
    case Code::kInternal: return "Internal";
  }
  return "Unknown";
}

Error Error::With(const std::string& place) const { return {code, place + ": " + message}; }

Error ErrnoError(int number, const std::string& what) {
  Code code = Code::kInternal;
  switch (number) {
    case ENOSPC:
    case EDQUOT: code = Code::kNoSpace; break;
    case ENOENT:
    case ENOTDIR: code = Code::kNotFound; break;
    case EEXIST: code = Code::kExists; break;
    case EACCES:
    case EPERM:
    case EROFS: code = Code::kPermission; break;
    case EAGAIN:
    case EINTR: code = Code::kUnavailable; break;
    case ETIMEDOUT: code = Code::kTimeout; break;
    case EINVAL:
    case ENAMETOOLONG: code = Code::kInvalid; break;
    default: break;
  }
  return {code, what + ": " + std::generic_category().message(number)};
}

}  // namespace parallelrun
