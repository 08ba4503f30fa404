#include "azure/flags.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>

#include "api/block_yaml.h"
#include "api/enums.h"
#include "api/scalar.h"
#include "api/text.h"

namespace parallelrun::azure {
namespace {

constexpr int64_t kMaxTimeoutSeconds = 259200;
constexpr int64_t kMaxInt = std::numeric_limits<int32_t>::max();

using Reader = std::function<std::variant<api::Node, Misfit>(const std::string& value)>;

api::Node IntegerNode(int64_t value) {
  api::Node node;
  node.kind = api::Node::Kind::kInteger;
  node.integer = value;
  node.text = std::to_string(value);
  return node;
}

Reader Integer(int64_t least, int64_t most) {
  return [=](const std::string& value) -> std::variant<api::Node, Misfit> {
    const std::string_view digits = std::string_view(value).substr(value.starts_with('+') ? 1 : 0);
    int64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    const std::string range =
        "must be from " + std::to_string(least) + " to " + std::to_string(most);
    const std::string at_least = "must be at least " + std::to_string(least);
    if (digits.empty() || stop != end || error == std::errc::invalid_argument) {
      return Misfit{api::Quoted(value) + " is not an integer", most == kMaxInt ? at_least : range};
    }
    if (error != std::errc() || number < least || number > most) {
      return Misfit{value + " is out of range", most == kMaxInt ? at_least : range};
    }
    return IntegerNode(number);
  };
}

// Azure ML takes any number below one for none.
std::variant<api::Node, Misfit> ReadRank(const std::string& value) {
  std::variant<api::Node, Misfit> read = Integer(-kMaxInt, kMaxInt)(value);
  if (auto* const node = std::get_if<api::Node>(&read)) {
    *node = IntegerNode(std::max<int64_t>(node->integer, 0));
  }
  return read;
}

std::variant<api::Node, Misfit> ReadBool(const std::string& value) {
  const std::string word = api::Squashed(value);
  const bool yes = word == "true" || word == "yes" || word == "1";
  if (!yes && word != "false" && word != "no" && word != "0") {
    return Misfit{api::Quoted(value) + " is neither True nor False", "write True or False"};
  }
  api::Node node;
  node.kind = api::Node::Kind::kBool;
  node.boolean = yes;
  node.text = yes ? "true" : "false";
  return node;
}

std::variant<api::Node, Misfit> ReadPercent(const std::string& value) {
  double percent = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, percent);
  if (value.empty() || stop != end || error != std::errc() || !(percent >= 0 && percent <= 100)) {
    return Misfit{api::Quoted(value) + " is not a percentage", "must be from 0 to 100"};
  }
  return api::NumberNode(percent, value);
}

std::variant<api::Node, Misfit> ReadProfiling(const std::string& value) {
  for (const auto& [word, profiling] : api::EnumWords<api::Profiling>()) {
    if (api::Squashed(value) == api::Squashed(word)) return api::TextNode(std::string(word));
  }
  return Misfit{api::Quoted(value) + " is not a profiler", "write cProfile or profile"};
}

std::variant<api::Node, Misfit> ReadText(const std::string& value) { return api::TextNode(value); }

// argparse: a negative number is a value, any other word with a dash is a flag.
bool IsValue(const std::string& word) {
  if (!word.starts_with('-') || word == "-") return true;
  return word.size() > 1 && std::all_of(word.begin() + 1, word.end(), [](char c) {
           return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
         });
}

// A name in full goes before one that it is the beginning of.
const Flag* FindFlag(const std::string& name, bool& abbreviated) {
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

}  // namespace

const std::vector<Flag>& Flags() {
  static const std::vector<Flag> flags = {
      {"error_threshold", Role::kSets, "errorThreshold", Integer(-1, kMaxInt)},
      {"allowed_failed_percent", Role::kSets, "allowedFailedPercent", ReadPercent},
      {"task_overhead_timeout", Role::kSets, "taskOverheadTimeoutSeconds",
       Integer(1, kMaxTimeoutSeconds)},
      {"progress_update_timeout", Role::kSets, "progressUpdateTimeoutSeconds",
       Integer(1, kMaxTimeoutSeconds)},
      // A published job gives six days.
      {"first_task_creation_timeout", Role::kSets, "firstTaskCreationTimeoutSeconds",
       Integer(1, kMaxInt)},
      {"resource_monitor_interval", Role::kSets, "resourceMonitorIntervalSeconds",
       Integer(0, kMaxInt)},
      {"profiling_module", Role::kSets, "profiling", ReadProfiling},
      {"process_count_per_node", Role::kSets, "processCountPerNode", Integer(1, kMaxInt)},
      {"rank_mini_batch_count", Role::kSets, "rankMiniBatchCount", ReadRank},
      // What these say is no field of a job: worker_flags.h.
      {"append_row_dataframe_header", Role::kSets, "", ReadBool},
      {"append_row_safe_output", Role::kSets, "", ReadBool},
      {"amlbi_dataframe_mixed_types", Role::kSets, "", ReadBool},
      {"amlbi_async_mode", Role::kSets, "", ReadBool},
      {"amlbi_pf_enabled", Role::kSets, "", ReadBool},
      {"amlbi_pf_run_mode", Role::kSets, "", ReadText},
      {"amlbi_file_format", Role::kSets, "", ReadText},
      {"amlbi_mini_batch_rows", Role::kSets, "miniBatchSize", Integer(1, kMaxInt)},
      {"resume_from", Role::kSets, "", ReadText},
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

std::vector<Found> FindFlags(const std::vector<std::string>& arguments) {
  std::vector<Found> all;
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    if (!word.starts_with("--")) continue;
    const size_t equals = std::min(word.find('='), word.size());
    const std::string name = word.substr(2, equals - 2);
    Found found{.index = i, .written = word.substr(0, equals), .value = {}, .value_index = i};
    found.flag = FindFlag(name, found.abbreviated);
    if (found.flag == nullptr && !name.starts_with("amlbi_")) continue;
    if (equals < word.size()) {
      found.value = word.substr(equals + 1);
    } else if (i + 1 < arguments.size() && IsValue(arguments[i + 1])) {
      found.value = arguments[i + 1];
      found.value_index = i + 1;
    }
    all.push_back(std::move(found));
  }
  return all;
}

std::variant<api::Node, Misfit> ReadValue(const Found& found) {
  if (!found.value) return Misfit{"has no value", "write the value as the next item"};
  return found.flag->read(*found.value);
}

}  // namespace parallelrun::azure
