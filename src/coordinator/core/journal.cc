#include "coordinator/core/journal.h"

#include <cassert>

namespace parallelrun {

uint64_t Journal::Add(const Record& record) {
  const Ledger::Appended appended = ledger_.Append(record);
  const Status applied = state_.Apply(record, appended.record, appended.rows);
  assert(applied.ok());
  static_cast<void>(applied);
  return appended.position;
}

Result<uint64_t> Journal::AddChunk(const std::string& encoded) {
  std::string_view bytes = encoded;
  const Result<DecodedRecord> decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  const Ledger::Appended appended = ledger_.AppendEncoded(encoded);
  const Status applied = state_.Apply(decoded->record, appended.record, appended.rows);
  if (!applied.ok()) return applied.error();
  return appended.position;
}

}  // namespace parallelrun
