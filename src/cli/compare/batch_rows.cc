#include "cli/compare/batch_rows.h"

#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/hex.h"
#include "cli/runs/inspect_state.h"
#include "job/job_state.h"
#include "job/records.h"
#include "job/side_list.h"
#include "plan/source.h"

namespace parallelrun::cli {
namespace {

constexpr size_t kMostText = size_t{1} << 20;  // bytes of rows that are kept of one mini-batch

uint64_t Mixed(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::string_view LastName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Where in `path` a slice lies.
uint64_t SliceKey(std::string_view path, uint64_t offset, uint64_t length, uint64_t seed) {
  return Mixed(LastName(path), seed ^ Mixed({reinterpret_cast<const char*>(&offset), 8}, length));
}

// Calls `each(index, key, first file)` for the mini-batches of a chunk.
template <typename Each>
void EachBatch(const job::PlanChunkRecord& chunk, Each each) {
  const uint64_t seed = chunk.input + 1;
  const auto names_of = [](std::string_view& names, size_t count) {
    size_t end = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t nul = names.find('\0', end);
      end = nul == std::string_view::npos ? names.size() + 1 : nul + 1;
    }
    const std::string_view taken = names.substr(0, end - 1);
    names.remove_prefix(std::min(end, names.size()));
    return taken;
  };
  const auto first_of = [](std::string_view root, std::string_view names) {
    return plan::JoinPath(std::string(root), names.substr(0, names.find('\0')));
  };
  if (const auto* files = std::get_if<job::FilesChunk>(&chunk.content)) {
    std::string_view names = files->names;
    for (uint32_t i = 0; i < chunk.Batches(); ++i) {
      const std::string_view own = names_of(names, chunk.ItemsOf(i));
      each(i, Mixed(own, seed), first_of(files->root, own));
    }
  } else if (const auto* groups = std::get_if<job::FileGroupsChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < groups->groups.size(); ++i) {
      const job::FileGroup& group = groups->groups[i];
      each(i, Mixed(group.names, Mixed(group.context, seed)), first_of(groups->root, group.names));
    }
  } else if (const auto* table = std::get_if<job::TabularChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < table->slices.size(); ++i) {
      const job::Slice& slice = table->slices[i];
      each(i, SliceKey(table->path, slice.offset, slice.length, seed), std::string(table->path));
    }
  } else if (const auto* tables = std::get_if<job::TableGroupsChunk>(&chunk.content)) {
    for (uint32_t i = 0; i < tables->groups.size(); ++i) {
      uint64_t key = Mixed(tables->groups[i].context, seed);
      for (const job::TableSlice& slice : tables->groups[i].slices) {
        key = SliceKey(slice.path, slice.offset, slice.length, key);
      }
      each(i, key, std::string(tables->groups[i].slices.front().path));
    }
  } else {
    for (uint32_t i = 0; i < chunk.Batches(); ++i) {
      each(i, seed + (chunk.first + i) * 0x9E3779B97F4A7C15, std::string());
    }
  }
}

// A line for each file of such a list, without where the attempt had it.
std::string SideFilesText(std::string_view line) {
  const Result<job::SideList> list = job::ParseSideList(line);
  std::string text;
  if (!list.ok()) return text;
  for (const job::SideFile& file : list->files) {
    text += fmt::format("side file {}: {}, SHA-256 {}\n", Printable(file.name, kShown),
                        CountOf(file.bytes, "byte"), Hex(file.sha256));
  }
  return text;
}

// The rows of each attempt that has become a result, in the order of their bytes: parts first.
// `Value` takes bytes with Add.
template <typename Value>
class Results {
 public:
  // `staged`: in front of the rows stands the list of their side files.
  void See(const job::Record& record, bool staged) {
    if (const auto* part = std::get_if<job::RowsRecord>(&record)) {
      Add(parts_[{part->id, {part->fence.epoch, part->fence.number}}], part->rows, staged);
    } else if (const auto* result = std::get_if<job::ResultRecord>(&record)) {
      const auto key = std::pair{result->id, std::pair{result->fence.epoch, result->fence.number}};
      Attempt attempt = std::move(parts_[key]);
      parts_.erase(key);
      Add(attempt, result->rows, staged);
      attempt.value.rows = result->row_count;
      results_[result->id] = std::move(attempt.value);
    }
  }

  // Those of a mini-batch, or of its pieces, in their order.
  void Each(const job::JobState& state, job::BatchId id,
            const std::function<void(const Value&)>& each) const {
    if (const auto found = results_.find(id); found != results_.end()) return each(found->second);
    if (!state.known(job::FirstPiece(id))) return;
    Each(state, job::FirstPiece(id), each);
    Each(state, job::SecondPiece(id), each);
  }

 private:
  struct Attempt {
    Value value = {};
    job::SideLine side_files = {};
    bool begun = false;
  };

  static void Add(Attempt& attempt, std::string_view bytes, bool staged) {
    if (!staged) return attempt.value.Add(bytes);
    const bool listed = attempt.side_files.line().has_value();
    const bool first = !std::exchange(attempt.begun, true);
    const Result<std::string_view> rows = attempt.side_files.RowsIn(bytes, first);
    if (!rows.ok()) return;  // the job has failed for it
    if (!listed && attempt.side_files.line()) {
      attempt.value.Add(std::string_view(SideFilesText(*attempt.side_files.line())));
    }
    attempt.value.Add(*rows);
  }

  std::map<std::pair<job::BatchId, std::pair<uint32_t, uint64_t>>, Attempt> parts_;
  std::map<job::BatchId, Value> results_;
};

// A polynomial over the bytes, modulo 2^61 - 1: whoever splits a mini-batch into pieces, or its
// rows into parts, does not change that of the whole.
struct Digest {
  uint64_t value = 0;
  uint64_t power = 1;  // of the base, as often as there are bytes
  uint64_t rows = 0;

  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      value = Times(value, kBase) + static_cast<unsigned char>(c) + 1;
      value = value >= kPrime ? value - kPrime : value;
      power = Times(power, kBase);
    }
  }
  void Add(const Digest& behind) {
    value = Times(value, behind.power) + behind.value;
    value = value >= kPrime ? value - kPrime : value;
    power = Times(power, behind.power);
    rows += behind.rows;
  }

 private:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x1b87'3f5a'9d3c'2e47;
  static uint64_t Times(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    const uint64_t sum =
        static_cast<uint64_t>(product & kPrime) + static_cast<uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
  }
};

struct KeptText {
  std::string text;
  uint64_t rows = 0;
  bool cut = false;
  void Add(std::string_view bytes) {
    cut = cut || text.size() + bytes.size() > kMostText;
    text += bytes.substr(0, kMostText - std::min(text.size(), kMostText));
  }
};

}  // namespace

Result<RowsOfRun> ReadRows(const Files& files, const std::string& state_folder) {
  job::JobState state;
  Results<Digest> results;
  std::vector<std::pair<uint64_t, job::BatchId>> keys;
  const Result<uint64_t> run =
      InspectState(files, state_folder,
                   [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
                     if (const auto* chunk = std::get_if<job::PlanChunkRecord>(&record)) {
                       EachBatch(*chunk, [&](uint32_t index, uint64_t key, const std::string&) {
                         keys.emplace_back(key, chunk->first + index);
                       });
                     }
                     results.See(record, state.stages_side_files());
                     return state.Apply(record, place, rows);
                   });
  if (!run.ok()) return run.error();
  RowsOfRun all;
  for (auto [key, id] : keys) {
    while (all.contains(key)) ++key;  // the same items again, as the first of them in both runs
    BatchRows& batch = all[key];
    batch.id = id;
    Digest whole;
    bool any = false;
    results.Each(state, id, [&](const Digest& part) {
      whole.Add(part);
      any = true;
    });
    batch.digest = any ? whole.value + 1 : 0;
    batch.rows = whole.rows;
  }
  return all;
}

std::map<job::BatchId, BatchTexts> ReadTexts(const Files& files, const std::string& state_folder,
                                             const std::set<job::BatchId>& wanted) {
  job::JobState state;
  Results<KeptText> results;
  std::map<job::BatchId, BatchTexts> all;
  const auto is_wanted = [&](job::BatchId id) { return wanted.contains(job::WholeOf(id)); };
  // It was read before: what cannot be read now is left out.
  static_cast<void>(InspectState(
      files, state_folder,
      [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
        const auto* chunk = std::get_if<job::PlanChunkRecord>(&record);
        const auto next = chunk == nullptr ? wanted.end() : wanted.lower_bound(chunk->first);
        if (next != wanted.end() && *next < chunk->first + chunk->Batches()) {
          EachBatch(*chunk, [&](uint32_t index, uint64_t, std::string first) {
            const job::BatchId id = chunk->first + index;
            if (is_wanted(id)) all[id].first_item = std::move(first);
          });
        }
        const auto* part = std::get_if<job::RowsRecord>(&record);
        const auto* result = std::get_if<job::ResultRecord>(&record);
        if ((part != nullptr && is_wanted(part->id)) ||
            (result != nullptr && is_wanted(result->id))) {
          results.See(record, state.stages_side_files());
        }
        return state.Apply(record, place, rows);
      }));
  for (auto& [id, texts] : all) {
    std::string text;
    results.Each(state, id, [&, &kept = texts](const KeptText& part) {
      kept.cut = kept.cut || part.cut;
      text += part.text;
    });
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      texts.rows.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return all;
}

RunDifferences CompareRuns(const RowsOfRun& a, const RowsOfRun& b) {
  RunDifferences found;
  for (const auto& [key, of_a] : a) {
    const auto of_b = b.find(key);
    if (of_b == b.end()) {
      found.only_a.push_back(of_a);
    } else if (of_a.digest == of_b->second.digest && of_a.rows == of_b->second.rows) {
      ++found.same;
    } else {
      found.changed.emplace_back(of_a, of_b->second);
    }
  }
  for (const auto& [key, of_b] : b) {
    if (!a.contains(key)) found.only_b.push_back(of_b);
  }
  const auto by_id = [](const BatchRows& x, const BatchRows& y) { return x.id < y.id; };
  std::sort(found.changed.begin(), found.changed.end(),
            [&](const auto& x, const auto& y) { return by_id(x.first, y.first); });
  std::sort(found.only_a.begin(), found.only_a.end(), by_id);
  std::sort(found.only_b.begin(), found.only_b.end(), by_id);
  return found;
}

RowChanges CompareRows(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  RowChanges changes;
  const size_t both = std::min(a.size(), b.size());
  changes.removed = a.size() - both;
  changes.added = b.size() - both;
  bool first = true;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < both && a[i] == b[i]) continue;
    if (i < both) ++changes.changed;
    if (!std::exchange(first, false)) continue;
    changes.first_a = i < a.size() ? a[i] : "";
    changes.first_b = i < b.size() ? b[i] : "";
  }
  return changes;
}

}  // namespace parallelrun::cli
