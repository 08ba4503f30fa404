// A journal over a real ledger on a simulated disk, with what the parts beside it need.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "coordinator/core/journal.h"
#include "job/availability.h"
#include "job/record_codec.h"
#include "plan/plan_store.h"
#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {

class JournalHarness {
 public:
  static constexpr WorkInstant kStart{seconds(1000)};

  explicit JournalHarness(const job::LeaseRules& rules = {}) {
    ledger::LedgerOptions options;
    options.state_folder = "/job/state";
    options.nonce = 1;
    options.new_run_id = 9;
    ledger = std::move(*ledger::Ledger::Claim(
        files, options,
        [this](const job::Record& record, const job::Place& place, const job::Place& rows) {
          return state.Apply(record, place, rows);
        }));
    const job::SettingsRecord settings{1, 1, 2, "uid", "{}", "{}"};
    EXPECT_TRUE(ledger->Begin(settings, std::nullopt).ok());
    EXPECT_TRUE(state.Apply(settings, {}, {}).ok());
    plan = std::make_unique<plan::PlanStore>(*ledger);
    journal = std::make_unique<Journal>(*ledger, state);
    availability = std::make_unique<job::Availability>(state, ledger->epoch(), rules, true, kStart);
  }

  // Plans `batches` of so many items each, durably; the last ones.
  void Plan(uint32_t batches, uint32_t items = 1) {
    const Result<uint64_t> position = journal->AddChunk(Chunk(batches, items));
    ASSERT_TRUE(position.ok());
    availability->Plan(*position, state.counts().planned);
    journal->Add(job::PlanEndRecord{state.counts().planned, state.counts().items_planned});
    Sync();
  }
  std::string Chunk(uint32_t batches, uint32_t items = 1) const {
    job::TabularChunk chunk;
    chunk.path = "/in/rows.csv";
    chunk.format = "{}";
    for (uint64_t i = 0; i < batches; ++i) chunk.slices.push_back({i * 10, 10, items});
    job::PlanChunkRecord record;
    record.first = state.counts().planned;
    record.first_item = state.counts().items_planned;
    record.content = chunk;
    std::string encoded;
    job::EncodeRecord(record, encoded);
    return encoded;
  }
  void Sync() {
    ASSERT_TRUE(ledger->Flush().ok());
    availability->Durable(ledger->durable());
  }
  job::LeaseName Lease(uint32_t node, uint64_t request = 1) const {
    const auto lease = availability->Grant({node, {1, node + 1}, request}, kStart);
    EXPECT_TRUE(lease);
    return lease.value_or(job::LeaseName{});
  }
  static job::Finished Done(const job::LeaseName& name,
                            job::Finished::Kind kind = job::Finished::Kind::kSucceeded) {
    job::Finished done;
    done.id = name.id;
    done.fence = name.fence;
    done.kind = kind;
    if (kind == job::Finished::Kind::kSucceeded) {
      done.items_succeeded = 1;
      done.row_count = 1;
      done.rows = "row\n";
    }
    done.error_kind = "Exception";
    done.message = "it failed";
    return done;
  }

  FaultFiles files;
  job::JobState state;
  std::unique_ptr<ledger::Ledger> ledger;
  std::unique_ptr<plan::PlanStore> plan;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<job::Availability> availability;
};

}  // namespace parallelrun::coordinator
