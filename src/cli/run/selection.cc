#include "cli/run/selection.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "api/text.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "base/files.h"
#include "plan/input_store.h"
#include "plan/listing.h"
#include "plan/source.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFilesChosen = 100'000;  // they stand in the coordinator's configuration
constexpr size_t kMostMissing = 5;            // of them a message names

// Calls `each` for every name of every input: the input's, the file's and where that is.
Status EachName(const LocalJob& job,
                const std::function<void(const plan::PlanInput&, std::string_view,
                                         const store::Store&)>& each) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const plan::OpenStore open = plan::InputStores(*files, job.layout.forbidden, job.layout.stores);
  for (const plan::PlanInput& input : job.layout.inputs) {
    if (input.kind == plan::PlanKind::kRanks) continue;
    const std::unique_ptr<store::Store> store = open(input);
    plan::Listing listing(input, *store);
    while (true) {
      const auto next = listing.Next();
      if (!next.ok()) return next.error();
      if (!*next) break;
      each(input, (*next)->name, *store);
    }
  }
  return {};
}

api::Selection Of(std::map<std::string, std::vector<uint64_t>> files) {
  for (auto& [input, digests] : files) std::sort(digests.begin(), digests.end());
  api::Selection selection;
  selection.files = std::move(files);
  return selection;
}

Result<Chosen> Sample(uint64_t wanted, const LocalJob& job) {
  struct File {
    uint64_t rank;
    std::string input;
    uint64_t digest;
    bool operator<(const File& other) const {
      return std::tie(rank, input, digest) < std::tie(other.rank, other.input, other.digest);
    }
  };
  std::set<File> lowest;
  uint64_t all = 0;
  const Status listed =
      EachName(job, [&](const plan::PlanInput& input, std::string_view name, const store::Store&) {
        ++all;
        const uint64_t rank = SampleRank(input.name, name);
        if (lowest.size() == wanted && rank >= lowest.rbegin()->rank) return;
        lowest.insert({rank, input.name, api::FileDigest(name)});
        if (lowest.size() > wanted) lowest.erase(std::prev(lowest.end()));
      });
  if (!listed.ok()) return listed.error();
  if (lowest.empty()) return Chosen{};  // what that means is said of the inputs as they are
  std::map<std::string, std::vector<uint64_t>> files;
  for (const File& file : lowest) files[file.input].push_back(file.digest);
  return Chosen{Of(std::move(files)), fmt::format("--sample: {} of {} taken", lowest.size(),
                                                  CountOf(all, "file", "is", "are"))};
}

// What a person may call a file: its path, its name below the input's root, or the end of that.
// What is said most exactly counts, and more of it must stand for one file.
class NamedFiles {
 public:
  explicit NamedFiles(const std::vector<std::string>& words) : words_(words), found_(words.size()) {
    for (size_t i = 0; i < words.size(); ++i) {
      std::string absolute = Absolute(fs::current_path(), words[i]);
      by_text_.emplace(words[i], i);
      if (absolute != words[i]) by_text_.emplace(std::move(absolute), i);
    }
  }

  void Look(const plan::PlanInput& input, std::string_view name, const store::Store& store) {
    const File file{input.name, api::FileDigest(name)};
    Hit(store.Location(name), kPath, file);
    Hit(name, kName, file);
    for (size_t slash = name.find('/'); slash != std::string_view::npos;
         slash = name.find('/', slash + 1)) {
      Hit(name.substr(slash + 1), kEnd, file);
    }
  }

  // kInvalid: a word stands for several files.
  Status CheckOnce() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if (found_[i].files.size() < 2) continue;
      return Error{
          Code::kInvalid,
          fmt::format("--only {}: {} files are called so; write the path of the one that is meant",
                      Printable(words_[i], 1000), found_[i].files.size())};
    }
    return {};
  }

  std::vector<std::string> Missing() const {
    std::vector<std::string> missing;
    for (size_t i = 0; i < words_.size(); ++i) {
      if (found_[i].files.empty()) missing.push_back(words_[i]);
    }
    return missing;
  }

  std::map<std::string, std::vector<uint64_t>> Files() const {
    std::set<File> files;
    for (const Found& found : found_) files.insert(found.files.begin(), found.files.end());
    std::map<std::string, std::vector<uint64_t>> by_input;
    for (const auto& [input, digest] : files) by_input[input].push_back(digest);
    return by_input;
  }

 private:
  enum How { kPath, kName, kEnd };
  using File = std::pair<std::string, uint64_t>;  // its input, its digest
  struct Found {
    How how = kEnd;
    std::set<File> files;
  };

  void Hit(std::string_view text, How how, const File& file) {
    const auto [begin, end] = by_text_.equal_range(text);
    for (auto it = begin; it != end; ++it) {
      Found& found = found_[it->second];
      if (how > found.how) continue;
      if (how < found.how) found.files.clear();
      found.how = how;
      found.files.insert(file);
    }
  }

  const std::vector<std::string>& words_;
  std::vector<Found> found_;
  std::multimap<std::string, size_t, std::less<>> by_text_;
};

// The names that are most like one that is not there.
class Near {
 public:
  explicit Near(const std::string& word) : word_(api::Squashed(plan::LastPart(word))) {}

  void Look(std::string_view name) {
    const std::string other = api::Squashed(plan::LastPart(name));
    const size_t most = word_.size() / 4 + 1;
    const bool begins = !word_.empty() && other.starts_with(word_);  // as without its suffix
    const size_t longer = std::max(word_.size(), other.size());
    const bool alike = longer - std::min(word_.size(), other.size()) <= most;
    if (longer > kMostBytes || !(begins || alike)) return;
    const size_t distance = begins ? 1 : api::EditDistance(word_, other);
    if (distance > most) return;
    closest_.emplace(distance, name);
    if (closest_.size() > kMostNear) closest_.erase(std::prev(closest_.end()));
  }

  // " (did you mean a.png or b.png?)", or "".
  std::string Question() const {
    std::vector<std::string> names;
    for (const auto& [distance, name] : closest_) names.push_back(Printable(name, 300));
    return names.empty() ? "" : fmt::format(" (did you mean {}?)", api::OrList(names));
  }

 private:
  static constexpr size_t kMostNear = 3;
  static constexpr size_t kMostBytes = 200;  // of a name that is compared

  const std::string word_;
  std::multimap<size_t, std::string> closest_;  // by distance
};

// Lists the inputs once more: nothing will be run.
Error NotThere(std::vector<std::string> missing, const LocalJob& job) {
  const std::string more = missing.size() > kMostMissing
                               ? fmt::format(" and {} more", missing.size() - kMostMissing)
                               : "";
  missing.resize(std::min(missing.size(), kMostMissing));
  std::vector<Near> near(missing.begin(), missing.end());
  const Status listed =
      EachName(job, [&](const plan::PlanInput&, std::string_view name, const store::Store&) {
        for (Near& one : near) one.Look(name);
      });
  if (!listed.ok()) return listed.error();
  std::vector<std::string> texts;
  for (size_t i = 0; i < missing.size(); ++i) {
    texts.push_back(Printable(missing[i], 1000) + near[i].Question());
  }
  return {Code::kInvalid,
          fmt::format("--only: no input has {}{}; write the path of a file, or its name below "
                      "the input's folder",
                      fmt::join(texts, ", "), more)};
}

Result<Chosen> Only(const std::vector<std::string>& words, const LocalJob& job) {
  NamedFiles named(words);
  const Status listed =
      EachName(job, [&](const plan::PlanInput& input, std::string_view name,
                        const store::Store& store) { named.Look(input, name, store); });
  if (!listed.ok()) return listed.error();
  if (Status once = named.CheckOnce(); !once.ok()) return once.error();
  if (std::vector<std::string> missing = named.Missing(); !missing.empty()) {
    return NotThere(std::move(missing), job);
  }
  Chosen chosen{Of(named.Files()), ""};
  size_t count = 0;
  for (const auto& [input, digests] : *chosen.selection.files) count += digests.size();
  chosen.note = fmt::format("--only: {} file{} taken", count, count == 1 ? " is" : "s are");
  return chosen;
}

Status CheckWords(const SelectWords& words, const LocalJob& job) {
  const bool files = words.sample || !words.only.empty();
  const char* const flag = words.sample ? "--sample" : "--only";
  if (files && !job.job.spec.partition_keys.empty()) {
    return Error{Code::kInvalid,
                 fmt::format("{} does not go with partitionKeys, whose groups it would tear apart: "
                             "use --limit, which takes whole groups",
                             flag)};
  }
  if (files && job.job.spec.rank_mini_batch_count > 0) {
    return Error{Code::kInvalid, fmt::format("{} chooses among the files of the inputs, and this "
                                             "job has none: use --limit",
                                             flag)};
  }
  for (const plan::PlanInput& input : job.layout.inputs) {
    if (!files || input.kind != plan::PlanKind::kDelimited ||
        input.tabular.header != api::HeaderMode::kFirstFile) {
      continue;
    }
    return Error{
        Code::kInvalid,
        fmt::format("{} could leave out the first file, whose header stands for all tables "
                    "of {}: use --limit",
                    flag, plan::PlaceOf(input))};
  }
  const uint64_t wanted = words.sample.value_or(words.only.size());
  if (wanted > kMostFilesChosen) {
    return Error{Code::kInvalid,
                 fmt::format("{}: at most {} files can be chosen; use --limit, or a pattern of the "
                             "input",
                             flag, kMostFilesChosen)};
  }
  return {};
}

}  // namespace

uint64_t SampleRank(std::string_view input, std::string_view name) {
  const uint64_t seed = XXH3_64bits(input.data(), input.size());
  return XXH3_64bits_withSeed(name.data(), name.size(), seed);
}

Result<Chosen> ChooseItems(const SelectWords& words, const LocalJob& job) {
  if (const Status usable = CheckWords(words, job); !usable.ok()) return usable.error();
  if (words.sample) return Sample(*words.sample, job);
  if (!words.only.empty()) return Only(words.only, job);
  if (!words.limit) return Chosen();
  return Chosen{
      {words.limit, {}},
      fmt::format("--limit: the first {} taken", CountOf(*words.limit, "item", "is", "are"))};
}

}  // namespace parallelrun::cli
