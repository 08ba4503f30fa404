#include "coordinator/page/advice.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/count_of.h"

namespace parallelrun::coordinator {
namespace {

constexpr double kShortRun = 0.020;  // seconds of run() below which mini-batches are small
constexpr double kAimedRun = 0.100;  // and what larger ones should take
constexpr double kLeastEach = 20;    // mini-batches that each process should still get
constexpr double kLeastSaving = 0.05;
constexpr double kLeastWait = 0.10;
constexpr double kLeastFailed = 0.05;
constexpr double kSlow = 2;  // times the median
constexpr uint64_t kEnoughAttempts = 5;
constexpr double kComputesLittle = 0.5;
constexpr double kComputesMuch = 1.5;
constexpr double kLongEnough = 0.005;  // seconds of run() for its CPU time to tell something

using Process = std::pair<Figures::ProcessName, Figures::Sums>;

double Seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

int Percent(double share) { return static_cast<int>(std::lround(share * 100)); }

// "0.4 ms", "12 s": two digits that count.
std::string Time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2g} ms", seconds * 1e3);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

// The largest of 1, 2, 5, 10, 20, ... that is not above it; 0 below 1.
uint64_t RoundDown(double factor) {
  if (!(factor >= 1)) return 0;
  const double tens = std::pow(10, std::floor(std::log10(factor) + 1e-9));
  const double digit = factor / tens;
  return static_cast<uint64_t>(std::llround(tens * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1)));
}

// --- each in the order of docs/report.md; nothing where it is not worth a word

std::optional<Advice> OnSize(const AdviceFacts& f) {
  const auto attempts = static_cast<double>(f.total.attempts);
  const double run = Seconds(f.total.run_ns) / attempts;
  if (run >= kShortRun || f.processes.empty() || f.process_ns == 0) return std::nullopt;
  const double all = Seconds(f.process_ns);
  const double named = f.waits ? f.waits->listing + f.waits->last : 0;
  const double waiting = std::max(all - Seconds(f.total.elapsed_ns) - named, 0.0);
  const double around = std::max(all - Seconds(f.total.run_ns) - named, waiting);

  const double most = attempts / (kLeastEach * static_cast<double>(f.processes.size()));
  const uint64_t factor = RoundDown(std::min(kAimedRun / std::max(run, 1e-9), most));
  if (factor < 2) return std::nullopt;
  const double saved = 1 - 1 / static_cast<double>(factor);
  const double least = waiting / all * saved;
  const double largest = around / all * saved;
  if (largest < kLeastSaving) return std::nullopt;

  const double items =
      static_cast<double>(f.total.items) /
      static_cast<double>(std::max<uint64_t>(f.total.attempts - f.total.failed, 1));
  const std::string size = f.mini_batch_size > 0
                               ? fmt::format("a miniBatchSize of {}", f.mini_batch_size * factor)
                               : fmt::format("a miniBatchSize {} times as large", factor);
  const std::string saving = Percent(least) == Percent(largest)
                                 ? fmt::format("{} %", Percent(largest))
                                 : fmt::format("{} to {} %", Percent(least), Percent(largest));
  return Advice{fmt::format("run() takes {} for {:.3g} items, and all around it {}", Time(run),
                            items, Time(around / attempts)),
                fmt::format("{} would save {} of the processes' time", size, saving)};
}

std::optional<Advice> OnListing(const AdviceFacts& f) {
  if (!f.waits || f.waits->all <= 0) return std::nullopt;
  const double share = f.waits->listing / f.waits->all;
  if (share < kLeastWait) return std::nullopt;
  return Advice{fmt::format("{} % of the processes' time was waiting for the listing of the input",
                            Percent(share)),
                "fewer and larger files, a pattern that leaves out what is not wanted, or a faster "
                "volume; more processes would only wait, too"};
}

std::optional<Advice> OnLast(const AdviceFacts& f) {
  if (!f.waits || f.waits->all <= 0) return std::nullopt;
  const double share = f.waits->last / f.waits->all;
  if (share < kLeastWait) return std::nullopt;
  return Advice{
      fmt::format("{} % of the processes' time was waiting for others to end the last mini-batches",
                  Percent(share)),
      "a smaller miniBatchSize spreads the end more evenly"};
}

std::optional<Advice> OnStores(const AdviceFacts& f) {
  if (!f.waits || f.waits->all <= 0) return std::nullopt;
  const double share = f.waits->stores / f.waits->all;
  if (share < kLeastWait) return std::nullopt;
  return Advice{
      fmt::format("for {} % of the processes' time a store kept them waiting; the last time {}",
                  Percent(share), f.waits->store),
      "fewer nodes ask a store for less at once, and larger objects with fewer requests; S3 gives "
      "each prefix of keys a rate of its own"};
}

double PerItem(const Figures::Sums& sums) {
  return Seconds(sums.run_ns - sums.failed_run_ns) / static_cast<double>(sums.items);
}

bool Counts(const Figures::Sums& sums) {
  return sums.items > 0 && sums.attempts - sums.failed >= kEnoughAttempts;
}

// The slowest of `each`, if it is much slower than the median of the others.
template <typename Name>
std::optional<std::pair<Name, std::pair<double, double>>> Slow(
    const std::vector<std::pair<Name, Figures::Sums>>& each) {
  std::vector<std::pair<double, Name>> times;
  for (const auto& [name, sums] : each) {
    if (Counts(sums)) times.emplace_back(PerItem(sums), name);
  }
  if (times.size() < 2) return std::nullopt;
  std::sort(times.begin(), times.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto [slowest, name] = times.back();
  times.pop_back();
  const double median = times[times.size() / 2].first;
  if (median <= 0 || slowest < kSlow * median) return std::nullopt;
  return std::pair{name, std::pair{slowest, median}};
}

std::optional<Advice> OnSlowOnes(const AdviceFacts& f) {
  std::map<uint32_t, Figures::Sums> by_node;
  for (const auto& [name, sums] : f.processes) {
    if (!Counts(sums)) continue;
    Figures::Sums& node = by_node[name.node];
    node.attempts += sums.attempts;
    node.failed += sums.failed;
    node.items += sums.items;
    node.run_ns += sums.run_ns;
    node.failed_run_ns += sums.failed_run_ns;
  }
  const std::vector<std::pair<uint32_t, Figures::Sums>> nodes(by_node.begin(), by_node.end());
  const auto says = [](const std::string& who, const std::pair<double, double>& times) {
    return fmt::format("{} is {:.1f} times as slow as the median of the others: {} an item, not {}",
                       who, times.first / times.second, Time(times.first), Time(times.second));
  };
  if (const auto node = Slow(nodes)) {
    return Advice{says(fmt::format("node {}", node->first), node->second),
                  "look at what else runs on that machine, and whether it is of another kind"};
  }
  if (const auto process = Slow(f.processes)) {
    const Figures::ProcessName& name = process->first;
    return Advice{
        says(fmt::format("process{:03} of node {}", name.process, name.node), process->second),
        "look at its items in the slowest mini-batches below, and at its log"};
  }
  return std::nullopt;
}

std::optional<Advice> OnFailures(const AdviceFacts& f) {
  if (f.total.run_ns == 0) return std::nullopt;
  const double share = Seconds(f.total.failed_run_ns) / Seconds(f.total.run_ns);
  if (share < kLeastFailed) return std::nullopt;
  return Advice{fmt::format("{} % of the time in run() went into {} that failed", Percent(share),
                            CountOf(f.total.failed, "attempt")),
                "fix the most frequent error below; a runMaxTry of 1 repeats nothing"};
}

std::optional<Advice> OnCpu(const AdviceFacts& f) {
  const double run = Seconds(f.total.run_ns) / static_cast<double>(f.total.attempts);
  if (run < kLongEnough) return std::nullopt;
  const double cores = Seconds(f.total.cpu_ns) / Seconds(f.total.run_ns);
  if (cores < kComputesLittle) {
    return Advice{
        fmt::format("run() computes for {} % of its time, and waits for the rest of it: for files, "
                    "the network, a GPU or a core",
                    Percent(cores)),
        "where cores are idle, more processes on a node (processCountPerNode) use that time"};
  }
  if (cores > kComputesMuch) {
    return Advice{
        fmt::format("run() uses {:.1f} cores at once in each process", cores),
        "if a node has fewer cores than that times its processes, they take them from each other: "
        "lower processCountPerNode, or the threads of the libraries (OMP_NUM_THREADS)"};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Advice> AdviceOn(const AdviceFacts& facts) {
  if (facts.total.attempts == 0) return {};
  std::vector<std::optional<Advice>> all = {OnStores(facts), OnFailures(facts), OnSlowOnes(facts)};
  if (!facts.async_mode) {
    all = {OnSize(facts),     OnListing(facts),  OnLast(facts), OnStores(facts),
           OnSlowOnes(facts), OnFailures(facts), OnCpu(facts)};
  }
  std::vector<Advice> given;
  for (std::optional<Advice>& one : all) {
    if (one) given.push_back(std::move(*one));
  }
  if (!given.empty()) return given;
  const double share = facts.process_ns == 0
                           ? 0
                           : std::min(Seconds(facts.total.run_ns) / Seconds(facts.process_ns), 1.0);
  return {{facts.async_mode
               ? std::string("nothing stands out")
               : fmt::format("nothing stands out: run() took {} % of the processes' time",
                             Percent(share)),
           ""}};
}

}  // namespace parallelrun::coordinator
