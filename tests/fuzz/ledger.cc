// The ledger reader. The first byte of an input says what the others are: a whole log, a whole link
// of a ledger in a store, or records that a good one of either is made of, with the checksums that
// random bytes never have. What was read of a log is read again after the next epoch has sealed it.
#include <optional>
#include <utility>
#include <vector>

#include "job/job_state.h"
#include "job/record_codec.h"
#include "job/work.h"
#include "ledger/chain_history.h"
#include "ledger/ledger.h"
#include "ledger/link_format.h"
#include "ledger/log_format.h"
#include "tests/fuzz/expect.h"
#include "tests/support/fault_files.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

constexpr char kFolder[] = "/job/state";
constexpr ledger::LogHeader kHeader{.epoch = 1, .run_id = 7, .nonce = 9};

uint32_t CountRecords(std::string_view payload) {
  uint32_t records = 0;
  for (std::string_view rest = payload; !rest.empty(); ++records) {
    if (!job::DecodeRecord(rest).ok()) break;
  }
  return records;
}

// A log of one epoch with all of `payload` in one group.
std::string LogOf(std::string_view payload) {
  std::string log = ledger::EncodeLogHeader(kHeader);
  std::string group(ledger::kGroupHeaderSize, '\0');
  group += payload;
  ledger::WriteGroupHeader(kHeader, log.size(), CountRecords(payload), log.size(), group.data(),
                           group.size());
  return log + group;
}

// The first link of a chain, with all of `payload`.
std::string LinkOf(std::string_view payload) {
  ledger::LinkHeader header;
  header.log = kHeader;
  header.records = CountRecords(payload);
  header.number = header.first = 1;
  header.digest = kHeader.run_id;
  std::string link(ledger::kLinkHeaderSize, '\0');
  link += payload;
  ledger::WriteLinkHeader(header, link);
  return link;
}

// What the records say of a job adds up, or is refused.
Status Apply(job::JobState& state, const job::Record& record, const job::Place& place,
             const job::Place& rows) {
  constexpr uint64_t kMostPlanned = 100'000;  // bounds time and memory
  if (state.counts().planned > kMostPlanned) return {};
  const Status applied = state.Apply(record, place, rows);
  const job::JobCounts& counts = state.counts();
  Expect(counts.planned == state.batches().size(), "mini-batches are not counted");
  Expect(counts.succeeded + counts.failed + counts.split <= counts.planned,
         "more mini-batches are settled than planned");
  return applied;
}

void CheckRecord(const job::Record& record) {
  std::string once;
  job::EncodeRecord(record, once);
  std::string_view bytes = once;
  const Result<job::DecodedRecord> back = job::DecodeRecord(bytes);
  Expect(back.ok() && bytes.empty(), "an encoded record is refused");
  std::string twice;
  job::EncodeRecord(back->record, twice);
  Expect(once == twice, "a record changes when it is written again");
  if (!std::holds_alternative<job::PlanChunkRecord>(record)) return;
  const Result<job::WorkMaker> maker = job::WorkMaker::FromRecord(once);
  if (!maker.ok()) return;
  const uint32_t batches = maker->chunk().Batches();
  for (uint32_t index = 0; index < batches && index < 16; ++index) {
    std::string work = maker->Make(index);
    const uint64_t digest = job::WorkDigest(work);
    job::SetWorkAttempts(work, 3);
    Expect(job::WorkDigest(work) == digest, "a digest depends on the attempts");
    const uint32_t items = maker->chunk().ItemsOf(index);
    if (items > 1) maker->MakePiece(index, job::FirstPiece(index), 0, items / 2);
  }
}

// The records of the ledger, without seals, and whether all of it could be read.
std::pair<std::string, bool> Records(const FaultFiles& files) {
  std::string records;
  job::JobState state;
  const bool whole =
      ledger::Ledger::Inspect(
          files, kFolder,
          [&](const job::Record& record, const job::Place& at, const job::Place& rows) {
            CheckRecord(record);
            if (!std::holds_alternative<job::SealRecord>(record)) {
              job::EncodeRecord(record, records);
            }
            return Apply(state, record, at, rows);
          })
          .ok();
  for (job::BatchId id = 0; id < state.batches().size() && id < 16; ++id) {
    uint64_t bytes = 0;
    for (const job::Place& place : state.RowsOf(id)) bytes += place.length;
    Expect(bytes == 0 || state.batch(id).state == job::MiniBatch::State::kSucceeded ||
               state.batch(id).state == job::MiniBatch::State::kSplit,
           "a mini-batch that has not succeeded has rows");
  }
  return {records, whole};
}

void ReadLink(const std::string& link) {
  job::JobState state;
  ledger::ChainHistory history(
      "", [](uint64_t) { return std::string("link"); },
      [&state](const job::Record& record, const job::Place& at, const job::Place& rows) {
        Expect(at.offset + at.length >= rows.offset + rows.length, "rows lie beyond their record");
        CheckRecord(record);
        return Apply(state, record, at, rows);
      },
      [](const ledger::LinkHeader&, std::string_view) {});
  const bool whole = history.Add(1, link).ok();
  Expect(!whole || history.number() == 1, "a link that was read is not the last one");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 >= 2) {
    ReadLink(data[0] % 4 == 2 ? LinkOf(rest) : std::string(rest));
    return 0;
  }
  FaultFiles files;
  Expect(files.MakeFolders("/job/state/epochs").ok(), "no folder");
  files.Put("/job/state/epochs/" + ledger::LogName(1),
            data[0] % 2 == 0 ? LogOf(rest) : std::string(rest));
  const auto [before, whole] = Records(files);
  const auto ledger = ledger::Ledger::Claim(
      files,
      {.state_folder = kFolder,
       .output_folder = "",
       .output_file = "",
       .nonce = 2,
       .new_run_id = 3},
      [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
  if (!ledger.ok()) return 0;
  std::optional<job::SettingsRecord> settings;
  if ((*ledger)->fresh()) settings.emplace();
  Expect((*ledger)->Begin(settings, std::nullopt).ok(), "an epoch that was claimed cannot begin");
  const auto [after, again] = Records(files);
  Expect(!whole || (again && after.starts_with(before)), "a ledger changes when it is sealed");
  return 0;
}
