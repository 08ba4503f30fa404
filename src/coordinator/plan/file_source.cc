#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "coordinator/plan/partition_format.h"
#include "coordinator/plan/source.h"

namespace parallelrun {
namespace {

using Chunk = Result<std::optional<std::string>>;

// Mini-batches of so many files, in the order of the listing.
class FileSource : public PlanSource {
 public:
  FileSource(const PlanInput& input, const PlanDisk& disk) : input_(input), disk_(disk) {}

  Chunk Next(PlanCursor& at) override {
    if (!listing_) {
      auto context = PathContext::Make(input_.partition_format, {});
      if (!context.ok()) return context.error().With(PlaceOf(input_));
      context_ = std::move(*context);
      listing_ = std::make_unique<Listing>(disk_.files, ListingOf(input_, disk_), at.last_name);
    }
    const uint64_t per_batch =
        std::clamp<uint64_t>(input_.batch_size, 1, std::numeric_limits<uint32_t>::max());
    const uint64_t wanted = std::max(per_batch, FilesWanted(at) / per_batch * per_batch);
    Found found;
    while (found.stamps.size() < wanted) {
      const auto more = AddFile(found);
      if (!more.ok()) return more.error();
      if (!*more) break;
    }
    if (found.stamps.empty()) return Chunk(std::nullopt);
    at.last_name = found.last_name;
    if (!input_.partition_format.empty()) {
      return EncodeChunk(Groups(found, per_batch), at);
    }
    return EncodeChunk(FilesChunk{static_cast<uint32_t>(per_batch), listing_->folder(), found.names,
                                  std::move(found.stamps)},
                       at);
  }

 private:
  struct Found {
    std::string names;
    std::vector<size_t> name_ends;
    std::vector<FileStamp> stamps;
    std::vector<std::string> contexts;  // one a file, with a partition format
    std::string last_name;
    size_t context_bytes = 0;
  };

  // False at the end of the listing.
  Result<bool> AddFile(Found& found) {
    const auto next = listing_->Next();
    if (!next.ok()) return next.error();
    if (!*next) return false;
    std::string name(**next);
    const auto stamp = listing_->Stamp(name);
    if (!stamp.ok()) return stamp.error();
    if (!*stamp) return true;  // removed since it was listed
    if (!input_.partition_format.empty()) {
      auto context = context_.Of(name);
      if (!context.ok()) return context.error().With(PlaceOf(input_));
      const bool other = found.contexts.empty() || found.contexts.back() != *context;
      if (other) found.context_bytes += context->size();
      found.contexts.push_back(std::move(*context));
    }
    if (!found.stamps.empty()) found.names += '\0';
    found.names += name;
    found.name_ends.push_back(found.names.size());
    found.stamps.push_back(**stamp);
    found.last_name = std::move(name);
    const size_t bytes =
        found.names.size() + found.context_bytes + found.stamps.size() * sizeof(FileStamp);
    if (bytes <= kMostChunkBytes) return true;
    return Error{Code::kInvalid,
                 fmt::format("{}: a mini-batch of {} files is too large, the names of {} take "
                             "48 MiB; lower miniBatchSize",
                             PlaceOf(input_), input_.batch_size, found.stamps.size())};
  }

  // A mini-batch has a context when all of its files have the same.
  FileGroupsChunk Groups(const Found& found, size_t per_batch) const {
    FileGroupsChunk chunk;
    chunk.root = listing_->folder();
    const std::string_view names = found.names;
    for (size_t begin = 0; begin < found.stamps.size(); begin += per_batch) {
      const size_t end = std::min(begin + per_batch, found.stamps.size());
      const auto at = [&](const auto& all, size_t i) {
        return all.begin() + static_cast<std::ptrdiff_t>(i);
      };
      const bool same = std::all_of(at(found.contexts, begin), at(found.contexts, end),
                                    [&](const auto& c) { return c == found.contexts[begin]; });
      const size_t names_begin = begin == 0 ? 0 : found.name_ends[begin - 1] + 1;
      chunk.groups.push_back(
          {same ? std::string_view(found.contexts[begin]) : std::string_view(),
           names.substr(names_begin, found.name_ends[end - 1] - names_begin),
           std::vector<FileStamp>(at(found.stamps, begin), at(found.stamps, end))});
    }
    return chunk;
  }

  const PlanInput& input_;
  const PlanDisk& disk_;
  PathContext context_;
  std::unique_ptr<Listing> listing_;
};

}  // namespace

std::unique_ptr<PlanSource> MakeFileSource(const PlanInput& input, const PlanDisk& disk) {
  return std::make_unique<FileSource>(input, disk);
}

}  // namespace parallelrun
