// The ledger of a job of three mini-batches, on a disk of the test's own, as it is before its
// output is published.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "job/job_state.h"
#include "ledger/ledger.h"
#include "tests/support/fault_files.h"

namespace parallelrun::output {

class LedgerOfThree {
 public:
  // `output_file` is below "/out"; the state is in "/state", and the run's id is 7.
  LedgerOfThree(std::string output_file, const std::string& plan_settings)
      : output_file_(std::move(output_file)) {
    Reopen();
    job::SettingsRecord settings;
    settings.generation = 1;
    settings.plan_settings = plan_settings;
    EXPECT_TRUE(ledger_->Begin(settings, std::nullopt).ok());
    Append(settings);
    job::TabularChunk table;
    table.path = "/in/a.csv";
    table.slices = {{0, 10, 1}, {10, 10, 1}, {20, 10, 1}};
    job::PlanChunkRecord chunk;
    chunk.content = table;
    Append(chunk);
  }

  // Another epoch.
  std::unique_ptr<ledger::Ledger> Open() {
    ledger::LedgerOptions options;
    options.state_folder = "/state";
    options.output_folder = "/out";
    options.output_file = output_file_;
    options.nonce = ++nonce_;
    options.new_run_id = 7;
    Result<std::unique_ptr<ledger::Ledger>> ledger = ledger::Ledger::Claim(
        files_, options,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(ledger.ok());
    return std::move(*ledger);
  }
  void Reopen() { ledger_ = Open(); }

  void Append(const job::Record& record) {
    const auto at = ledger_->Append(record);
    ASSERT_TRUE(state_.Apply(record, at.record, at.rows).ok());
  }
  void Succeed(job::BatchId id, const job::Fence& fence, uint32_t row_count,
               const std::string& rows) {
    job::ResultRecord result;
    result.id = id;
    result.fence = fence;
    result.row_count = row_count;
    result.rows = rows;
    Append(result);
  }
  void Fail(job::BatchId id, const job::Fence& fence) {
    job::FailedRecord failed;
    failed.id = id;
    failed.fence = fence;
    failed.end = job::AttemptEnd::kFinal;
    Append(failed);
  }

  FaultFiles files_;
  std::unique_ptr<ledger::Ledger> ledger_;
  job::JobState state_;

 private:
  const std::string output_file_;
  uint64_t nonce_ = 0;
};

}  // namespace parallelrun::output
