#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "plan/listing.h"
#include "plan/partition_format.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

using Chunk = Result<std::optional<std::string>>;

// Mini-batches of so many files, in the order of the listing.
class FileSource : public PlanSource {
 public:
  FileSource(const PlanInput& input, store::Store& store, uint64_t most_bytes)
      : input_(input), store_(store), most_bytes_(most_bytes) {}

  Chunk Next(PlanCursor& at) override {
    if (!listing_) {
      auto context = PathContext::Make(input_.partition_format, {});
      if (!context.ok()) return context.error().With(PlaceOf(input_));
      context_ = std::move(*context);
      listing_ = std::make_unique<Listing>(input_, store_, at.last_name);
    }
    const uint64_t per_batch =
        std::clamp<uint64_t>(input_.batch_size, 1, std::numeric_limits<uint32_t>::max());
    const uint64_t wanted = std::min(std::max(per_batch, FilesWanted(at) / per_batch * per_batch),
                                     input_.most_items - at.next_item);
    Files found;
    while (found.versions.size() < wanted) {
      // What a manifest says may be much more than names are.
      if (found.versions.size() % per_batch == 0 && found.bytes() > most_bytes_ / 2) break;
      const auto more = AddFile(found);
      if (!more.ok()) return more.error();
      if (!*more) break;
    }
    if (found.versions.empty()) return Chunk(std::nullopt);
    at.last_name = found.last_name;
    const std::string root = store_.Location("");
    if (!input_.partition_format.empty()) {
      return EncodeChunk(input_, Groups(root, found, per_batch), at);
    }
    const std::vector<std::string_view> metadata(found.metadata.begin(), found.metadata.end());
    return EncodeChunk(input_,
                       job::FilesChunk{static_cast<uint32_t>(per_batch), root, found.names,
                                       ViewsOf(found.versions), metadata},
                       at);
  }

  LeftOut left_out() const override { return listing_ ? listing_->left_out() : LeftOut(); }

 private:
  struct Files {  // of a chunk
    std::string names;
    std::vector<size_t> name_ends;
    std::vector<store::Version> versions;
    std::vector<std::string> contexts;  // one a file, with a partition format
    std::vector<std::string> metadata;  // one a file, of a manifest that has some
    std::string last_name;
    size_t context_bytes = 0;
    size_t version_bytes = 0;
    size_t metadata_bytes = 0;

    size_t bytes() const { return names.size() + context_bytes + version_bytes + metadata_bytes; }
  };

  // False at the end of the listing.
  Result<bool> AddFile(Files& found) {
    auto next = listing_->Next();
    if (!next.ok()) return next.error();
    if (!*next) return false;
    std::string name((*next)->name);
    std::string metadata((*next)->metadata);
    std::optional<store::Found> file = std::move((*next)->found);
    if (!file) {
      auto looked = Look(input_, store_, name);
      if (!looked.ok()) return looked.error();
      if (!*looked) return true;  // removed since it was listed
      file = std::move(**looked);
    }
    if (!input_.partition_format.empty()) {
      auto context = context_.Of(name);
      if (!context.ok()) return context.error().With(PlaceOf(input_));
      const bool other = found.contexts.empty() || found.contexts.back() != *context;
      if (other) found.context_bytes += context->size();
      found.contexts.push_back(std::move(*context));
    }
    if (!found.versions.empty()) found.names += '\0';
    found.names += name;
    found.name_ends.push_back(found.names.size());
    found.version_bytes += file->version.bytes().size();
    found.versions.push_back(std::move(file->version));
    found.last_name = std::move(name);
    if (!metadata.empty()) {
      found.metadata_bytes += metadata.size();
      found.metadata.push_back(std::move(metadata));
    }
    if (found.bytes() <= most_bytes_) return true;
    return Error{Code::kInvalid,
                 fmt::format("{}: a mini-batch of {} files is too large, {} of {} take {} MiB; "
                             "lower miniBatchSize",
                             PlaceOf(input_), input_.batch_size,
                             found.metadata.empty() ? "the names" : "names and metadata",
                             found.versions.size(), most_bytes_ >> 20)};
  }

  // A mini-batch has a context when all of its files have the same.
  job::FileGroupsChunk Groups(const std::string& root, const Files& found, size_t per_batch) const {
    job::FileGroupsChunk chunk;
    chunk.root = root;
    const std::vector<std::string_view> versions = ViewsOf(found.versions);
    const std::string_view names = found.names;
    for (size_t begin = 0; begin < versions.size(); begin += per_batch) {
      const size_t end = std::min(begin + per_batch, versions.size());
      const auto at = [&](const auto& all, size_t i) {
        return all.begin() + static_cast<std::ptrdiff_t>(i);
      };
      const bool same = std::all_of(at(found.contexts, begin), at(found.contexts, end),
                                    [&](const auto& c) { return c == found.contexts[begin]; });
      const size_t names_begin = begin == 0 ? 0 : found.name_ends[begin - 1] + 1;
      chunk.groups.push_back(
          {same ? std::string_view(found.contexts[begin]) : std::string_view(),
           names.substr(names_begin, found.name_ends[end - 1] - names_begin),
           std::vector<std::string_view>(at(versions, begin), at(versions, end))});
    }
    return chunk;
  }

  const PlanInput& input_;
  store::Store& store_;
  const uint64_t most_bytes_;
  PathContext context_;
  std::unique_ptr<Listing> listing_;
};

}  // namespace

std::unique_ptr<PlanSource> MakeFileSource(const PlanInput& input, store::Store& store,
                                           uint64_t most_bytes) {
  return std::make_unique<FileSource>(input, store, most_bytes);
}

}  // namespace parallelrun::plan
