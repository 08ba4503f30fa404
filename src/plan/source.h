// A source plans one input; the Planner goes through the inputs. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "job/record_codec.h"
#include "job/records.h"
#include "plan/left_out.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

class PlanSource {
 public:
  virtual ~PlanSource() = default;

  // The next chunk, as an encoded record, or nullopt at the end of the input. Moves `at` behind it;
  // the first call goes on from where `at` is. Errors are those of Planner::Next.
  virtual Result<std::optional<std::string>> Next(PlanCursor& at) = 0;
  // Of its listing, so far.
  virtual LeftOut left_out() const { return {}; }
};

// `input` and the store that it lies in must outlive the source.
using MakePlanSource = std::unique_ptr<PlanSource>(const PlanInput& input, store::Store& store);
MakePlanSource MakeRowSource;    // delimited, Parquet and JSON lines without partition keys
MakePlanSource MakeGroupSource;  // with partition keys

// A record must fit a group of the ledger, and its Work a frame of the worker protocol: 64 MiB.
constexpr uint64_t kMostChunkBytes = 48 * 1024 * 1024;

// kFiles without partition keys.
std::unique_ptr<PlanSource> MakeFileSource(const PlanInput& input, store::Store& store,
                                           uint64_t most_bytes = kMostChunkBytes);

constexpr uint64_t kMostFiles = 4096;
constexpr uint64_t kMostSlices = 256;
constexpr uint64_t kMostSliceBytes = 64 * 1024 * 1024;

// A chunk is about as large as all before it together, so that the first ones come at once, and
// bounded. Counted from the start of the job, so that a restart cuts the same chunks.
uint64_t FilesWanted(const PlanCursor& at);
uint64_t SlicesWanted(const PlanCursor& at);

// Encodes the chunk of `input` at `at`, and moves `at` behind it.
template <typename Content>
std::optional<std::string> EncodeChunk(const PlanInput& input, Content content, PlanCursor& at) {
  job::PlanChunkRecord chunk{at.next_batch, at.next_item, at.input, std::move(content),
                             input.store};
  at.next_batch += chunk.Batches();
  at.next_item += chunk.Items();
  std::string record;
  job::EncodeRecord(std::move(chunk), record);
  return record;
}

// As chunks hold the versions of their files.
std::vector<std::string_view> ViewsOf(const std::vector<store::Version>& versions);

// "inputs[NAME]", for messages.
std::string PlaceOf(const PlanInput& input);
DataNames DataNamesOf(PlanKind kind);
std::string_view LastPart(std::string_view path);      // behind its last slash
std::string_view WithoutSlash(std::string_view path);  // at its end; "/" stays
std::string JoinPath(const std::string& folder, std::string_view name);

}  // namespace parallelrun::plan
