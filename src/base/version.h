// What a program says of itself: its release, and those of the libraries whose security fixes reach
// users only by a new build or a new bundle. Any thread.
#pragma once

#include <string>

namespace parallelrun {

// "0.1.0". Only version.cc is compiled with the number itself: so a test links a second release.
extern const char* const kVersion;

// "parallelrun 0.1.0", and a line for the libraries. OpenSSL's version is that of the library which
// runs, Boost's that of the headers which were compiled in.
std::string VersionText(const std::string& program);

}  // namespace parallelrun
