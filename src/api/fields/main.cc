// write_fields FILE…: makes the parts of these files anew that come from the fields. For
// script/fields; no part of a release.
#include <cstddef>
#include <cstdio>
#include <fstream>

#include "api/fields/made.h"
#include "base/small_file.h"

namespace {

constexpr size_t kMostBytes = size_t{16} << 20;

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const auto text = parallelrun::ReadSmallFile(argv[i], kMostBytes);
    if (!text.ok()) {
      std::fprintf(stderr, "%s\n", text.error().message.c_str());
      return 1;
    }
    const auto made = parallelrun::api::fields::WithMadeParts(*text);
    if (!made.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i], made.error().message.c_str());
      return 1;
    }
    if (*made == *text) continue;
    std::ofstream out(argv[i], std::ios::binary | std::ios::trunc);
    out << *made;
    out.close();
    std::printf("%s: written\n", argv[i]);
    if (!out) return 1;
  }
  return 0;
}
