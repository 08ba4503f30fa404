// One schedule of a ledger in a store: coordinators that claim and commit on a simulated clock,
// through a store whose requests and answers come late, get lost, or are refused. Some coordinators
// are killed, or stand still while others take over. ChainClaim and ChainWriter are the product's;
// what asks the store is here. One thread; a seed is the whole run.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "ledger/chain_claim.h"
#include "ledger/chain_writer.h"
#include "tests/simulation/chain/chain_oracle.h"
#include "tests/support/fault_files.h"

namespace parallelrun::simulation {

struct ChainOutcome {
  std::string violation;  // "": none
  uint64_t events = 0;
  uint64_t claims = 0;
  uint64_t acknowledged = 0;  // records
  uint64_t superseded = 0;
  uint64_t damaged = 0;  // claims that were refused as they must be
  uint64_t hash = 0;     // of all that happened
};

class ChainWorld {
 public:
  ChainWorld(uint64_t seed, bool trace);
  ChainOutcome Run();

 private:
  // What is done to the store beside what requests do.
  enum class Mischief : uint8_t {
    kNone,
    kHole,     // somebody removes a link that others are behind
    kTail,     // somebody removes the links from that of the newest claim on
    kIgnores,  // it does not know conditions
  };
  enum class Ask : uint8_t { kList, kRead, kCreate, kAnnounce, kLook };
  struct Question {
    Ask ask = Ask::kList;
    uint64_t number = 0;
    std::string bytes{};
    bool late = false;  // asked by a coordinator that began once the mischief was done
  };
  struct Reply {
    bool known = false;  // false: no answer, or none that says anything
    ledger::LinkPut::Answer answer = ledger::LinkPut::Answer::kUnknown;
    std::vector<uint64_t> numbers{};
    std::optional<std::string> there{};
    bool wanted = false;
  };
  struct Coordinator {
    size_t id = 0;
    bool gone = false;
    uint64_t asked = 0;            // questions
    bool waits = false;            // for the answer of the last one
    uint64_t frozen = 0;           // until then
    Ask last = Ask::kList;         // question
    bool looked = false;           // for a newer one, before the next link
    bool late = false;             // it began once the mischief was done
    std::vector<uint64_t> read{};  // records of the history
    std::unique_ptr<ledger::ChainClaim> claim{};
    std::optional<ledger::ChainWriter> writer{};
    uint32_t epoch = 0;
    uint64_t run = 0;
    std::optional<uint64_t> anew{};  // the run that its first link begins
    uint64_t to_write = 0;           // records, before it has done its part
    std::deque<uint64_t> waiting{};  // records without a link
    std::string link{};              // on its way
    std::vector<uint64_t> in_link{};
  };

  bool Chance(uint64_t per_mille) { return rng_.Below(1000) < per_mille; }
  bool Faulty(uint64_t per_mille) { return now_ < calm_at_ && Chance(per_mille); }
  void At(uint64_t delay, std::function<void()> event);
  uint64_t Travels();
  void Trace(const std::string& text) const;

  // The store.
  void Send(Coordinator& of, Question question);
  Reply Act(const Question& question);
  void Hear(size_t id, uint64_t asked, const Reply& reply);
  void DoMischief();

  // Coordinators.
  void Start();
  void Step(Coordinator& of);
  void StepClaim(Coordinator& of);
  void StepWriter(Coordinator& of);
  void Claimed(Coordinator& of);
  void Refused(Coordinator& of);
  void PutLink(Coordinator& of);
  void Answered(Coordinator& of, const Reply& reply);
  void Append(Coordinator& of);
  void Leave(Coordinator& of, const std::string& why);
  void CheckEnd();

  const bool trace_;
  FaultRng rng_;
  Mischief mischief_ = Mischief::kNone;
  bool lists_late_ = false;
  bool overwrites_ = false;
  uint64_t losses_ = 0;    // per mille of requests, and of answers
  uint64_t lateness_ = 0;  // per mille of those that travel for long
  uint64_t calm_at_ = 0;   // then all faults end
  uint64_t end_ = 0;

  struct Later {
    uint64_t at = 0;
    uint64_t number = 0;
    std::shared_ptr<const std::function<void()>> event;
    bool operator<(const Later& other) const {
      return at != other.at ? at > other.at : number > other.number;
    }
  };
  std::priority_queue<Later> events_;
  uint64_t event_numbers_ = 0;
  uint64_t now_ = 0;  // ms

  std::map<uint64_t, std::string> links_;
  std::set<uint64_t> wanted_;
  uint64_t listed_up_to_ = UINT64_MAX;
  std::set<uint64_t> removed_;  // by the mischief
  bool damaged_ = false;        // by it
  bool remade_ = false;  // a link that was removed was made again, by a request that was on its way
  std::map<uint32_t, uint64_t> claimed_at_;  // the link of an epoch's claim

  std::vector<std::unique_ptr<Coordinator>> coordinators_;
  ChainOracle oracle_;
  ChainOutcome outcome_;
};

}  // namespace parallelrun::simulation
