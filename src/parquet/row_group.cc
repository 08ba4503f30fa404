#include "parquet/row_group.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/json.h"

namespace parallelrun::parquet {
namespace {

constexpr size_t kMostHead = size_t{2} << 20;  // workers write half of that
constexpr uint64_t kMostRows = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

Error NoRowGroup(const std::string& why) {
  return {Code::kCorrupt, "the rows are no row group of Parquet: " + why};
}

// Looks at everything, and keeps nothing.
class Looker final : public RowGroupTaker {
 public:
  Status TakeHead(const RowGroupHead& head) override {
    rows_ = head.rows;
    return {};
  }
  Status TakeColumn(size_t /*column*/) override { return {}; }
  Status TakePage(const Page& /*page*/) override { return {}; }
  Status TakeBytes(std::string_view /*bytes*/) override { return {}; }
  Status TakeEnd() override { return {}; }
  uint32_t rows() const { return rows_; }

 private:
  uint32_t rows_ = 0;
};

}  // namespace

Result<RowGroupHead> ReadRowGroupHead(std::string_view line) {
  const nlohmann::json json = ParseJson(line, 4).value_or(nullptr);
  Members in(json, "the head");
  RowGroupHead head;
  head.rows = static_cast<uint32_t>(in.Unsigned("rows", kMostRows));
  if (head.rows == 0) in.Fail("no row");
  const std::string codec = in.Text("codec");
  if (codec == "zstd") {
    head.codec = Codec::kZstd;
  } else if (codec != "none") {
    in.Fail("a codec that is not known");
  }
  const nlohmann::json columns = in.Value("columns", nlohmann::json::value_t::array);
  std::set<std::string_view> names;
  for (const nlohmann::json& told : columns) {
    Members of(told, "a column of the head");
    Column column;
    column.name = of.Text("name");
    const std::optional<Type> type = TypeOf(of.Text("type"));
    column.list = of.BooleanOr("list", false);
    const uint64_t bytes = of.UnsignedOr("bytes", kMostBytes, 0);
    if (!of.status().ok()) return NoRowGroup(of.status().error().message);
    if (!type) return NoRowGroup("a type that is not known");
    column.type = *type;
    const bool missing = column.type == Type::kNull;
    if (missing ? column.list || bytes > 0 : bytes == 0) return NoRowGroup("a column's size");
    head.columns.push_back(std::move(column));
    head.bytes.push_back(bytes);
  }
  if (!in.status().ok()) return NoRowGroup(in.status().error().message);
  if (head.columns.empty()) return NoRowGroup("no column");
  for (const Column& column : head.columns) {
    if (!names.insert(column.name).second) return NoRowGroup("two columns of one name");
  }
  return head;
}

Result<std::optional<RowGroupHead>> FindRowGroupHead(std::string_view rows) {
  using Found = std::optional<RowGroupHead>;
  const size_t end = rows.substr(0, kMostHead).find('\n');
  if (end == std::string_view::npos) {
    return rows.size() < kMostHead ? Result<Found>(Found()) : NoRowGroup("no head");
  }
  Result<RowGroupHead> head = ReadRowGroupHead(rows.substr(0, end));
  if (!head.ok()) return head.error();
  return Found(std::move(*head));
}

Status RowGroupReader::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    Status added;
    switch (at_) {
      case At::kHead: added = AddToHead(bytes); break;
      case At::kPageHeader: added = AddToPageHeader(bytes); break;
      case At::kPage: added = AddToPage(bytes); break;
      case At::kEnd: return NoRowGroup("bytes behind its end");
    }
    if (!added.ok()) return added;
  }
  return {};
}

Status RowGroupReader::AddToHead(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const size_t taken = std::min(end, bytes.size());
  if (begun_.size() + taken >= kMostHead) return NoRowGroup("no head");
  begun_ += bytes.substr(0, taken);
  bytes.remove_prefix(end == std::string_view::npos ? taken : taken + 1);
  if (end == std::string_view::npos) return {};
  Result<RowGroupHead> head = ReadRowGroupHead(begun_);
  if (!head.ok()) return head.error();
  head_ = std::move(*head);
  begun_.clear();
  if (const Status taken_head = taker_.TakeHead(head_); !taken_head.ok()) return taken_head;
  return NextColumn();
}

Status RowGroupReader::NextColumn() {
  while (column_ < head_.columns.size() && head_.bytes[column_] == 0) ++column_;
  if (column_ == head_.columns.size()) {
    at_ = At::kEnd;
    return taker_.TakeEnd();
  }
  at_ = At::kPageHeader;
  column_left_ = head_.bytes[column_];
  values_ = 0;
  return taker_.TakeColumn(column_);
}

Status RowGroupReader::AddToPageHeader(std::string_view& bytes) {
  const size_t before = begun_.size();
  const size_t most = std::min<uint64_t>(kMostPageHeader, before + column_left_);
  begun_ += bytes.substr(0, most - before);
  const std::optional<ReadPage> read = ReadPageHeader(begun_);
  if (!read && begun_.size() == most) return NoRowGroup("a page without a header");
  const size_t used = (read ? read->header : begun_.size()) - before;
  bytes.remove_prefix(used);
  column_left_ -= used;
  if (!read) return {};
  begun_.clear();
  const Page& page = read->page;
  if (page.values == 0 || page.bytes == 0 || page.bytes > column_left_ ||
      (head_.codec == Codec::kNone && page.bytes != page.decoded)) {
    return NoRowGroup("a page's size");
  }
  values_ += page.values;
  page_left_ = page.bytes;
  at_ = At::kPage;
  return taker_.TakePage(page);
}

Status RowGroupReader::AddToPage(std::string_view& bytes) {
  const std::string_view taken = bytes.substr(0, page_left_);
  bytes.remove_prefix(taken.size());
  page_left_ -= static_cast<uint32_t>(taken.size());
  column_left_ -= taken.size();
  if (const Status s = taker_.TakeBytes(taken); !s.ok()) return s;
  return page_left_ > 0 ? Status() : EndPage();
}

Status RowGroupReader::EndPage() {
  if (column_left_ > 0) {
    at_ = At::kPageHeader;
    return {};
  }
  // A row has one value; or as many as its list, and one where that is empty or missing.
  const bool fits = head_.columns[column_].list ? values_ >= head_.rows : values_ == head_.rows;
  if (!fits) return NoRowGroup("a column with another number of values");
  ++column_;
  return NextColumn();
}

bool IsRowGroup(const std::vector<std::string_view>& pieces, uint32_t rows) {
  Looker looker;
  RowGroupReader reader(looker);
  for (const std::string_view piece : pieces) {
    if (!reader.Add(piece).ok()) return false;
  }
  return reader.whole() && looker.rows() == rows;
}

}  // namespace parallelrun::parquet
