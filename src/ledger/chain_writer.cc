#include "ledger/chain_writer.h"

#include <cassert>

namespace parallelrun::ledger {

void ChainWriter::Put(uint32_t records, std::string& link) {
  assert(!put_);
  LinkHeader header;
  header.log = own_;
  header.kind = LinkKind::kRecords;
  header.records = records;
  header.number = number();
  header.first = anew_ ? header.number : last_.first;
  header.offset = end_;
  header.digest = anew_ ? own_.run_id : digest_;
  WriteLinkHeader(header, link);
  put_.emplace();
}

void ChainWriter::Done(std::string_view link) {
  const Result<LinkHeader> header = DecodeLinkHeader(link);
  assert(header.ok() && put_);
  last_ = *header;
  end_ = last_.offset + link.size();
  digest_ = ExtendDigest(last_.digest, last_.checksum);
  anew_ = false;
  put_.reset();
}

}  // namespace parallelrun::ledger
