// A record's bytes, as the ledger and the exchange hold them.
#pragma once

#include <string>

#include "job/record_codec.h"
#include "job/records.h"

namespace parallelrun {

inline std::string Encoded(const job::Record& record) {
  std::string bytes;
  job::EncodeRecord(record, bytes);
  return bytes;
}

}  // namespace parallelrun
