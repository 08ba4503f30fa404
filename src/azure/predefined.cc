#include "azure/predefined.h"

#include <algorithm>
#include <optional>

#include "api/sizes.h"
#include "api/text.h"
#include "azure/fill_in.h"
#include "azure/flags.h"

namespace parallelrun::azure {
namespace {

constexpr char kRows[] = "amlbi_mini_batch_rows";

// The value of a map's field; a null is as good as none.
const api::Node* FindIn(const api::Node& map, std::string_view name) {
  const api::Node* const found = map.kind == api::Node::Kind::kMap ? map.Find(name) : nullptr;
  return found != nullptr && found->kind != api::Node::Kind::kNull ? found : nullptr;
}

void Put(api::Node& map, const std::string& name, const api::Node& value) {
  const auto known = std::find_if(map.fields.begin(), map.fields.end(),
                                  [&](const api::Node::Field& field) { return field.key == name; });
  if (known == map.fields.end()) {
    map.fields.push_back({name, value.at, value});
  } else {
    *known = {name, value.at, value};
  }
}

// As numbers, where both can be read as such: "20" is 20 for a size.
bool Same(const api::Node& a, const api::Node& b) {
  const auto size = [](const api::Node& node) -> std::optional<uint64_t> {
    const bool scalar =
        node.kind == api::Node::Kind::kString || node.kind == api::Node::Kind::kInteger;
    const auto read = api::ParseSize(scalar ? node.text : "");
    return read.ok() ? std::optional(read->value) : std::nullopt;
  };
  if (a.kind == b.kind && a.kind == api::Node::Kind::kInteger) return a.integer == b.integer;
  if (a.kind == b.kind && a.kind == api::Node::Kind::kNumber) return a.number == b.number;
  if (a.kind == b.kind && a.text == b.text) return true;
  return size(a) && size(a) == size(b);
}

class Arguments {
 public:
  Arguments(api::Node& spec, api::Problems& problems, std::vector<std::string>& notes)
      : spec_(spec), problems_(problems), notes_(notes) {
    for (const api::Node& item : spec.Find("arguments")->items) {
      texts_.push_back(item.kind == api::Node::Kind::kString ? item.text : "");
      places_.push_back(item.at);
    }
  }

  void Apply() {
    // A placeholder stands for what is not known here.
    const bool named = texts_.empty() || texts_[0].empty() || texts_[0].starts_with('-') ||
                       texts_[0].starts_with('$');
    if (!named) {
      Warn(0, api::Quoted(texts_[0]) + " does not start with \"-\"",
           "the script gets it as it is; Azure ML takes only arguments with a name");
    }
    for (Found& found : FindFlags(texts_)) Judge(std::move(found));
    // As in argparse, the last of several decides; the others have been checked.
    for (size_t i = 0; i < set_.size(); ++i) {
      const bool again =
          std::any_of(set_.begin() + static_cast<std::ptrdiff_t>(i) + 1, set_.end(),
                      [&](const Set& later) { return later.found.flag == set_[i].found.flag; });
      if (!again) Apply(set_[i]);
    }
    JudgeJsonLines();
    if (!ignored_.empty()) {
      std::string names;
      for (const std::string& name : ignored_) names += (names.empty() ? "" : ", ") + name;
      notes_.push_back("spec.arguments: " + names +
                       " have no meaning here and change nothing; the script still gets them");
    }
  }

 private:
  struct Set {
    Found found;
    api::Node value;
  };

  static std::string At(size_t index) { return api::JoinPath("spec.arguments", index); }
  void Warn(size_t index, std::string what, std::string mend) const {
    problems_.push_back({.severity = api::Problem::Severity::kWarning,
                         .field = At(index),
                         .what = std::move(what),
                         .mend = std::move(mend)});
  }

  static std::string KnownInternal() {
    std::vector<std::string> names;
    for (const Flag& flag : Flags()) {
      if (flag.name.starts_with("amlbi_")) names.push_back("--" + flag.name);
    }
    return api::OrList(names);
  }

  void Judge(Found found) {
    if (found.flag == nullptr) {
      return Warn(found.index, found.written + " is not known here",
                  "it changes nothing but what the script reads; known are " + KnownInternal());
    }
    switch (found.flag->role) {
      case Role::kSets: return Check(std::move(found));
      case Role::kIgnored: ignored_.push_back(found.written); return;
      case Role::kReserved:
        if (found.abbreviated) return;
        return Warn(found.index, found.written + " sets nothing for the job",
                    "write " + found.flag->field + "; only the script sees this argument");
      case Role::kSystem: return;
    }
  }

  void Check(Found found) {
    // Nothing is known of it yet, which is no mistake; whoever runs the job is told (fill_in.h).
    if (found.value && IsOpen(*found.value)) return;
    std::variant<api::Node, Misfit> read = ReadValue(found);
    const Misfit* const misfit = std::get_if<Misfit>(&read);
    if (found.abbreviated) {
      const std::string name = "--" + found.flag->name;
      Warn(found.value_index,
           misfit != nullptr ? found.written + " is taken for the script's own, not for " + name
                             : found.written + " is taken for " + name,
           misfit != nullptr ? "write the name in full if that is meant"
                             : "write the name in full, or another name if it is the script's own");
    } else if (misfit != nullptr) {
      problems_.push_back({.field = At(found.value_index),
                           .what = found.written + ": " + misfit->what,
                           .mend = misfit->mend});
    }
    if (misfit != nullptr) return;
    api::Node value = std::move(std::get<api::Node>(read));
    value.at = places_[found.value_index];
    set_.push_back({std::move(found), std::move(value)});
  }

  void Apply(const Set& set) {
    const Found& found = set.found;
    const std::string& name = found.flag->name;
    const std::string& field = found.flag->field;
    if (name == "amlbi_pf_run_mode") run_mode_ = &found;
    if (name == "amlbi_file_format") format_ = &found;
    if (name == kRows) rows_ = &found;
    if (name == "resume_from") {
      Warn(found.value_index, found.written + " names a run of Azure ML, which is not here",
           "write spec.output.ifExists: Resume to continue this job's own earlier run");
    }
    // The number is lost where it cannot count lines; JudgeJsonLines says so.
    if (field.empty() || (name == kRows && !CountsLines())) return;
    const api::Node* const own = FindIn(spec_, field);
    if (own == nullptr) return Put(spec_, field, set.value);
    // One row is how the original says that miniBatchSize counts rows.
    if (Same(*own, set.value) || (name == kRows && *found.value == "1")) return;
    Warn(
        found.value_index,
        found.written + " " + *found.value + " has no effect beside spec." + field + ", which wins",
        "remove one of them");
  }

  bool ReadsJsonLines() const {
    const api::Node* const inputs = FindIn(spec_, "inputs");
    return inputs != nullptr && !inputs->items.empty() &&
           FindIn(inputs->items[0], "jsonLines") != nullptr;
  }

  // With partition keys the size decides nothing.
  bool CountsLines() const {
    const api::Node* const keys = FindIn(spec_, "partitionKeys");
    return ReadsJsonLines() && (keys == nullptr || keys->items.empty());
  }

  void JudgeJsonLines() const {
    if (run_mode_ != nullptr && *run_mode_->value != "component") {
      Warn(run_mode_->value_index,
           run_mode_->written + " " + *run_mode_->value + " is not known here",
           "it changes nothing; known is component");
    }
    const bool other_format = format_ != nullptr && api::Squashed(*format_->value) != "jsonl";
    if (other_format) {
      Warn(format_->value_index, format_->written + " " + *format_->value + " is not known here",
           "it changes nothing; known is jsonl, and spec.inputs says the kind of the input");
    }
    const Found* const lines = format_ != nullptr && !other_format ? format_ : rows_;
    if (lines != nullptr && !ReadsJsonLines()) {
      Warn(lines->value_index,
           lines->written + " asks for JSON lines, but the inputs are not of that kind",
           "write jsonLines: {volume: VOLUME, path: PATH} in spec.inputs");
    }
  }

  api::Node& spec_;
  api::Problems& problems_;
  std::vector<std::string>& notes_;
  std::vector<std::string> texts_;
  std::vector<api::Position> places_;
  std::vector<Set> set_;
  std::vector<std::string> ignored_;
  const Found* run_mode_ = nullptr;
  const Found* format_ = nullptr;
  const Found* rows_ = nullptr;
};

}  // namespace

const std::vector<std::string>& PredefinedFields() {
  static const std::vector<std::string> fields = [] {
    std::vector<std::string> names;
    for (const Flag& flag : Flags()) {
      if (flag.role == Role::kSets && !flag.field.empty()) names.push_back(flag.field);
    }
    return names;
  }();
  return fields;
}

void ApplyPredefined(api::Node& job, api::Problems& problems, std::vector<std::string>& notes) {
  if (job.kind != api::Node::Kind::kMap) return;
  const auto spec = std::find_if(job.fields.begin(), job.fields.end(),
                                 [](const api::Node::Field& field) { return field.key == "spec"; });
  if (spec == job.fields.end()) return;
  const api::Node* const arguments = FindIn(spec->value, "arguments");
  if (arguments == nullptr || arguments->kind != api::Node::Kind::kList) return;
  Arguments(spec->value, problems, notes).Apply();
}

}  // namespace parallelrun::azure
