#include "output/result_rows.h"

#include <spdlog/fmt/fmt.h>

#include <tuple>
#include <utility>

namespace parallelrun::output {
namespace {

constexpr uint32_t kRowsPiece = uint32_t{64} << 10;

}  // namespace

Result<std::string_view> RowReader::Read(const job::Place& place) {
  const bool inside = place.epoch == window_.epoch && place.offset >= window_.offset &&
                      place.offset + place.length <= window_.offset + bytes_.size();
  if (!inside) {
    const uint32_t length = std::max(place.length, kRowsPiece);
    // A window near the end of a log is cut short by the ledger; only our rows must be there.
    Result<std::string> read = ledger_.Read({place.epoch, place.offset, length});
    if (!read.ok() && length > place.length) read = ledger_.Read(place);
    if (!read.ok()) return read.error();
    bytes_ = std::move(*read);
    window_ = place;
    if (bytes_.size() < place.length) {
      return Error{Code::kCorrupt,
                   fmt::format("the ledger of epoch {} ends within rows at offset {}", place.epoch,
                               place.offset)};
    }
  }
  return std::string_view(bytes_).substr(place.offset - window_.offset, place.length);
}

Status RowReader::ReadInPieces(job::Place place, const EachPiece& each) {
  for (uint32_t left = place.length; left > 0; left -= place.length) {
    place.length = std::min(left, kRowsPiece);
    const Result<std::string_view> piece = Read(place);
    if (!piece.ok()) return piece.error();
    const Result<bool> more = each(*piece);
    if (!more.ok()) return more.error();
    if (!*more) return {};
    place.offset += place.length;
  }
  return {};
}

Succession::Succession(const job::JobState& state, RowOrder order) : state_(state) {
  if (order == RowOrder::kMiniBatch) return;
  sorted_.emplace().reserve(state.counts().succeeded);
  for (uint32_t id = 0; id < state.batches().size(); ++id) {
    if (Succeeded(id)) sorted_->push_back(id);
  }
  std::sort(sorted_->begin(), sorted_->end(), [&state](uint32_t a, uint32_t b) {
    const job::Place x = state.batches().RowsOf(a);
    const job::Place y = state.batches().RowsOf(b);
    return std::tie(x.epoch, x.offset) < std::tie(y.epoch, y.offset);
  });
}

Status EachSideList(const ledger::Ledger& ledger, const job::JobState& state,
                    const std::function<Status(job::BatchId, const job::SideList&)>& each) {
  RowReader rows(ledger);
  job::SideLine line;
  return Succession(state, RowOrder::kMiniBatch).Each([&](job::BatchId id, const auto& parts) {
    bool in_list = false;
    for (const job::JobState::RowsPart& part : parts) {
      bool first = part.first;
      in_list = in_list || first;
      if (!in_list) continue;
      const Status read =
          rows.ReadInPieces(part.place, [&](std::string_view piece) -> Result<bool> {
            const auto left = line.RowsIn(piece, std::exchange(first, false));
            if (!left.ok()) return left.error();
            return !line.line();
          });
      if (!read.ok()) return read;
      if (!line.line()) continue;
      in_list = false;
      const Result<job::SideList> list = job::ParseSideList(*line.line());
      if (!list.ok()) return Status(list.error());
      if (Status told = each(id, *list); !told.ok()) return told;
    }
    return Status();
  });
}

}  // namespace parallelrun::output
