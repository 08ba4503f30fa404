// write_fields FILE…: makes the parts of these files anew that come from the fields. For
// script/fields; no part of a release.
#include <cstdio>
#include <fstream>
#include <sstream>

#include "api/fields/made.h"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    const auto made = parallelrun::api::fields::WithMadeParts(text.str());
    if (!in || !made.ok()) {
      std::fprintf(stderr, "%s: %s\n", argv[i],
                   made.ok() ? "cannot be read" : made.error().message.c_str());
      return 1;
    }
    if (*made == text.str()) continue;
    std::ofstream out(argv[i], std::ios::binary | std::ios::trunc);
    out << *made;
    out.close();
    std::printf("%s: written\n", argv[i]);
    if (!out) return 1;
  }
  return 0;
}
