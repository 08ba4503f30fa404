#include "cli/run/progress_bar.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/run/display.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr size_t kLongestBar = 30;
constexpr size_t kShortestBar = 12;  // with its brackets
constexpr size_t kNarrow = 60;       // columns below which words are short
constexpr size_t kMostText = 400;

constexpr char kRed[] = "\x1b[31m";
constexpr char kGreen[] = "\x1b[32m";
constexpr char kYellow[] = "\x1b[33m";

constexpr int kOfSlowest = 11;  // the last rank: what belongs to the part before it

// What stands in the line, in its order. The lower the rank, the longer it stays.
struct Part {
  int rank;
  std::string text;
  const char* colour = "";
};

// Columns on a terminal, two at most for what is not ASCII.
size_t Width(const std::string& text) {
  size_t width = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) ++width;
    if (byte >= 0xc0) width += 2;
  }
  return width;
}

std::string CutToWidth(const std::string& text, size_t width) {
  size_t bytes = std::min(text.size(), width);
  while (bytes > 0 && Width(std::string(Front(text, bytes))) > width) --bytes;
  return std::string(Front(text, bytes));
}

// Tenths that change each time would only be a flicker.
std::string Whole(int64_t s) { return s < 60 ? fmt::format("{}s", s) : HumanDuration(seconds(s)); }

std::vector<Part> PartsOf(const json& progress, Duration elapsed, bool narrow) {
  const json& batches = lenient::At(progress, "miniBatches");
  const uint64_t failed = lenient::Unsigned(batches, "failed");
  const uint64_t done = lenient::Unsigned(batches, "succeeded") + failed;
  const uint64_t planned = lenient::Unsigned(batches, "planned");
  const bool listed = !lenient::At(batches, "total").is_null();
  std::vector<Part> parts;
  std::string count = fmt::format("{}/{}{}", done, planned, listed ? "" : "+");
  if (!narrow) {
    count = !listed && planned == 0 ? kListing
                                    : fmt::format("{} of {}{}", done, listed ? "" : "at least ",
                                                  CountOf(planned, "mini-batch"));
  }
  parts.push_back({0, std::move(count)});
  parts.push_back({7, RateText(lenient::Number(progress, "perSecond"))});
  parts.push_back({failed > 0 ? 2 : 9, fmt::format("{} failed", failed), failed > 0 ? kRed : ""});
  parts.push_back({4, Whole(std::chrono::floor<seconds>(elapsed).count())});
  if (const auto left = lenient::MaybeInteger(progress, "secondsRemaining")) {
    parts.push_back({3, Whole(*left) + " left"});
  }
  parts.push_back({8, fmt::format("{} running", lenient::Unsigned(batches, "running"))});
  const json& slowest = lenient::At(progress, "slowest");
  if (const double age = lenient::Number(slowest, "seconds"); age >= kSlowSeconds) {
    parts.push_back({6, "slowest " + Whole(static_cast<int64_t>(age))});
    const std::string item = lenient::Text(slowest, "item");
    // Its name is at the end of a path; what is longer than the room for it says nothing.
    const std::string name = item.substr(item.rfind('/') + 1);
    if (!name.empty()) parts.push_back({kOfSlowest, "(" + Printable(name, kMostText) + ")"});
  }
  size_t nodes = 0;
  for (const json& node : lenient::List(progress, "nodes")) {
    nodes += lenient::Boolean(node, "registered") ? 1 : 0;
  }
  const std::string state = lenient::Text(progress, "state");
  if (NodesAreTold(nodes, state)) parts.push_back({10, CountOf(nodes, "node")});
  if (state != "Running") parts.push_back({1, state});
  const std::string paused = lenient::Text(progress, "paused");
  if (!paused.empty()) parts.push_back({1, "PAUSED: " + Printable(paused, kMostText), kYellow});
  const std::string fetching = lenient::Text(progress, "fetching");
  if (!fetching.empty()) parts.push_back({1, Printable(fetching, kMostText)});
  const std::string init = lenient::Text(progress, "init");
  if (!init.empty()) parts.push_back({1, Printable(init, kMostText)});
  const std::string waits = lenient::Text(progress, "storeWaits");
  if (!waits.empty()) parts.push_back({1, Printable(waits, kMostText), kYellow});
  return parts;
}

std::string Bar(double part, size_t width, const BarStyle& style) {
  const size_t inside = width - 2;
  const auto full = static_cast<size_t>(part * static_cast<double>(inside));
  std::string done(full, '=');
  if (full < inside && full > 0) done.back() = '>';
  return "[" + (style.colour ? kGreen + done + "\x1b[0m" : done) + std::string(inside - full, ' ') +
         "]";
}

}  // namespace

std::string ProgressBar(const json& progress, Duration elapsed, const BarStyle& style) {
  const size_t room = std::max<size_t>(style.columns, 2) - 1;
  const std::vector<Part> parts = PartsOf(progress, elapsed, style.columns < kNarrow);
  // Which fit, the most important first; where one does not, a less important one may.
  std::vector<std::string> shown(parts.size());
  size_t used = 0;
  const auto place = [&](size_t i, bool cut) {
    if (parts[i].rank == kOfSlowest && shown[i - 1].empty()) return;
    const size_t comma = used > 0 ? 2 : 0;
    const size_t left = room > used + comma ? room - used - comma : 0;
    std::string text = parts[i].text;
    if (Width(text) > left && cut) text = CutToWidth(text, left);
    if (text.empty() || Width(text) > left) return;
    used += comma + Width(text);
    shown[i] = std::move(text);
  };
  size_t bar = 0;
  for (int rank = 0; rank <= kOfSlowest; ++rank) {
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].rank == rank) place(i, rank <= 1);
    }
    if (rank == 4 && used + 1 + kShortestBar <= room) {
      bar = std::clamp((room - used - 1) / 3, kShortestBar, kLongestBar);
      used += bar + 1;
    }
  }
  const json& batches = lenient::At(progress, "miniBatches");
  const double planned = lenient::Number(batches, "planned");
  const double done = lenient::Number(batches, "succeeded") + lenient::Number(batches, "failed");
  std::string line;
  if (bar > 0) line = Bar(planned > 0 ? std::min(1.0, done / planned) : 0, bar, style) + " ";
  bool first = true;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (shown[i].empty()) continue;
    if (!first) line += shown[i].front() == '(' ? " " : ", ";
    first = false;
    const bool coloured = style.colour && parts[i].colour[0] != '\0';
    line += coloured ? parts[i].colour + shown[i] + "\x1b[0m" : shown[i];
  }
  return line;
}

}  // namespace parallelrun::cli
