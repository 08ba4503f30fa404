// Random numbers from the kernel, good enough for secrets. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace parallelrun {

uint64_t RandomU64();

// `bytes` random bytes as twice as many lower-case hex digits.
std::string RandomHex(size_t bytes);

}  // namespace parallelrun
