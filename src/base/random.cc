#include "base/random.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>

#include "base/hex.h"

namespace parallelrun {
namespace {

void Fill(char* out, size_t size) {
  while (size > 0) {
    const ssize_t got = getrandom(out, size, 0);
    if (got < 0) {
      if (errno == EINTR) continue;
      std::abort();  // no kernel that this runs on refuses; a guessable secret would be worse
    }
    out += got;
    size -= static_cast<size_t>(got);
  }
}

}  // namespace

uint64_t RandomU64() {
  char raw[sizeof(uint64_t)];
  Fill(raw, sizeof(raw));
  uint64_t value = 0;
  for (const char c : raw) value = (value << 8) | static_cast<unsigned char>(c);
  return value;
}

std::string RandomHex(size_t bytes) {
  std::string raw(bytes, '\0');
  Fill(raw.data(), raw.size());
  return Hex(raw);
}

}  // namespace parallelrun
