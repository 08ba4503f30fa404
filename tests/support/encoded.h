// A record's bytes, as the ledger and the exchange hold them.
#pragma once

#include <string>

#include "job/records.h"

namespace parallelrun {

inline std::string Encoded(const Record& record) {
  std::string bytes;
  EncodeRecord(record, bytes);
  return bytes;
}

}  // namespace parallelrun
