// The index of an output (docs/formats.md): a line of JSON for each mini-batch that has succeeded,
// with where its rows stand in the output. Pure; one object makes the index of one output.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/job_state.h"
#include "job/side_list.h"
#include "output/output_file.h"
#include "plan/plan_store.h"

namespace parallelrun::output {

class OutputIndex {
 public:
  // Takes the next bytes of the index; they need not outlive the call.
  using Put = std::function<Status(std::string_view bytes)>;

  // kApart: the rows of a mini-batch stand in the output in one piece, as bytes that Add is told.
  // kInRowGroups: several share a row group, of which AddRows and InRowGroup are told.
  enum class Rows : uint8_t { kApart, kInRowGroups };

  OutputIndex(Put put, Rows rows) : put_(std::move(put)), kind_(rows) {}

  // `output` is the name of the file that this is the index of. `trial` says what of the inputs its
  // job took (api::TrialOf); "": all.
  Status Begin(const std::string& output, const std::string& trial);
  // What follows are the bytes of that mini-batch, up to EndMiniBatch.
  void BeginMiniBatch(job::BatchId id);
  // The next bytes of the output, whoever's they are.
  void Add(std::string_view bytes);
  // The next rows of the mini-batch, as its worker made them.
  void AddRows(std::string_view bytes);
  // Where its next rows are; the first that is told counts.
  void InRowGroup(uint64_t row_group);
  // `items` are those of the mini-batch: `count` of them, as `planned` names them. `files`: what it
  // has written beside its rows, where that is published with them.
  Status EndMiniBatch(uint64_t rows, uint32_t count, const std::vector<plan::PlannedItem>& planned,
                      const std::vector<job::SideFile>& files = {});
  Status End(const job::Published& output);

  uint64_t rows() const { return rows_; }  // of all mini-batches so far

  // Whether a file that begins so is the index of an output, and not somebody's.
  static bool IsIndex(std::string_view begin);

 private:
  std::string PlaceOf(uint64_t rows) const;

  const Put put_;
  const Rows kind_;
  job::BatchId id_ = 0;
  bool inside_ = false;  // of a mini-batch
  uint64_t offset_ = 0;  // of the next byte
  uint64_t begin_ = 0;   // of the mini-batch
  std::optional<uint64_t> row_group_;
  uint64_t batches_ = 0;
  uint64_t rows_ = 0;
  Sha256 digest_;
};

// A line of the list of side files, where that is the output: what one is, and whose.
std::string SideFileLine(const job::SideFile& file, job::BatchId id);

// The name of an output's index, beside it.
std::string IndexNameOf(const std::string& output);

}  // namespace parallelrun::output
