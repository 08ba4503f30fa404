// The arrows between the states of a mini-batch, as docs/architecture.md draws them.
#pragma once

#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "job/availability.h"
#include "tests/support/source_folder.h"

namespace parallelrun::job {

struct Arrow {
  std::string from;
  std::string to;
  std::string name;
  auto operator<=>(const Arrow&) const = default;  // NOLINT(modernize-use-nullptr)
};

inline std::string NameOf(Availability::State state) {
  using enum Availability::State;
  switch (state) {
    case kUnknown: return "Unknown";
    case kPlanned: return "Planned";
    case kReady: return "Ready";
    case kApart: return "Apart";
    case kBlocked: return "Blocked";
    case kLeased: return "Leased";
    case kTwice: return "Twice";
    case kSplit: return "Split";
    case kSettled: return "Settled";
  }
  return "";
}

inline std::vector<Arrow> DrawnArrows() {
  std::ifstream page(SourceFolder() + "docs/architecture.md");
  std::string line;
  while (std::getline(page, line) && line != "stateDiagram-v2") continue;
  const std::regex arrow(R"( *(\[\*\]|\w+) --> (\w+): (.+))");
  std::vector<Arrow> arrows;
  for (std::smatch parts; std::getline(page, line) && line != "```";) {
    if (std::regex_match(line, parts, arrow)) arrows.push_back({parts[1], parts[2], parts[3]});
  }
  return arrows;
}

}  // namespace parallelrun::job
