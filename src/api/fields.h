// Internal to src/api: typed reading of a tree, collecting problems by field path. Positions are
// filled in at the end (ParseJob), from the paths.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/enums.h"
#include "api/node.h"
#include "api/problem.h"
#include "api/text.h"

namespace parallelrun::api {

void AddError(Problems& problems, std::string field, std::string what, std::string mend = "");
void AddWarning(Problems& problems, std::string field, std::string what, std::string mend = "");

// Bounds of text, in characters, and of lists; the schema in crds/ has the same.
inline constexpr size_t kMaxText = 1024;
inline constexpr size_t kMaxName = 63;         // of what is named in the job, and labels
inline constexpr size_t kMaxObjectName = 253;  // of other objects of the cluster
inline constexpr size_t kMaxQuantity = 64;     // "4Gi"
inline constexpr size_t kMaxItems = 100;

// What to write in place of a field that is not known here; "" where that is not known either.
using NameMend = std::function<std::string(std::string_view name)>;

// One value of the tree with its path. Each Read adds a problem and gives nullopt when the value
// is not of that type.
struct Value {
  const Node& node;
  std::string path;
  Problems& problems;
  const NameMend* mend_name = nullptr;

  // One that lies in it.
  Value Within(const Node& inner, std::string inner_path) const {
    return {inner, std::move(inner_path), problems, mend_name};
  }

  std::optional<std::string> String(size_t most = kMaxText) const;  // without NUL
  std::optional<std::string> NonEmptyString(size_t most = kMaxText) const;
  std::optional<bool> Bool() const;
  std::optional<int64_t> Integer(int64_t least, int64_t most) const;
  std::optional<double> Number(double least, double most) const;
  template <typename E>
  std::optional<E> Enum() const;
  // The items, each with its path; none (with a problem) if this is no list, or too long.
  std::vector<Value> List(size_t most = kMaxItems, const std::string& mend = "") const;
  bool IsMap() const;  // adds the problem if not
  void Error(std::string what, std::string mend = "") const;

 private:
  std::optional<size_t> EnumIndex(const std::vector<std::string>& words) const;
};

// One map being read. Every Take names a field that is known; Finish reports the others, with the
// name that was most likely meant.
class Fields {
 public:
  explicit Fields(const Value& map);

  // The field's value; nullopt when it is absent or null, which is the same to the API server.
  std::optional<Value> Take(const std::string& name);
  // As Take, with a problem when it is absent.
  std::optional<Value> Require(const std::string& name, const std::string& mend = "");
  // Which of `names` are there; does not count as reading them.
  std::vector<std::string> Present(const std::vector<std::string>& names) const;
  void Finish();

  std::string PathOf(const std::string& name) const { return JoinPath(path_, name); }
  const std::string& path() const { return path_; }
  Problems& problems() const { return problems_; }
  void Error(std::string what, std::string mend = "") const;

  // Reads a field straight into a member, which stays as it is when the field is absent or wrong.
  void To(const std::string& name, std::string& out, size_t most = kMaxText);

 private:
  const Node* node_;  // nullptr when it is no map
  std::string path_;
  Problems& problems_;
  const NameMend* mend_;
  std::vector<std::string> known_;
};

template <typename E>
std::optional<E> Value::Enum() const {
  std::vector<std::string> words;
  for (const auto& [word, value] : EnumWords<E>()) words.emplace_back(word);
  const std::optional<size_t> index = EnumIndex(words);
  if (!index) return std::nullopt;
  return EnumWords<E>()[*index].second;
}

// One of these words, with a hint when it differs only in case, or is close.
std::optional<std::string> ReadWord(const Value& value, const std::vector<std::string>& words);

// Strings, none of them empty, no two the same.
std::vector<std::string> ReadNames(const Value& list, size_t most_items, size_t most_characters);

// A map of text; keys are as they are.
std::map<std::string, std::string> ReadTexts(const Value& map, size_t most_characters);

// Of an object's metadata, as the API server has them: the keys are names of labels.
std::map<std::string, std::string> ReadLabels(const Value& map);
std::map<std::string, std::string> ReadAnnotations(const Value& map, size_t most_characters);

// The value as an API server keeps it: without the fields that are null.
nlohmann::json WithoutNulls(const Node& node);

// A path below a volume, normalised ("a/b", "."); problems for absolute ones and for "..".
std::optional<std::string> ReadRelativePath(const Value& value);

}  // namespace parallelrun::api
