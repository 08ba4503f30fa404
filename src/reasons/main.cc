// write_messages: prints docs/messages.md. For script/messages; no part of a release.
#include <cstdio>

#include "reasons/page.h"

int main() { return std::fputs(parallelrun::reasons::PageText().c_str(), stdout) < 0 ? 1 : 0; }
