#include "coordinator/start/stored_side_inputs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "plan/utf8.h"
#include "store/file_path.h"
#include "store/store.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr char kSideNote[] = "side_inputs.json";
constexpr size_t kMostBytes = size_t{64} << 20;  // of that note
constexpr char kOtherKey[] = "copy the objects to other keys";

std::string Place(const plan::PlanInput& input) { return "spec.sideInputs (" + input.name + ")"; }

std::string Named(uint64_t run_id) { return fmt::format("{:016x}", run_id); }

std::string UrlOf(const plan::PlanInput& input) {
  return input.root + (input.is_prefix ? "/" : "");
}

Error WrongSideInput(const plan::PlanInput& input, const std::string& what) {
  return {Code::kInvalid, Place(input) + ": " + what};
}

bool IsUtf8(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    if (plan::NextCharacter(text, at) >= plan::kBadByte) return false;
  }
  return true;
}

// One that no node could write: it would fail on each of them.
Status CheckName(const plan::PlanInput& input, const store::Store& store, const std::string& name) {
  if (store::IsFilePath(name) && IsUtf8(name)) return {};
  return WrongSideInput(input, fmt::format("the key of {} cannot be the name of a file: {}",
                                           Printable(store.Location(name), kShownLong), kOtherKey));
}

// "a" beside "a/b" are two objects, and cannot be a file and a folder.
Status CheckFolders(const plan::PlanInput& input, const std::vector<job::SideObject>& objects) {
  std::set<std::string_view> folders;
  for (const job::SideObject& object : objects) {
    const std::string_view name = object.name;
    for (size_t at = name.find('/'); at != std::string_view::npos; at = name.find('/', at + 1)) {
      folders.insert(name.substr(0, at));
    }
  }
  for (const job::SideObject& object : objects) {
    if (!folders.contains(object.name)) continue;
    return WrongSideInput(
        input, fmt::format("\"{}\" is an object, and others lie below it: no file can be a "
                           "folder too: {}",
                           Printable(object.name, kShownLong), kOtherKey));
  }
  return {};
}

Result<std::vector<job::SideObject>> ObjectsOf(const plan::PlanInput& input, store::Store& store,
                                               size_t most) {
  std::optional<std::string> no_file;
  store::Wanted all;
  all.name = all.below = [](std::string_view) { return true; };
  all.no_file = [&no_file](std::string_view name) { no_file = name; };
  Result<std::unique_ptr<store::Listing>> listing = store.List(std::move(all), "");
  if (!listing.ok()) return listing.error().With(Place(input));
  std::vector<job::SideObject> objects;
  for (;;) {
    const Result<std::optional<store::Listed>> listed = (*listing)->Next();
    if (!listed.ok()) return listed.error().With(Place(input));
    if (no_file) {
      return WrongSideInput(
          input, fmt::format("{} holds bytes, and its key ends in a slash: no file can be "
                             "called so: {}",
                             Printable(store.Location(*no_file), kShownLong), kOtherKey));
    }
    if (!*listed) return objects;
    const std::string name((*listed)->name);
    if (Status named = CheckName(input, store, name); !named.ok()) return named.error();
    if (objects.size() == most) {
      return WrongSideInput(input,
                            fmt::format("it has more than the {} objects that the side inputs of a "
                                        "job may have: name a longer prefix, or pack them into one",
                                        job::kMostSideObjects));
    }
    std::optional<store::Found> found = (*listed)->found;
    if (!found) {
      Result<std::optional<store::Found>> now = store.Stat(name);
      if (!now.ok()) return now.error().With(Place(input));
      if (!*now) continue;  // it has just gone
      found = std::move(*now);
    }
    objects.push_back({name, found->size, std::string(found->version.bytes())});
  }
}

// A right to list is not one to read: without it each node would say so, and none could start.
Status CheckRight(const plan::PlanInput& input, store::Store& store, const std::string& name) {
  const Result<std::unique_ptr<store::Object>> object = store.Open(name);
  return object.ok() ? Status() : Status(object.error().With(Place(input)));
}

Result<job::SideInput> List(const plan::PlanInput& input, store::Store& store, size_t most) {
  Result<std::vector<job::SideObject>> objects = ObjectsOf(input, store, most);
  if (!objects.ok()) return objects.error();
  if (objects->empty()) {
    return WrongSideInput(input, fmt::format("nothing is at {}: put it there, or mend its path",
                                             Printable(UrlOf(input), kShownLong)));
  }
  if (Status folders = CheckFolders(input, *objects); !folders.ok()) return folders.error();
  if (Status right = CheckRight(input, store, objects->front().name); !right.ok()) {
    return right.error();
  }
  job::SideInput side{input.name, input.store, UrlOf(input), store.Location(""), false, {}};
  side.one_object = side.root != input.root;
  side.objects = std::move(*objects);
  return side;
}

// Of the answer to each registration, which all nodes may ask for at once.
size_t BytesToTell(const job::SideInput& side) {
  return job::SideInputsJson({side}).dump(-1, ' ', false, json::error_handler_t::replace).size();
}

}  // namespace

Result<std::vector<job::SideInput>> ListSideInputs(const std::vector<plan::PlanInput>& wanted,
                                                   const plan::OpenStore& open, uint64_t most) {
  std::vector<job::SideInput> side_inputs;
  size_t objects = 0;
  uint64_t bytes = 0;
  size_t told = 0;
  for (const plan::PlanInput& input : wanted) {
    const std::unique_ptr<store::Store> store = open(input);
    Result<job::SideInput> side = List(input, *store, job::kMostSideObjects - objects);
    if (!side.ok()) return side.error();
    objects += side->objects.size();
    bytes += side->bytes();
    if (bytes > most) {
      return WrongSideInput(
          input, fmt::format("side inputs in stores take {} bytes or more, and a node keeps {} of "
                             "objects: raise spec.cache.size, and the disk of the nodes with it",
                             bytes, most));
    }
    told += BytesToTell(*side);
    if (told > job::kMostSideBytes) {
      return WrongSideInput(
          input, fmt::format("the names of its objects and of those before take more than the {} "
                             "MiB that a node is told: give them shorter keys, or pack them into "
                             "one",
                             job::kMostSideBytes >> 20));
    }
    side_inputs.push_back(std::move(*side));
  }
  return side_inputs;
}

Result<std::vector<job::SideInput>> KeptSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                                                   const std::vector<plan::PlanInput>& wanted) {
  const Result<std::optional<std::string>> text = notes.Read(kSideNote, kMostBytes);
  if (!text.ok()) return text.error();
  if (!*text) return std::vector<job::SideInput>();
  const json kept = ParseJson(**text).value_or(nullptr);
  if (lenient::Text(kept, "run") != Named(run_id)) return std::vector<job::SideInput>();
  Result<std::vector<job::SideInput>> all = job::ParseSideInputs(lenient::List(kept, "sideInputs"));
  if (!all.ok())
    return Error{Code::kCorrupt, Printable(notes.Location(kSideNote), kShownLong) + " is damaged"};
  std::erase_if(*all, [&](const job::SideInput& side) {
    return std::none_of(wanted.begin(), wanted.end(), [&](const plan::PlanInput& input) {
      return input.name == side.name && input.store == side.store && UrlOf(input) == side.url;
    });
  });
  return all;
}

Result<std::vector<job::SideInput>> GoOnWithSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                                                       const std::vector<plan::PlanInput>& wanted,
                                                       const plan::OpenStore& open, uint64_t most) {
  const auto kept = KeptSideInputs(notes, run_id, wanted);
  if (!kept.ok()) return kept.error();
  const auto find = [&kept](const plan::PlanInput& input) {
    return std::find_if(kept->begin(), kept->end(),
                        [&](const job::SideInput& side) { return side.name == input.name; });
  };
  std::vector<plan::PlanInput> others;
  for (const plan::PlanInput& input : wanted) {
    if (find(input) == kept->end()) others.push_back(input);
  }
  uint64_t bytes = 0;
  for (const job::SideInput& side : *kept) bytes += side.bytes();
  const auto listed = ListSideInputs(others, open, most - std::min(bytes, most));
  if (!listed.ok()) return listed.error();
  std::vector<job::SideInput> all;
  auto next = listed->begin();
  for (const plan::PlanInput& input : wanted) {
    const auto found = find(input);
    all.push_back(found == kept->end() ? *next++ : *found);
  }
  return all;
}

Status KeepSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                      const std::vector<job::SideInput>& side_inputs) {
  const json kept = {{"run", Named(run_id)}, {"sideInputs", job::SideInputsJson(side_inputs)}};
  return notes.Write(kSideNote, kept.dump() + "\n");
}

}  // namespace parallelrun::coordinator
