#include "api/fields/schema_yaml.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "api/block_yaml.h"

namespace parallelrun::api::fields {
namespace {

using nlohmann::ordered_json;

constexpr size_t kWidth = 110;

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Text that YAML takes for nothing else, within a flow too.
std::string Scalar(const ordered_json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  constexpr std::string_view kOthers = " ._/()$;+'-0123456789";
  constexpr std::string_view kMeanSomething[] = {"true", "false", "null",  "yes", "no", "on",
                                                 "off",  "True",  "False", "y",   "n"};
  const bool plain =
      !text.empty() && IsWord(text.front()) && text.back() != ' ' &&
      std::all_of(text.begin(), text.end(),
                  [&](char c) { return IsWord(c) || kOthers.find(c) != std::string_view::npos; }) &&
      std::find(std::begin(kMeanSomething), std::end(kMeanSomething), text) ==
          std::end(kMeanSomething);
  if (plain) return text;
  // CEL is full of quotes and backslashes, which mean nothing within single quotes.
  const bool single = text.find_first_of("\"\\") != std::string::npos &&
                      text.find_first_of("'\n\r\t") == std::string::npos;
  return single ? "'" + text + "'" : QuotedYaml(text);
}

std::string Flow(const ordered_json& value) {
  std::string out;
  if (value.is_array()) {
    for (const ordered_json& item : value) out += (out.empty() ? "" : ", ") + Scalar(item);
    return "[" + out + "]";
  }
  for (const auto& [key, below] : value.items()) {
    out += (out.empty() ? "" : ", ") + Scalar(key) + ": ";
    out += below.is_array() ? Flow(below) : Scalar(below);
  }
  return "{" + out + "}";
}

bool IsFlat(const ordered_json& value) {
  return std::all_of(value.begin(), value.end(), [](const ordered_json& below) {
    return !below.is_structured() ||
           (below.is_array() &&
            std::none_of(below.begin(), below.end(),
                         [](const ordered_json& item) { return item.is_structured(); }));
  });
}

// On lines of their own, which YAML joins with a blank each.
std::string Folded(const std::string& text, size_t indent) {
  const std::string margin(indent, ' ');
  std::string out = ">-\n";
  std::string line;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    at = end + 1;
    if (!line.empty() && margin.size() + line.size() + word.size() + 1 > kWidth) {
      out += margin + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return out + margin + line + "\n";
}

bool MayFold(const std::string& text) {
  return text.find("  ") == std::string::npos && !text.ends_with(' ') && !text.starts_with(' ');
}

// What stands behind a key or a dash that ends at `column`; lines below are indented by `indent`.
std::string Below(const ordered_json& value, size_t column, size_t indent) {
  const std::string flow = value.is_structured() ? Flow(value) : Scalar(value);
  const bool flat = !value.is_structured() || IsFlat(value);
  const bool short_enough = column + 1 + flow.size() <= kWidth;
  if (value.is_structured() && (!flat || !short_enough)) {
    return "\n" + SchemaYaml(value, indent);
  }
  if (!short_enough && value.is_string() && MayFold(value)) return " " + Folded(value, indent);
  return " " + flow + "\n";
}

}  // namespace

std::string SchemaYaml(const ordered_json& value, size_t indent) {
  const std::string margin(indent, ' ');
  std::string out;
  if (value.is_array()) {
    for (const ordered_json& item : value) {
      std::string below = Below(item, indent + 1, indent + 2);
      // The first key of an object stands behind the dash.
      if (below.starts_with("\n")) below = " " + below.substr(1 + indent + 2);
      out += margin + "-" + below;
    }
    return out;
  }
  for (const auto& [key, below] : value.items()) {
    const std::string name = Scalar(key) + ":";
    out += margin + name + Below(below, indent + name.size(), indent + 2);
  }
  return out;
}

}  // namespace parallelrun::api::fields
