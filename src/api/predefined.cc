#include "api/predefined.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>

#include "api/enums.h"
#include "api/fields.h"
#include "api/node.h"
#include "api/sizes.h"
#include "api/text.h"

namespace parallelrun {
namespace {

constexpr int64_t kMaxTimeoutSeconds = 259200;
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

// Why a value does not fit, with its mend; nullopt when it was set.
struct Misfit {
  std::string what;
  std::string mend;
};
using Setter = std::function<std::optional<Misfit>(const std::string& value, JobSpec& spec)>;

enum class Role {
  kSets,      // a field of the job, or a worker flag
  kIgnored,   // accepted, without a meaning here
  kReserved,  // Azure ML's own: a job file says it with a field
  kSystem,    // on the command line of Azure ML's driver: only makes abbreviations ambiguous
};

struct Flag {
  std::string name;
  Role role = Role::kSystem;
  std::string field = {};  // kSets: the field of the spec, or empty; kReserved: what to write
  Setter set = nullptr;
};

Setter Integer(int64_t least, int64_t most, const std::function<void(JobSpec&, int64_t)>& set) {
  return [=](const std::string& value, JobSpec& spec) -> std::optional<Misfit> {
    const std::string_view digits = std::string_view(value).substr(value.starts_with('+') ? 1 : 0);
    int64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    const std::string range =
        "must be from " + std::to_string(least) + " to " + std::to_string(most);
    const std::string at_least = "must be at least " + std::to_string(least);
    if (digits.empty() || stop != end || error == std::errc::invalid_argument) {
      return Misfit{Quoted(value) + " is not an integer", most == kMaxInt ? at_least : range};
    }
    if (error != std::errc() || number < least || number > most) {
      return Misfit{value + " is out of range", most == kMaxInt ? at_least : range};
    }
    set(spec, number);
    return std::nullopt;
  };
}

Setter Seconds(Duration JobSpec::*member, int64_t least, int64_t most) {
  return Integer(least, most,
                 [member](JobSpec& spec, int64_t number) { spec.*member = seconds(number); });
}

Setter Bool(const std::function<void(JobSpec&, bool)>& set) {
  return [=](const std::string& value, JobSpec& spec) -> std::optional<Misfit> {
    const std::string word = Squashed(value);
    const bool yes = word == "true" || word == "yes" || word == "1";
    if (!yes && word != "false" && word != "no" && word != "0") {
      return Misfit{Quoted(value) + " is neither True nor False", "write True or False"};
    }
    set(spec, yes);
    return std::nullopt;
  };
}

Setter Bool(bool WorkerFlags::*member) {
  return Bool([member](JobSpec& spec, bool value) { spec.worker_flags.*member = value; });
}

std::optional<Misfit> SetPercent(const std::string& value, JobSpec& spec) {
  double percent = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, percent);
  if (value.empty() || stop != end || error != std::errc() || !(percent >= 0 && percent <= 100)) {
    return Misfit{Quoted(value) + " is not a percentage", "must be from 0 to 100"};
  }
  spec.allowed_failed_percent = percent;
  return std::nullopt;
}

std::optional<Misfit> SetProfiling(const std::string& value, JobSpec& spec) {
  for (const auto& [word, profiling] : EnumWords<Profiling>()) {
    if (Squashed(value) != Squashed(word)) continue;
    spec.profiling = profiling;
    return std::nullopt;
  }
  return Misfit{Quoted(value) + " is not a profiler", "write cProfile or profile"};
}

bool ReadsJsonLines(const JobSpec& spec) {
  return !spec.inputs.empty() && spec.inputs[0].kind == InputKind::kJsonLines;
}

// The number is lost where it cannot count lines; the caller says so.
std::optional<Misfit> SetRows(const std::string& value, JobSpec& spec) {
  const auto keep = [](JobSpec& job, int64_t rows) {
    if (ReadsJsonLines(job) && job.partition_keys.empty()) {
      job.mini_batch_size = static_cast<uint64_t>(rows);
    }
  };
  return Integer(1, kMaxInt, keep)(value, spec);
}

std::optional<Misfit> Accept(const std::string&, JobSpec&) { return std::nullopt; }

const std::vector<Flag>& Flags() {
  static const std::vector<Flag> flags = {
      {"error_threshold", Role::kSets, "errorThreshold",
       Integer(-1, kMaxInt,
               [](JobSpec& spec, int64_t items) {
                 spec.error_threshold = static_cast<int32_t>(items);
               })},
      {"allowed_failed_percent", Role::kSets, "allowedFailedPercent", SetPercent},
      {"task_overhead_timeout", Role::kSets, "taskOverheadTimeoutSeconds",
       Seconds(&JobSpec::task_overhead_timeout, 1, kMaxTimeoutSeconds)},
      {"progress_update_timeout", Role::kSets, "progressUpdateTimeoutSeconds",
       Seconds(&JobSpec::progress_update_timeout, 1, kMaxTimeoutSeconds)},
      {"first_task_creation_timeout", Role::kSets, "firstTaskCreationTimeoutSeconds",
       // A published job gives six days.
       Seconds(&JobSpec::first_task_creation_timeout, 1, kMaxInt)},
      {"resource_monitor_interval", Role::kSets, "resourceMonitorIntervalSeconds",
       Seconds(&JobSpec::resource_monitor_interval, 0, kMaxInt)},
      {"profiling_module", Role::kSets, "profiling", SetProfiling},
      {"process_count_per_node", Role::kSets, "processCountPerNode",
       Integer(1, kMaxInt,
               [](JobSpec& spec, int64_t count) {
                 spec.process_count_per_node = static_cast<int32_t>(count);
               })},
      {"rank_mini_batch_count", Role::kSets, "rankMiniBatchCount",
       Integer(-kMaxInt, kMaxInt,
               [](JobSpec& spec, int64_t count) {
                 spec.rank_mini_batch_count = static_cast<int32_t>(std::max<int64_t>(count, 0));
               })},
      {"append_row_dataframe_header", Role::kSets, "",
       Bool(&WorkerFlags::append_row_dataframe_header)},
      {"append_row_safe_output", Role::kSets, "", Bool(&WorkerFlags::append_row_safe_output)},
      {"amlbi_dataframe_mixed_types", Role::kSets, "", Bool(&WorkerFlags::mixed_types)},
      {"amlbi_async_mode", Role::kSets, "", Bool(&WorkerFlags::async_mode)},
      // What the three of them mean together is judged once all are read.
      {"amlbi_pf_enabled", Role::kSets, "", Bool([](JobSpec&, bool) {})},
      {"amlbi_pf_run_mode", Role::kSets, "", Accept},
      {"amlbi_file_format", Role::kSets, "", Accept},
      {"amlbi_mini_batch_rows", Role::kSets, "miniBatchSize", SetRows},
      {"resume_from", Role::kSets, "", Accept},
      {"copy_logs_to_parent", Role::kIgnored},
      {"push_metrics_to_parent", Role::kIgnored},
      {"metrics_name_prefix", Role::kIgnored},
      {"mini_batch_size", Role::kReserved, "spec.miniBatchSize"},
      {"allowed_failed_count", Role::kReserved, "spec.allowedFailedCount"},
      {"output_action", Role::kReserved, "spec.output.action"},
      {"logging_level", Role::kReserved, "spec.loggingLevel"},
      {"run_invocation_timeout", Role::kReserved, "spec.runInvocationTimeoutSeconds"},
      {"run_max_try", Role::kReserved, "spec.runMaxTry"},
      {"append_row_file_name", Role::kReserved, "spec.output.fileName"},
      {"output"},
      {"output_uri_file"},
      {"scoring_module_name"},
      {"client_sdk_version"},
      {"create_snapshot_at_runtime"},
  };
  return flags;
}

// One flag of the arguments with its value.
struct Found {
  const Flag* flag = nullptr;
  bool abbreviated = false;
  std::string written;               // "--error_thr"
  std::optional<std::string> value;  // none: nothing follows that could be one
  size_t value_index = 0;            // in the arguments
};

class Reader {
 public:
  Reader(const std::vector<std::string>& present, JobSpec& spec, Problems& problems,
         std::vector<std::string>& notes)
      : present_(present), spec_(spec), problems_(problems), notes_(notes) {}

  void Read() {
    const std::vector<std::string>& arguments = spec_.arguments;
    // A placeholder stands for what is not known here.
    const bool named = arguments.empty() || arguments[0].empty() || arguments[0].starts_with('-') ||
                       arguments[0].starts_with('$');
    if (!named) {
      AddWarning(problems_, Field(0), Quoted(arguments[0]) + " does not start with \"-\"",
                 "the script gets it as it is; Azure ML takes only arguments with a name");
    }
    for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
      if (arguments[i].starts_with("--")) ReadFlag(i);
    }
    // As in argparse, the last of several decides; the others have been checked.
    for (size_t i = 0; i < found_.size(); ++i) {
      const bool again =
          std::any_of(found_.begin() + static_cast<std::ptrdiff_t>(i) + 1, found_.end(),
                      [&](const Found& later) { return later.flag == found_[i].flag; });
      if (!again) Apply(found_[i]);
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
  static std::string Field(size_t index) { return JoinPath("spec.arguments", index); }

  // Python's argparse: a negative number is a value, any other word with a dash is a flag.
  static bool IsValue(const std::string& word) {
    if (!word.starts_with('-') || word == "-") return true;
    return word.size() > 1 && std::all_of(word.begin() + 1, word.end(), [](char c) {
             return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
           });
  }

  void ReadFlag(size_t index) {
    const std::string& word = spec_.arguments[index];
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    Found found;
    found.written = word.substr(0, equals);
    found.flag = FindFlag(name, found.abbreviated);
    if (found.flag == nullptr) {
      if (name.starts_with("amlbi_")) {
        AddWarning(problems_, Field(index), found.written + " is not known here",
                   "it changes nothing but what the script reads; known are " + KnownInternal());
      }
      return;
    }
    found.value_index = index;
    if (equals < word.size()) {
      found.value = word.substr(equals + 1);
    } else if (index + 1 < spec_.arguments.size() && IsValue(spec_.arguments[index + 1])) {
      found.value = spec_.arguments[index + 1];
      found.value_index = index + 1;
    }
    switch (found.flag->role) {
      case Role::kSets: return Check(std::move(found));
      case Role::kIgnored: ignored_.push_back(found.written); return;
      case Role::kReserved:
        if (found.abbreviated) return;
        AddWarning(problems_, Field(index), found.written + " sets nothing for the job",
                   "write " + found.flag->field + "; only the script sees this argument");
        return;
      case Role::kSystem: return;
    }
  }

  static const Flag* FindFlag(const std::string& name, bool& abbreviated) {
    const Flag* prefixed = nullptr;
    size_t count = 0;
    for (const Flag& flag : Flags()) {
      if (flag.name == name) return &flag;
      if (name.empty() || !flag.name.starts_with(name)) continue;
      prefixed = &flag;
      ++count;
    }
    abbreviated = true;
    return count == 1 ? prefixed : nullptr;
  }

  static std::string KnownInternal() {
    std::vector<std::string> names;
    for (const Flag& flag : Flags()) {
      if (flag.name.starts_with("amlbi_")) names.push_back("--" + flag.name);
    }
    return OrList(names);
  }

  void Check(Found found) {
    JobSpec tried = spec_;
    const std::optional<Misfit> misfit =
        found.value ? found.flag->set(*found.value, tried)
                    : Misfit{"has no value", "write the value as the next item"};
    const std::string field = Field(found.value_index);
    if (found.abbreviated) {
      const std::string name = "--" + found.flag->name;
      AddWarning(problems_, field,
                 misfit ? found.written + " is taken for the script's own, not for " + name
                        : found.written + " is taken for " + name,
                 misfit ? "write the name in full if that is meant"
                        : "write the name in full, or another name if it is the script's own");
    } else if (misfit) {
      AddError(problems_, field, found.written + ": " + misfit->what, misfit->mend);
    }
    if (!misfit) found_.push_back(std::move(found));
  }

  void Apply(const Found& found) {
    const std::string& name = found.flag->name;
    const std::string& value = *found.value;
    const std::string field = Field(found.value_index);
    JobSpec tried = spec_;
    found.flag->set(value, tried);
    if (std::find(present_.begin(), present_.end(), found.flag->field) == present_.end()) {
      spec_ = std::move(tried);
    } else if (!(tried == spec_) && !(name == "amlbi_mini_batch_rows" && value == "1")) {
      // One row is how the original says that miniBatchSize counts rows.
      AddWarning(problems_, field,
                 found.written + " " + value + " has no effect beside spec." + found.flag->field +
                     ", which wins",
                 "remove one of them");
    }
    if (name == "amlbi_pf_enabled") component_ = Squashed(value) != "false" && value != "0";
    if (name == "amlbi_pf_run_mode") run_mode_ = &found;
    if (name == "amlbi_file_format") format_ = &found;
    if (name == "amlbi_mini_batch_rows") rows_ = &found;
    if (name == "resume_from") {
      AddWarning(problems_, field, found.written + " names a run of Azure ML, which is not here",
                 "write spec.output.ifExists: Resume to continue this job's own earlier run");
    }
  }

  void JudgeJsonLines() {
    if (run_mode_ != nullptr && *run_mode_->value != "component") {
      AddWarning(problems_, Field(run_mode_->value_index),
                 run_mode_->written + " " + *run_mode_->value + " is not known here",
                 "it changes nothing; known is component");
    } else if (run_mode_ != nullptr && component_) {
      spec_.worker_flags.component_mode = true;
    }
    const bool other_format = format_ != nullptr && Squashed(*format_->value) != "jsonl";
    if (other_format) {
      AddWarning(problems_, Field(format_->value_index),
                 format_->written + " " + *format_->value + " is not known here",
                 "it changes nothing; known is jsonl, and spec.inputs says the kind of the input");
    }
    const Found* const lines = format_ != nullptr && !other_format ? format_ : rows_;
    if (lines != nullptr && !ReadsJsonLines(spec_)) {
      AddWarning(problems_, Field(lines->value_index),
                 lines->written + " asks for JSON lines, but the inputs are not of that kind",
                 "write jsonLines: {volume: VOLUME, path: PATH} in spec.inputs");
    }
  }

  const std::vector<std::string>& present_;
  JobSpec& spec_;
  Problems& problems_;
  std::vector<std::string>& notes_;
  std::vector<Found> found_;
  std::vector<std::string> ignored_;
  bool component_ = false;
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

void ApplyPredefined(const std::vector<std::string>& present, JobSpec& spec, Problems& problems,
                     std::vector<std::string>& notes) {
  Reader(present, spec, problems, notes).Read();
}

}  // namespace parallelrun
