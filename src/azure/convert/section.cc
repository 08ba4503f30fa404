#include "azure/convert/section.h"

#include <algorithm>
#include <set>

namespace parallelrun::azure {

bool IsScalar(const api::Node& node) {
  return node.kind != api::Node::Kind::kMap && node.kind != api::Node::Kind::kList &&
         node.kind != api::Node::Kind::kNull;
}

std::string TextOf(const api::Node& node, std::string_view key) {
  const api::Node* const found = node.kind == api::Node::Kind::kMap ? node.Find(key) : nullptr;
  return found != nullptr && IsScalar(*found) ? found->text : "";
}

bool IsTrueWord(const std::string& word) {
  static const std::set<std::string> kWords = {"t", "T",   "true", "True", "TRUE", "1",  "y",
                                               "Y", "yes", "Yes",  "YES",  "on",   "On", "ON"};
  return kWords.contains(word);
}

Section::Section(const api::Node* node, std::string path, Draft& draft)
    : node_(node != nullptr && node->kind == api::Node::Kind::kMap ? node : nullptr),
      path_(std::move(path)),
      draft_(draft) {
  if (node != nullptr && node_ == nullptr && node->kind != api::Node::Kind::kNull) {
    draft_.Lose(path_, "is " + api::Describe(*node) + ", and is passed over",
                "write it out as a map");
  }
}

const api::Node* Section::Take(const std::string& key) {
  taken_.push_back(key);
  const api::Node* const found = node_ != nullptr ? node_->Find(key) : nullptr;
  return found != nullptr && found->kind != api::Node::Kind::kNull ? found : nullptr;
}

Section Section::Map(const std::string& key) { return {Take(key), PathOf(key), draft_}; }

std::string Section::Text(const std::string& key) {
  const api::Node* const found = Take(key);
  if (found == nullptr) return "";
  if (IsScalar(*found)) return found->text;
  draft_.Lose(PathOf(key), "is " + api::Describe(*found) + ", and is passed over",
              "see docs/migrating.md");
  return "";
}

bool Section::True(const std::string& key) { return IsTrueWord(Text(key)); }

void Section::Pass(const std::vector<std::string>& keys) {
  taken_.insert(taken_.end(), keys.begin(), keys.end());
}

void Section::Lose(const std::string& key, const std::string& what, const std::string& mend) {
  if (Take(key) != nullptr) draft_.Lose(PathOf(key), what, mend);
}

void Section::Finish() {
  if (node_ == nullptr) return;
  for (const api::Node::Field& field : node_->fields) {
    if (std::find(taken_.begin(), taken_.end(), field.key) != taken_.end()) continue;
    draft_.Lose(PathOf(field.key), "has no counterpart",
                "see in docs/job.md whether a field says it");
  }
}

}  // namespace parallelrun::azure
