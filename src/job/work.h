// Work: what one run() gets, as bytes (docs/worker-protocol.md, "Work"). Made from a plan chunk by
// the coordinator, read by the worker process. Pure; a maker is used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/may_lose.h"
#include "job/record_codec.h"
#include "job/records.h"

namespace parallelrun::job {

// Makes the Work of the mini-batches of one chunk. Holds its own copy of the encoded record.
class WorkMaker {
 public:
  // `encoded` is one plan chunk record as EncodeRecord wrote it; kCorrupt otherwise.
  static Result<WorkMaker> FromRecord(std::string encoded);

  const PlanChunkRecord& chunk() const { return chunk_; }
  // Of the `index`-th mini-batch, in the whole input.
  uint64_t FirstItem(uint32_t index) const { return chunk_.first_item + item_starts_[index]; }
  // Of the `file`-th file of a chunk of files.
  std::string_view FileName(size_t file) const;
  // Of a table: the format of each Work has these members too; JSON without braces.
  void AddToFormat(std::string members) { format_members_ = std::move(members); }
  // The same for a member `pathValues`, with what `of` makes of the path of each slice, as JSON.
  using OfPath = std::function<std::string(std::string_view path)>;
  void AddPathValues(OfPath of) { path_values_ = std::move(of); }
  // Files of a store: Work names them by their URLs, as files that nothing is known of.
  void GiveUrls() { urls_ = true; }
  // The Work of the `index`-th mini-batch (below chunk().Batches()), with 0 failed attempts.
  // O(its own size).
  std::string Make(uint32_t index) const;
  // The same of `items` of its items, from `first` on: a piece, named `id`.
  std::string MakePiece(uint32_t index, BatchId id, uint32_t first, uint32_t items) const;

 private:
  WorkMaker() = default;
  struct Range {
    uint32_t first = 0;
    uint32_t items = 0;
    bool whole = true;
  };
  std::string Members(uint32_t index, const Range& range) const;
  std::string Encode(uint32_t index, BatchId id, const Range& range) const;
  std::unique_ptr<std::string> encoded_;  // stable address: chunk_ points into it
  PlanChunkRecord chunk_;
  std::unique_ptr<MayLose> may_lose_;  // chunk_ points into it too
  std::string format_members_;
  OfPath path_values_;
  bool urls_ = false;
  std::vector<uint32_t> name_starts_;  // files: where each name begins in chunk_'s names
  std::vector<uint64_t> item_starts_;  // items of the chunk before each mini-batch
};

// Sets the number of failed attempts in encoded Work.
void SetWorkAttempts(std::string& work, uint16_t failed_attempts);

// XXH3-64 of Work with 0 failed attempts: the same mini-batch has the same digest in every epoch.
uint64_t WorkDigest(const std::string& work);

}  // namespace parallelrun::job
