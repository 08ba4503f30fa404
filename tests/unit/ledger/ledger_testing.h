// What the tests of the ledger share: one job's folders on a simulated disk, and a claimed ledger
// with what it replayed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ledger/ledger.h"
#include "ledger/log_format.h"
#include "tests/support/encoded.h"

namespace parallelrun::ledger {

inline constexpr uint64_t kTestRun = 0xabcdef;
inline const std::string kTestLogs = "/job/state/epochs";

inline std::string LogOfEpoch(uint32_t epoch) { return kTestLogs + "/" + LogName(epoch); }

// A result of about `size` bytes that no other number makes.
inline std::string ResultOf(uint64_t number, size_t size = 100) {
  const std::string rows = std::to_string(number) + std::string(size, 'r') + "\n";
  return Encoded(job::ResultRecord{
      {.run_ns = 5, .items_succeeded = 1, .row_count = 1}, number, {1, number}, 0, 0, rows});
}

inline std::string FailureOf(uint64_t number) {
  return Encoded(job::FailedRecord{{.run_ns = 5},
                                   number,
                                   {1, number},
                                   0,
                                   0,
                                   job::Cause::kRun,
                                   job::AttemptEnd::kFinal,
                                   "E",
                                   "m",
                                   "log",
                                   {}});
}

inline job::SettingsRecord TestSettings(uint32_t generation = 1) {
  return {generation, 1, 2, "uid", "{}", "{\"name\":\"job\"}"};
}

inline bool IsPrefix(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

struct Claimed {
  std::unique_ptr<Ledger> ledger;
  std::vector<std::string> records;  // replayed, encoded, without seals
  std::vector<job::Place> places;    // one a record
  std::vector<job::Place> rows;
  std::vector<job::SealRecord> seals;
};

inline LedgerOptions TestOptions() {
  static uint64_t nonce = 0;
  LedgerOptions options;
  options.state_folder = "/job/state";
  options.output_folder = "/job/output";
  options.output_file = "rows.txt";
  options.nonce = ++nonce;
  options.new_run_id = kTestRun;
  return options;
}

inline Result<Claimed> TryClaim(Files& files, const LedgerOptions& options = TestOptions()) {
  Claimed claimed;
  Result<std::unique_ptr<Ledger>> ledger = Ledger::Claim(
      files, options,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        if (const auto* seal = std::get_if<job::SealRecord>(&record)) {
          claimed.seals.push_back(*seal);
          return Status();
        }
        claimed.records.push_back(Encoded(record));
        claimed.places.push_back(place);
        claimed.rows.push_back(rows);
        return Status();
      });
  if (!ledger.ok()) return ledger.error();
  claimed.ledger = std::move(*ledger);
  return claimed;
}

// Claims and begins without new settings.
inline Result<Claimed> TryStart(Files& files) {
  Result<Claimed> claimed = TryClaim(files);
  if (!claimed.ok()) return claimed;
  if (Status begun = claimed->ledger->Begin(std::nullopt, std::nullopt); !begun.ok()) {
    return begun.error();
  }
  return claimed;
}

inline Claimed Start(Files& files) {
  Result<Claimed> claimed = TryStart(files);
  EXPECT_TRUE(claimed.ok()) << claimed.error().message;
  return std::move(*claimed);
}

// Appends and flushes.
inline Status Commit(Ledger& ledger, const std::vector<std::string>& records) {
  for (const std::string& record : records) ledger.AppendEncoded(record);
  const Result<uint64_t> flushed = ledger.Flush();
  if (!flushed.ok()) return flushed.error();
  EXPECT_EQ(*flushed, ledger.appended());
  return {};
}

}  // namespace parallelrun::ledger
