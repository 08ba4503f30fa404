#include "coordinator/core/init_watch.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/count_of.h"

namespace parallelrun::coordinator {
namespace {

// Most scripts are through by then.
constexpr Duration kNoNews = seconds(10);

// "50s", "1m30s", "12m00s": the longer it lasts, the coarser.
std::string Rounded(Duration time) {
  const int64_t whole = std::chrono::floor<seconds>(time).count();
  if (whole < 60) return fmt::format("{}s", whole - whole % 10);
  return HumanDuration(seconds(whole - whole % (whole < 600 ? 30 : 60)));
}

}  // namespace

bool InitWatch::Tick(const Nodes::InInit& in_init, WorkInstant worked) {
  if (in_init.nodes == 0 || in_init.first != node_ || in_init.since != since_) {
    *this = InitWatch();
    node_ = in_init.first;
    since_ = in_init.since;
  }
  if (in_init.nodes == 0 || worked - since_ < next_ask_) return false;
  while (next_ask_ <= worked - since_) next_ask_ *= 2;
  asks_ = true;
  return true;
}

void InitWatch::Asked(uint32_t node) {
  if (!Asks(node)) return;
  asks_ = false;
  asked_ = fresh_ = true;
}

void InitWatch::NotHeard(uint32_t node) {
  if (node == node_ && std::exchange(asked_, false)) asks_ = true;
}

void InitWatch::Where(uint32_t node, uint32_t process, std::string_view where) {
  if (node != node_) return;
  asked_ = false;
  if (std::exchange(fresh_, false)) places_.Clear();
  places_.Add(node, process, where);
}

std::string InitWatch::Text(const Nodes::InInit& in_init, WorkInstant worked) const {
  if (in_init.nodes == 0 || worked - in_init.since < kNoNews) return "";
  std::string text = fmt::format("init() has been running for {} on {}",
                                 Rounded(worked - in_init.since), CountOf(in_init.nodes, "node"));
  const bool watched = in_init.first == node_ && in_init.since == since_;
  if (watched && !places_.empty()) text += "; " + places_.Text(1);
  return text;
}

}  // namespace parallelrun::coordinator
