#include <spdlog/fmt/fmt.h>

#include <map>
#include <nlohmann/json.hpp>

#include "api/fields/walk.h"
#include "base/json.h"
#include "coordinator/page/page_data.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kValueBytes = 500;
constexpr char kHidden[] = "(not shown)";

// What fields have that nobody wrote, by path with "[]" for any index.
const std::map<std::string, json>& Initials() {
  static const auto* const initials = [] {
    auto* all = new std::map<std::string, json>;
    api::fields::EachField(
        [all](const std::string& path, const api::fields::Field& field, const api::fields::Field&) {
          if (field.initial) (*all)[path] = field.initial();
        });
    return all;
  }();
  return *initials;
}

// What may hold a secret: values of variables, whatever they are called; those of a pod template
// too.
bool MayBeSecret(const std::string& general) {
  return general.find(".env[].value") != std::string::npos ||
         general.find("odTemplate") != std::string::npos;
}

class Walk {
 public:
  explicit Walk(size_t most) : most_(most) {}

  // `general`: the path with "[]" for each index.
  void Visit(const json& value, const std::string& path, const std::string& general) {
    if (found_.size() >= most_ || value.is_null()) return;
    const auto initial = Initials().find(general);
    const bool is_default = initial != Initials().end() && initial->second == value;
    const bool opens = value.is_structured() && !value.empty() && !is_default;
    if (!opens) {
      std::string text = value.is_string()
                             ? value.get<std::string>()
                             : value.dump(-1, ' ', false, json::error_handler_t::replace);
      if (MayBeSecret(general)) text = kHidden;
      if (text.size() > kValueBytes) text = text.substr(0, kValueBytes) + "...";
      found_.push_back({path, std::move(text), is_default});
      return;
    }
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) {
        Visit(value[i], fmt::format("{}[{}]", path, i), general + "[]");
      }
      return;
    }
    for (const auto& [key, inner] : value.items()) {
      Visit(inner, fmt::format("{}.{}", path, key), general + "." + key);
    }
  }

  std::vector<SettingShown> Take() && { return std::move(found_); }

 private:
  const size_t most_;
  std::vector<SettingShown> found_;
};

}  // namespace

std::vector<SettingShown> SettingsShown(const std::string& job, size_t most) {
  const json parsed = ParseJson(job).value_or(nullptr);
  const json& spec = lenient::At(parsed, "spec");
  if (spec.is_null()) return {};
  Walk walk(most);
  walk.Visit(spec, "spec", "spec");
  return std::move(walk).Take();
}

}  // namespace parallelrun::coordinator
