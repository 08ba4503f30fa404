#include "coordinator/server.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "tests/support/fault_files.h"

namespace parallelrun {
namespace {

// What is planned waits in memory until it is on the disk: a plan of millions of files would
// outgrow a coordinator whose disk is full.
TEST(CoordinatorServerTest, ThePlannerWaitsForADiskThatIsFull) {
  constexpr uint64_t kChunks = 40;
  FaultFiles files;
  files.SetReserveWorks(false);  // else what was reserved is still there to be written to
  LedgerOptions options;
  options.state_folder = "/job/state";
  options.nonce = 1;
  options.new_run_id = 9;
  auto ledger = Ledger::Claim(files, options,
                              [](const Record&, const Place&, const Place&) { return Status(); });
  ASSERT_TRUE(ledger.ok());
  JobState state;
  const SettingsRecord settings{1, 1, 2, "uid", "{}", "{}"};
  ASSERT_TRUE((*ledger)->Begin(settings, std::nullopt).ok());
  ASSERT_TRUE(state.Apply(settings, {}, {}).ok());
  files.SetCapacity(files.used());

  ServerOptions server_options;
  server_options.state_folder = options.state_folder;
  server_options.ownerless_limit = seconds(1);  // ends the run
  PlanInput ranks;
  ranks.name = "ranks";
  ranks.kind = PlanKind::kRanks;
  ranks.batch_size = kChunks * RankChunk::kMost;
  server_options.inputs = {ranks};
  auto logs = LogSink::Open(files, "/job/logs");
  ASSERT_TRUE(logs.ok());
  CoordinatorServer server(std::move(server_options), files, **ledger, state, std::move(*logs));
  const auto exit = server.Run();
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, CoordinatorExit::kDrained);
  EXPECT_LE(state.counts().planned, kChunks / 2 * RankChunk::kMost);
}

}  // namespace
}  // namespace parallelrun
