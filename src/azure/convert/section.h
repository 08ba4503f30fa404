// Internal to `parallelrun convert`: a map of an Azure ML file that is read field by field.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "azure/convert/draft.h"

namespace parallelrun::azure {

bool IsScalar(const api::Node& node);

// The scalar of this name as text; "" where there is none, or `node` is no map.
std::string TextOf(const api::Node& node, std::string_view key);

// One of the words that Azure ML's schema takes for true.
bool IsTrueWord(const std::string& word);

// A map of the Azure ML file; what is never taken is reported in the end.
class Section {
 public:
  Section(const api::Node* node, std::string path, Draft& draft);

  bool there() const { return node_ != nullptr; }
  const std::string& path() const { return path_; }
  std::string PathOf(const std::string& key) const { return api::JoinPath(path_, key); }
  // The value; nullptr when it is absent or null.
  const api::Node* Take(const std::string& key);
  Section Map(const std::string& key);
  // A scalar as text; empty when absent. Anything else is reported.
  std::string Text(const std::string& key);
  // A boolean, in any of the words that Azure ML's schema takes for true.
  bool True(const std::string& key);
  // Known, and of no consequence.
  void Pass(const std::vector<std::string>& keys);
  // Reported when it is there.
  void Lose(const std::string& key, const std::string& what, const std::string& mend);
  void Finish();

 private:
  const api::Node* node_;
  std::string path_;
  Draft& draft_;
  std::vector<std::string> taken_;
};

}  // namespace parallelrun::azure
