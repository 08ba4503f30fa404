#include "cli/compare/compare_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/count_of.h"
#include "base/escape.h"
#include "cli/compare/batch_rows.h"
#include "cli/run/local_run.h"
#include "cli/runs/run_record.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostNamed = 20;  // mini-batches, each with its first difference
constexpr size_t kShownRow = 200;

struct Named {
  BatchRows a;
  BatchRows b;
  std::string item;
  RowChanges changes;
  bool cut = false;
};

// The first of those that differ, with their rows.
std::vector<Named> NameChanged(const Files& files, const std::string& folder_a,
                               const std::string& folder_b, const RunDifferences& found) {
  std::set<job::BatchId> ids_a;
  std::set<job::BatchId> ids_b;
  const size_t count = std::min(found.changed.size(), kMostNamed);
  for (size_t i = 0; i < count; ++i) {
    ids_a.insert(found.changed[i].first.id);
    ids_b.insert(found.changed[i].second.id);
  }
  std::map<job::BatchId, BatchTexts> texts_a = ReadTexts(files, folder_a, ids_a);
  std::map<job::BatchId, BatchTexts> texts_b = ReadTexts(files, folder_b, ids_b);
  std::vector<Named> named;
  for (size_t i = 0; i < count; ++i) {
    const auto& [a, b] = found.changed[i];
    const BatchTexts& of_a = texts_a[a.id];
    const BatchTexts& of_b = texts_b[b.id];
    named.push_back(
        {a, b, of_a.first_item, CompareRows(of_a.rows, of_b.rows), of_a.cut || of_b.cut});
  }
  return named;
}

std::string WhatChanged(const Named& named) {
  if (named.a.digest == 0) return fmt::format("failed in A, {} in B", CountOf(named.b.rows, "row"));
  if (named.b.digest == 0) return fmt::format("{} in A, failed in B", CountOf(named.a.rows, "row"));
  const RowChanges& changes = named.changes;
  if (named.cut)
    return fmt::format("differs; {} in A, {} in B", CountOf(named.a.rows, "row"), named.b.rows);
  std::string text = CountOf(changes.changed, "row") + " changed";
  if (changes.added > 0) text += fmt::format(", {} added", changes.added);
  if (changes.removed > 0) text += fmt::format(", {} removed", changes.removed);
  return text;
}

std::string Text(const RunDifferences& found, const std::vector<Named>& named) {
  std::string text =
      fmt::format("mini-batches: {} the same, {} changed, {} only in A, {} only in B\n", found.same,
                  found.changed.size(), found.only_a.size(), found.only_b.size());
  for (const Named& one : named) {
    text += fmt::format("mini-batch {} ({}): {}\n", one.a.id, Printable(one.item, 1000),
                        WhatChanged(one));
    if (!one.changes.first_a.empty()) {
      text += fmt::format("  - {}\n", Printable(one.changes.first_a, kShownRow));
    }
    if (!one.changes.first_b.empty()) {
      text += fmt::format("  + {}\n", Printable(one.changes.first_b, kShownRow));
    }
  }
  if (found.changed.size() > named.size()) {
    text += fmt::format("and {} more\n", found.changed.size() - named.size());
  }
  if (found.same + found.changed.size() == 0) {
    text +=
        "no mini-batch of A has the items of one of B: another input, or another mini-batch "
        "size\n";
  }
  return text;
}

std::string Json(const RunDifferences& found, const std::vector<Named>& named) {
  json list = json::array();
  for (const Named& one : named) {
    list.push_back({{"miniBatchA", one.a.id},
                    {"miniBatchB", one.b.id},
                    {"firstItem", one.item},
                    {"rowsA", one.a.rows},
                    {"rowsB", one.b.rows},
                    {"failedA", one.a.digest == 0},
                    {"failedB", one.b.digest == 0},
                    {"changed", one.changes.changed},
                    {"added", one.changes.added},
                    {"removed", one.changes.removed}});
  }
  const json object = {{"same", found.same},
                       {"changed", found.changed.size()},
                       {"onlyA", found.only_a.size()},
                       {"onlyB", found.only_b.size()},
                       {"first", list}};
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

int Refuse(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return kExitUsage;
}

}  // namespace

int CompareOutputs(const CompareRequest& request) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const Result<std::string> folder_a = FindStateFolder(request.a);
  if (!folder_a.ok()) return Refuse(folder_a.error());
  const Result<std::string> folder_b = FindStateFolder(request.b);
  if (!folder_b.ok()) return Refuse(folder_b.error());
  const Result<RowsOfRun> a = ReadRows(*files, *folder_a);
  if (!a.ok()) return Refuse(a.error());
  const Result<RowsOfRun> b = ReadRows(*files, *folder_b);
  if (!b.ok()) return Refuse(b.error());
  const RunDifferences found = CompareRuns(*a, *b);
  const std::vector<Named> named = NameChanged(*files, *folder_a, *folder_b, found);
  fmt::print("{}", request.json ? Json(found, named) : Text(found, named));
  const bool same = found.changed.empty() && found.only_a.empty() && found.only_b.empty();
  return same ? kExitOk : kExitFailed;
}

}  // namespace parallelrun::cli
