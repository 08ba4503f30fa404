#include "cli/run/dry_run.h"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string_view>
#include <vector>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/files.h"
#include "cli/run/preflight.h"
#include "job/record_codec.h"
#include "job/records.h"
#include "plan/chunk_files.h"
#include "plan/input_store.h"
#include "plan/planner.h"

namespace parallelrun::cli {
namespace {

// Adds the files of each chunk, once.
class Sizes {
 public:
  Sizes(const std::vector<plan::PlanInput>& inputs, const plan::OpenStore& open)
      : inputs_(inputs), open_(open) {}

  Status Add(const job::PlanChunkRecord& chunk, PlanSize& size) {
    Status status;
    plan::EachPlannedFile(chunk, [&](std::string_view path, std::string_view) {
      if (!status.ok() || path == last_) return;
      last_ = path;
      ++size.files;
      status = AddBytes(chunk.input, path, size);
    });
    return status;
  }

 private:
  Status AddBytes(uint32_t input, std::string_view path, PlanSize& size) {
    if (!store_ || input != input_) store_ = open_(inputs_[input]);
    input_ = input;
    const auto found = store_->Stat(std::string(plan::NameOf(path, inputs_[input])));
    if (!found.ok()) return found.error();
    if (*found) size.bytes += (*found)->size;
    return {};
  }

  const std::vector<plan::PlanInput>& inputs_;
  const plan::OpenStore& open_;
  std::unique_ptr<store::Store> store_;  // of the input at hand
  uint32_t input_ = 0;
  std::string last_;  // several chunks and slices may be of one file
};

}  // namespace

Result<PlanSize> MeasurePlan(const LocalJob& job, const api::Selection& selection) {
  std::vector<plan::PlanInput> inputs = job.layout.inputs;
  plan::TakeOnly(selection, inputs);
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const plan::OpenStore open = plan::InputStores(*files, job.layout.forbidden, job.layout.stores);
  plan::Planner planner(inputs, open, {});
  Sizes sizes(inputs, open);
  PlanSize size;
  while (true) {
    const auto encoded = planner.Next();
    if (!encoded.ok()) return encoded.error();
    if (!*encoded) break;
    std::string_view bytes = **encoded;
    const Result<job::DecodedRecord> record = job::DecodeRecord(bytes);
    if (!record.ok()) return record.error();
    const auto* chunk = std::get_if<job::PlanChunkRecord>(&record->record);
    if (chunk == nullptr) continue;  // the types of an input's columns
    if (const Status added = sizes.Add(*chunk, size); !added.ok()) return added.error();
  }
  size.items = planner.items();
  size.batches = planner.batches();
  return size;
}

std::string DryRunText(const LocalJob& job, const PlanSize& plan) {
  std::string text = "a run would take:\n";
  if (plan.files > 0)
    text += fmt::format("  files         {}, {}\n", plan.files, Bytes(plan.bytes));
  text += fmt::format("  items         {}\n  mini-batches  {}\n", plan.items, plan.batches);
  text += fmt::format("  processes     {} ({} x {}, {})\n", job.nodes * job.processes,
                      CountOf(job.nodes, "node"), job.processes, job.processes_source);
  const bool stored = !job.layout.output_store.empty();
  const std::string& output = stored ? job.layout.published_path : job.layout.output_path;
  text += fmt::format("  output        {}\n  logs          {}\n",
                      Printable(output.empty() ? job.layout.output_folder : output, 4096),
                      Printable(job.layout.log_folder, 4096));
  return text + "nothing was started, and nothing was written";
}

}  // namespace parallelrun::cli
