#include "tests/simulation/chain/chain_oracle.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <set>

namespace parallelrun::simulation {

void ChainOracle::Violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

uint32_t ChainOracle::BirthOf(uint64_t run) const {
  const auto birth = births_.find(run);
  return birth == births_.end() ? 0 : birth->second;
}

// Each record at most once, and none that nobody has written.
void ChainOracle::CheckHistory(const std::string& whose, const std::vector<uint64_t>& history) {
  std::set<uint64_t> seen;
  for (const uint64_t record : history) {
    if (!seen.insert(record).second) {
      Violated(fmt::format("1 a record counts once: {} reads record {} twice", whose, record));
    }
    if (record >= records_) {
      Violated(fmt::format("1 a record counts once: {} reads record {}, which nobody has written",
                           whose, record));
    }
  }
}

void ChainOracle::CheckHas(uint32_t epoch, const Claim& claim, uint32_t by, uint64_t record) {
  if (std::find(claim.history.begin(), claim.history.end(), record) != claim.history.end()) return;
  Violated(fmt::format(
      "2 what was acknowledged is never lost: epoch {} has acknowledged record {}, and epoch {} "
      "has not read it",
      by, record, epoch));
}

// Of two claims, by their epochs.
void ChainOracle::CheckOrder(uint32_t epoch, const Claim& earlier, const Claim& later) {
  if (earlier.run != later.run) {
    if (BirthOf(earlier.run) > BirthOf(later.run)) {
      Violated(fmt::format("11 a history that was begun anew does not come back, as for epoch {}",
                           epoch));
    }
    return;
  }
  const bool prefix =
      earlier.history.size() <= later.history.size() &&
      std::equal(earlier.history.begin(), earlier.history.end(), later.history.begin());
  if (prefix) return;
  Violated(fmt::format("11 what was read never changes: epoch {} has read something else", epoch));
}

void ChainOracle::Claimed(uint32_t epoch, uint64_t run, const std::vector<uint64_t>& history) {
  CheckHistory(fmt::format("epoch {}", epoch), history);
  const auto [claim, added] = claims_.try_emplace(epoch, Claim{run, history});
  if (!added) return Violated(fmt::format("3 an epoch has one owner: {} has two", epoch));
  if (claim != claims_.begin()) CheckOrder(epoch, std::prev(claim)->second, claim->second);
  if (const auto next = std::next(claim); next != claims_.end()) {
    CheckOrder(next->first, claim->second, next->second);
  }
  for (const Said& said : said_[run]) {
    if (said.by < epoch) CheckHas(epoch, claim->second, said.by, said.record);
  }
}

void ChainOracle::Acknowledged(uint32_t epoch, uint64_t run, const std::vector<uint64_t>& records) {
  for (const uint64_t record : records) {
    ++acknowledged_;
    said_[run].push_back({epoch, record});
    for (auto claim = claims_.upper_bound(epoch); claim != claims_.end(); ++claim) {
      if (claim->second.run == run) {
        CheckHas(claim->first, claim->second, epoch, record);
      } else if (BirthOf(claim->second.run) < BirthOf(run)) {
        Violated(fmt::format("11 a history that was begun anew does not come back, as for epoch {}",
                             claim->first));
      }
    }
  }
}

void ChainOracle::Ends(uint64_t run, const std::vector<uint64_t>& history) {
  CheckHistory("who reads it at the end", history);
  const Claim end{run, history};
  for (const Said& said : said_[run]) CheckHas(epoch() + 1, end, said.by, said.record);
}

}  // namespace parallelrun::simulation
