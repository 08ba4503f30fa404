#include "ledger/chain_history.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"
#include "job/record_codec.h"

namespace parallelrun::ledger {
namespace {

constexpr size_t kOwnerShown = 500;  // bytes

}  // namespace

Error ChainHistory::Corrupt(uint64_t number, const std::string& what) const {
  return {Code::kCorrupt, fmt::format("{}: {}: {}", locate_(number), what, kBrokenChainMend)};
}

Status ChainHistory::CheckOwner(const Link& claim) const {
  if (owner_.empty() || claim.content == owner_) return {};
  return Error{Code::kExists,
               fmt::format("{} is the state of {}, and not of {}: give this job a state of its own",
                           locate_(claim.header.number), Printable(claim.content, kOwnerShown),
                           Printable(owner_, kOwnerShown))};
}

// What a link says of itself and of those in front of it must be so.
Status ChainHistory::Check(uint64_t number, const Link& link) const {
  const LinkHeader& header = link.header;
  if (header.number != number) {
    return Corrupt(number, fmt::format("this is link {} under another name", header.number));
  }
  const bool begins = header.first == number;
  if (last_ && begins) {
    return Error{Code::kStale, locate_(number) + ": another coordinator has begun the run anew"};
  }
  if (!last_) {
    if (begins && header.digest == header.log.run_id) return {};
    return Corrupt(number, "this is not the link that its history begins with");
  }
  if (header.first != last_->first || header.log.run_id != last_->log.run_id ||
      header.offset != end_ || header.digest != digest_) {
    return Corrupt(number, "this link does not continue the one in front of it");
  }
  const bool claims = header.kind == LinkKind::kClaim;
  const bool fits =
      claims ? header.log.epoch == last_->log.epoch + 1
             : header.log.epoch == last_->log.epoch && header.log.nonce == last_->log.nonce;
  if (fits) return {};
  return Corrupt(number, fmt::format("this link is of epoch {}, and the one in front of it of {}",
                                     header.log.epoch, last_->log.epoch));
}

Status ChainHistory::Add(uint64_t number, std::string_view bytes) {
  const Result<Link> link = DecodeLink(bytes);
  if (!link.ok()) {
    return link.error().code == Code::kInvalid ? link.error().With(locate_(number))
                                               : Corrupt(number, link.error().message);
  }
  if (Status fits = Check(number, *link); !fits.ok()) return fits;
  if (Status visited = Visit(*link); !visited.ok()) return visited;
  AddOwn(*link, bytes);
  return {};
}

void ChainHistory::AddOwn(const Link& link, std::string_view bytes) {
  last_ = link.header;
  end_ = link.end();
  digest_ = link.digest();
  keep_(link.header, bytes);
}

Status ChainHistory::Visit(const Link& link) {
  const LinkHeader& header = link.header;
  const uint64_t begin = header.offset + kLinkHeaderSize;
  if (header.kind == LinkKind::kClaim) {
    if (Status ours = CheckOwner(link); !ours.ok()) return ours;
    const job::SealRecord seal{last_ ? last_->log.epoch : 0, end_, header.digest};
    return visit_(seal, {header.log.epoch, begin, 0}, {});
  }
  std::string_view left = link.content;
  for (uint32_t i = 0; i < header.records; ++i) {
    const uint64_t at = begin + (link.content.size() - left.size());
    const size_t before = left.size();
    const Result<job::DecodedRecord> decoded = job::DecodeRecord(left);
    if (!decoded.ok()) return Corrupt(header.number, decoded.error().message);
    has_settings_ |= job::TypeOf(decoded->record) == job::RecordType::kSettings;
    const job::Place place{header.log.epoch, at, static_cast<uint32_t>(before - left.size())};
    job::Place rows;
    if (const size_t skip = decoded->rows_offset; skip != 0) {
      rows = {place.epoch, place.offset + skip, place.length - static_cast<uint32_t>(skip)};
    }
    if (Status visited = visit_(decoded->record, place, rows); !visited.ok()) return visited;
  }
  if (!left.empty()) return Corrupt(header.number, "a link holds more than its records");
  return {};
}

}  // namespace parallelrun::ledger
