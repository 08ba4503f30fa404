// A Coordinator over a real ledger on a simulated disk, driven by hand: what the server does with
// threads and HTTP is one call here.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/coordinator.h"
#include "job/record_codec.h"
#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {

class CoordinatorHarness {
 public:
  explicit CoordinatorHarness(CoordinatorLimits given = {}) : limits(std::move(given)) {
    limits.settings_digest = 77;
    Start(1);
  }

  CoordinatorLimits limits;
  FaultFiles files;
  std::unique_ptr<ledger::Ledger> ledger;
  job::JobState state;
  std::unique_ptr<plan::PlanStore> plan;
  std::unique_ptr<Coordinator> core;

  struct Said {
    std::optional<Error> error;
    job::Directive directive = job::Directive::kGoOn;
    std::vector<job::LeaseName> settled;
    std::vector<job::LeaseName> refused;
    std::vector<job::Adopted> adopted;
    std::vector<job::LeaseName> leased;
    std::vector<uint64_t> digests;
    int answers = 0;
    uint64_t exchange = 0;
  };

  Instant now() const { return now_; }
  void Advance(Duration by) {
    now_ += by;
    core->Tick(now_);
    Look();
    Check();
  }
  // The edge looks for a newer epoch, when it is asked to; here at once.
  void Look() {
    if (looks && core->WantsLook(now_)) core->OnLooked(now_, ledger->CheckNewest(), now_);
  }
  bool looks = true;
  // The decision thread stands still.
  void Pass(Duration by) { now_ += by; }
  // The next epoch; `generation`: 0, or of the settings that it begins with.
  void Start(uint32_t generation = 0) {
    core.reset();
    plan.reset();
    ledger.reset();
    state = job::JobState();
    ledger::LedgerOptions options;
    options.state_folder = "/job/state";
    options.nonce = ++nonce_;
    options.new_run_id = 9;
    auto claimed = ledger::Ledger::Claim(
        files, options, [&](const job::Record& r, const job::Place& p, const job::Place& rows) {
          return state.Apply(r, p, rows);
        });
    ASSERT_TRUE(claimed.ok()) << claimed.error().message;
    ledger = std::move(*claimed);
    std::optional<job::SettingsRecord> settings;
    if (generation > 0) settings = job::SettingsRecord{generation, 1, 2, "uid", "{}", "{}"};
    ASSERT_TRUE(ledger->Begin(settings, std::nullopt).ok());
    if (settings) {
      ASSERT_TRUE(state.Apply(*settings, {}, {}).ok());
    }
    plan = std::make_unique<plan::PlanStore>(*ledger);
    core = std::make_unique<Coordinator>(limits, *ledger, *plan, state, now_);
    Look();
  }
  void Sync() {
    ASSERT_TRUE(ledger->Flush().ok());
    core->OnDurable(now_);
    Look();
    Check();
  }
  // Plans `batches` of one item each, durably.
  void Plan(uint32_t batches, bool end = true) {
    SlicesInto(batches);
    if (end) core->EndPlan(now_);
    Sync();
  }
  void SlicesInto(uint32_t batches) {
    job::TabularChunk chunk;
    chunk.path = "/in/rows.csv";
    chunk.format = "{}";
    const uint64_t first = state.counts().planned;
    for (uint64_t i = first; i < first + batches; ++i) chunk.slices.push_back({i * 10, 10, 1});
    job::PlanChunkRecord record;
    record.first = first;
    record.first_item = state.counts().items_planned;
    record.content = chunk;
    std::string encoded;
    job::EncodeRecord(record, encoded);
    ASSERT_TRUE(core->AddChunk(encoded, now_).ok());
  }
  job::Incarnation Join(uint32_t node, const std::string& agent = "a", uint32_t processes = 1) {
    return core->Register(node, agent, processes, now_).incarnation;
  }
  job::ExchangeRequest Request(const job::Incarnation& incarnation, uint32_t want = 0,
                               uint32_t park_ms = 0) const {
    job::ExchangeRequest request;
    request.incarnation = incarnation;
    request.settings_digest = limits.settings_digest;
    request.want = want;
    request.park_ms = park_ms;
    return request;
  }
  std::shared_ptr<Said> Send(uint32_t node, const job::ExchangeRequest& request) {
    auto said = std::make_shared<Said>();
    Look();
    said->exchange =
        core->Exchange(node, request, now_, [said](const Result<job::ExchangeReply>& reply) {
          ++said->answers;
          if (!reply.ok()) {
            said->error = reply.error();
            return;
          }
          said->directive = reply->directive;
          said->settled = reply->settled;
          said->refused = reply->refused;
          said->adopted = reply->adopted;
          for (const job::Leased& l : reply->leased) {
            said->leased.push_back({l.id, l.fence});
            said->digests.push_back(l.digest);
          }
        });
    Look();
    Check();
    return said;
  }
  job::LeaseName Lease(uint32_t node, const job::Incarnation& incarnation) {
    const auto said = Send(node, Request(incarnation, 1));
    EXPECT_EQ(said->leased.size(), 1U);
    return said->leased.empty() ? job::LeaseName{} : said->leased[0];
  }
  static job::Finished Done(const job::LeaseName& name,
                            job::Finished::Kind kind = job::Finished::Kind::kSucceeded) {
    job::Finished done;
    done.id = name.id;
    done.fence = name.fence;
    done.kind = kind;
    done.items_succeeded = kind == job::Finished::Kind::kSucceeded ? 1 : 0;
    done.row_count = done.items_succeeded;
    if (done.row_count > 0) done.rows = "row\n";
    done.error_kind = "Exception";
    done.message = "it failed";
    return done;
  }
  std::shared_ptr<Said> Report(uint32_t node, const job::Incarnation& incarnation,
                               const job::LeaseName& name,
                               job::Finished::Kind kind = job::Finished::Kind::kSucceeded) {
    job::ExchangeRequest request = Request(incarnation);
    request.finished.push_back(Done(name, kind));
    return Send(node, request);
  }
  std::shared_ptr<Said> Hold(uint32_t node, const job::Incarnation& incarnation,
                             const job::LeaseName& name, bool started = true) {
    job::ExchangeRequest request = Request(incarnation);
    request.held.push_back({name.id, name.fence, started});
    return Send(node, request);
  }

 private:
  void Check() const { EXPECT_EQ(core->Check(now_), ""); }

  Instant now_{seconds(1000)};
  uint64_t nonce_ = 0;
};

}  // namespace parallelrun::coordinator
