#include "output/output_index.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/escape.h"
#include "base/hex.h"

namespace parallelrun::output {
namespace {

constexpr std::string_view kIndexHead = "{\"parallelrunIndex\":1,";

std::string FactsOf(const job::SideFile& file) {
  return fmt::format(R"("name":{},"bytes":{},"sha256":"{}")", JsonText(file.name), file.bytes,
                     Hex(file.sha256));
}

}  // namespace

std::string SideFileLine(const job::SideFile& file, job::BatchId id) {
  return fmt::format("{{{},\"miniBatch\":{}}}\n", FactsOf(file), id);
}

std::string IndexNameOf(const std::string& output) { return output + ".index.jsonl"; }

bool OutputIndex::IsIndex(std::string_view begin) { return begin.starts_with(kIndexHead); }

Status OutputIndex::Begin(const std::string& output, const std::string& trial) {
  const std::string of = trial.empty() ? "" : ",\"trial\":" + JsonText(trial);
  return put_(fmt::format("{}\"output\":{}{}}}\n", kIndexHead, JsonText(output), of));
}

void OutputIndex::BeginMiniBatch(job::BatchId id) {
  id_ = id;
  begin_ = offset_;
  inside_ = true;
  row_group_.reset();
}

void OutputIndex::Add(std::string_view bytes) {
  offset_ += bytes.size();
  if (inside_ && kind_ == Rows::kApart) digest_.Add(bytes);
}

void OutputIndex::AddRows(std::string_view bytes) {
  if (kind_ == Rows::kInRowGroups) digest_.Add(bytes);
}

void OutputIndex::InRowGroup(uint64_t row_group) {
  if (!row_group_) row_group_ = row_group;
}

std::string OutputIndex::PlaceOf(uint64_t rows) const {
  const std::string counted = fmt::format(R"("firstRow":{},"rows":{})", rows_, rows);
  if (kind_ == Rows::kApart) {
    return fmt::format(R"("offset":{},"bytes":{},{})", begin_, offset_ - begin_, counted);
  }
  return row_group_ ? fmt::format(R"("rowGroup":{},{})", *row_group_, counted) : counted;
}

Status OutputIndex::EndMiniBatch(uint64_t rows, uint32_t count,
                                 const std::vector<plan::PlannedItem>& planned,
                                 const std::vector<job::SideFile>& files) {
  inside_ = false;
  ++batches_;
  std::string paths;
  for (const plan::PlannedItem& item : planned) {
    if (!item.path.empty()) paths += (paths.empty() ? "" : ",") + JsonText(item.path);
  }
  std::string listed;
  for (const job::SideFile& file : files) {
    listed += (listed.empty() ? "{" : ",{") + FactsOf(file) + "}";
  }
  if (!files.empty()) listed = R"(,"files":[)" + listed + "]";
  const uint64_t first = planned.empty() ? 0 : planned.front().first_item;
  const std::string place = PlaceOf(rows);
  rows_ += rows;
  return put_(
      fmt::format(R"({{"miniBatch":{},{},"sha256":"{}","firstItem":{},"items":{},"paths":[{}]{}}})"
                  "\n",
                  id_, place, Hex(digest_.Finish()), first, count, paths, listed));
}

Status OutputIndex::End(const job::Published& output) {
  return put_(fmt::format(R"({{"miniBatches":{},"bytes":{},"rows":{},"sha256":"{}"}})"
                          "\n",
                          batches_, output.bytes, output.rows, Hex(output.sha256)));
}

}  // namespace parallelrun::output
