#include "coordinator/core/journal.h"

#include "job/record_codec.h"

#include <cassert>

namespace parallelrun::coordinator {

uint64_t Journal::Add(const job::Record& record) {
  const ledger::Ledger::Appended appended = ledger_.Append(record);
  const Status applied = state_.Apply(record, appended.record, appended.rows);
  assert(applied.ok());
  static_cast<void>(applied);
  if (watcher_) watcher_(record);
  return appended.position;
}

Result<uint64_t> Journal::AddChunk(const std::string& encoded) {
  std::string_view bytes = encoded;
  const Result<job::DecodedRecord> decoded = job::DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  const ledger::Ledger::Appended appended = ledger_.AppendEncoded(encoded);
  const Status applied = state_.Apply(decoded->record, appended.record, appended.rows);
  if (!applied.ok()) return applied.error();
  if (watcher_) watcher_(decoded->record);
  return appended.position;
}

}  // namespace parallelrun::coordinator
