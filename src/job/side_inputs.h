// Side inputs that lie in stores: which objects each one is, as the coordinator saw them when the
// run began. Every node fetches exactly these versions before a process starts, so that all nodes
// have the same bytes; and so does a node that comes when the run goes on. The JSON is that of
// nodes (docs/coordinator-api.md) and of the state folder. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::job {

struct SideObject {
  std::string name;  // relative to the root; a path of UTF-8
  uint64_t size = 0;
  std::string version;  // bytes, as its store has them
  bool operator==(const SideObject&) const = default;
};

struct SideInput {
  std::string name;         // in the job
  std::string store;        // one of the job's, by name
  std::string url;          // as the job names it; with a slash at its end it is always a prefix
  std::string root;         // what the names are relative to
  bool one_object = false;  // its path is that of this file, else of the folder with all of them
  std::vector<SideObject> objects;  // at least one
  bool operator==(const SideInput&) const = default;

  uint64_t bytes() const;
};

// So many objects of all side inputs together: each node is told all of them when it registers.
inline constexpr size_t kMostSideObjects = 10'000;
// And so many bytes of what it is told of them: keys may be long.
inline constexpr size_t kMostSideBytes = size_t{16} << 20;

// What stands for the path of a side input in what the coordinator tells nodes: each puts its own
// there. No argument that a person writes holds one.
std::string SideInputMark(const std::string& name);

nlohmann::json SideInputsJson(const std::vector<SideInput>& side_inputs);
// kInvalid: it is no list of them.
Result<std::vector<SideInput>> ParseSideInputs(const nlohmann::json& list);

// A node that has no keys of their store asks for URLs of some objects of one at a time: an answer
// has those of 500 at most, and each URL ends.
struct SideUrlsWanted {
  std::string side_input;
  size_t first = 0;  // the number of an object in it, and those behind it
};
inline constexpr size_t kMostSideUrls = 500;

// Secrets.
struct SideUrls {
  uint32_t seconds = 0;           // that they are good for, from now on
  std::vector<std::string> urls;  // of objects one behind the other, at least one
};

// Of the call and of its answer. Parse: kInvalid, in words that have nothing of the text.
std::string SideUrlsWantedText(const SideUrlsWanted& wanted);
Result<SideUrlsWanted> ParseSideUrlsWanted(std::string_view text);
std::string SideUrlsText(const SideUrls& urls);
Result<SideUrls> ParseSideUrls(std::string_view text);

}  // namespace parallelrun::job
