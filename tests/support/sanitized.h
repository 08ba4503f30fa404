// Whether a sanitizer is compiled in. Each step takes many times as long then, and what it finds it
// finds at the first of many that are alike: tests that count in hundreds do fewer.
#pragma once

namespace parallelrun {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace parallelrun
