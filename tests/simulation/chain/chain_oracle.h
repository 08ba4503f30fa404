// What must hold of a chain that several coordinators write: it knows what was said to be durable,
// and what each claim has read, and nothing else. The first violation stays.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace parallelrun::simulation {

class ChainOracle {
 public:
  // A record may be written from now on; they are numbered from 0.
  uint64_t NewRecord() { return records_++; }
  // That epoch's first link begins another run.
  void Begins(uint64_t run, uint32_t epoch) { births_[run] = epoch; }
  // An epoch has been claimed, with this history of this run.
  void Claimed(uint32_t epoch, uint64_t run, const std::vector<uint64_t>& history);
  // An epoch has told somebody that these are durable.
  void Acknowledged(uint32_t epoch, uint64_t run, const std::vector<uint64_t>& records);
  // What is in the chain at the end.
  void Ends(uint64_t run, const std::vector<uint64_t>& history);
  void Violated(const std::string& what);

  // The highest that was claimed.
  uint32_t epoch() const { return claims_.empty() ? 0 : claims_.rbegin()->first; }
  uint64_t acknowledged() const { return acknowledged_; }
  size_t claims() const { return claims_.size(); }
  const std::string& violation() const { return violation_; }

 private:
  struct Claim {
    uint64_t run = 0;
    std::vector<uint64_t> history;
  };
  // The epoch that began a run; that of the first one is 0.
  uint32_t BirthOf(uint64_t run) const;
  void CheckHistory(const std::string& whose, const std::vector<uint64_t>& history);
  void CheckOrder(uint32_t epoch, const Claim& earlier, const Claim& later);
  void CheckHas(uint32_t epoch, const Claim& claim, uint32_t by, uint64_t record);

  struct Said {
    uint32_t by = 0;  // epoch
    uint64_t record = 0;
  };
  std::map<uint64_t, std::vector<Said>> said_;  // by run
  std::map<uint32_t, Claim> claims_;            // by epoch
  std::map<uint64_t, uint32_t> births_;         // by run
  uint64_t records_ = 0;
  uint64_t acknowledged_ = 0;
  std::string violation_;
};

}  // namespace parallelrun::simulation
