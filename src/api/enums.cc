#include "api/enums.h"

namespace parallelrun::api {

template <typename E>
using Words = std::vector<std::pair<std::string_view, E>>;

template <>
const Words<InputKind>& EnumWords() {
  static const Words<InputKind> words = {{"files", InputKind::kFiles},
                                         {"tabular", InputKind::kTabular},
                                         {"jsonLines", InputKind::kJsonLines}};
  return words;
}

template <>
const Words<Access>& EnumWords() {
  static const Words<Access> words = {{"Path", Access::kPath}, {"Uri", Access::kUri}};
  return words;
}

template <>
const Words<AllowEmpty>& EnumWords() {
  static const Words<AllowEmpty> words = {{"Never", AllowEmpty::kNever},
                                          {"Existing", AllowEmpty::kExisting},
                                          {"Missing", AllowEmpty::kMissing}};
  return words;
}

template <>
const Words<ManifestFormat>& EnumWords() {
  static const Words<ManifestFormat> words = {{"Text", ManifestFormat::kText},
                                              {"CSV", ManifestFormat::kCsv},
                                              {"JSONLines", ManifestFormat::kJsonLines}};
  return words;
}

template <>
const Words<Duplicates>& EnumWords() {
  static const Words<Duplicates> words = {{"Fail", Duplicates::kFail}, {"Keep", Duplicates::kKeep}};
  return words;
}

template <>
const Words<TabularFormat>& EnumWords() {
  static const Words<TabularFormat> words = {{"CSV", TabularFormat::kCsv},
                                             {"TSV", TabularFormat::kTsv},
                                             {"Parquet", TabularFormat::kParquet}};
  return words;
}

template <>
const Words<HeaderMode>& EnumWords() {
  static const Words<HeaderMode> words = {{"AllFiles", HeaderMode::kAllFiles},
                                          {"FirstFile", HeaderMode::kFirstFile},
                                          {"None", HeaderMode::kNone}};
  return words;
}

template <>
const Words<ColumnType>& EnumWords() {
  static const Words<ColumnType> words = {{"integer", ColumnType::kInteger},
                                          {"number", ColumnType::kNumber},
                                          {"boolean", ColumnType::kBoolean},
                                          {"text", ColumnType::kText}};
  return words;
}

template <>
const Words<Typing>& EnumWords() {
  static const Words<Typing> words = {{"Once", Typing::kOnce},
                                      {"PerMiniBatch", Typing::kPerMiniBatch}};
  return words;
}

template <>
const Words<BadRows>& EnumWords() {
  static const Words<BadRows> words = {{"Fail", BadRows::kFail}, {"Skip", BadRows::kSkip}};
  return words;
}

template <>
const Words<OutputAction>& EnumWords() {
  static const Words<OutputAction> words = {{"AppendRow", OutputAction::kAppendRow},
                                            {"SummaryOnly", OutputAction::kSummaryOnly}};
  return words;
}

template <>
const Words<OutputFormat>& EnumWords() {
  static const Words<OutputFormat> words = {{"text", OutputFormat::kText},
                                            {"jsonl", OutputFormat::kJsonl},
                                            {"csv", OutputFormat::kCsv},
                                            {"parquet", OutputFormat::kParquet}};
  return words;
}

template <>
const Words<SideFiles>& EnumWords() {
  static const Words<SideFiles> words = {{"Direct", SideFiles::kDirect},
                                         {"Staged", SideFiles::kStaged}};
  return words;
}

template <>
const Words<OutputOrder>& EnumWords() {
  static const Words<OutputOrder> words = {{"MiniBatch", OutputOrder::kMiniBatch},
                                           {"Completion", OutputOrder::kCompletion}};
  return words;
}

template <>
const Words<IfExists>& EnumWords() {
  static const Words<IfExists> words = {{"Fail", IfExists::kFail},
                                        {"Resume", IfExists::kResume},
                                        {"Overwrite", IfExists::kOverwrite},
                                        {"RetryFailed", IfExists::kRetryFailed}};
  return words;
}

template <>
const Words<Encryption>& EnumWords() {
  static const Words<Encryption> words = {{"AES256", Encryption::kAes256},
                                          {"aws:kms", Encryption::kKms}};
  return words;
}

template <>
const Words<ShortReturn>& EnumWords() {
  static const Words<ShortReturn> words = {{"Keep", ShortReturn::kKeep},
                                           {"Fail", ShortReturn::kFail}};
  return words;
}

template <>
const Words<LoggingLevel>& EnumWords() {
  static const Words<LoggingLevel> words = {{"WARNING", LoggingLevel::kWarning},
                                            {"INFO", LoggingLevel::kInfo},
                                            {"DEBUG", LoggingLevel::kDebug}};
  return words;
}

template <>
const Words<Profiling>& EnumWords() {
  static const Words<Profiling> words = {{"None", Profiling::kNone},
                                         {"cProfile", Profiling::kCProfile},
                                         {"profile", Profiling::kProfile}};
  return words;
}

template <>
const Words<Disruption>& EnumWords() {
  static const Words<Disruption> words = {{"Allow", Disruption::kAllow},
                                          {"Avoid", Disruption::kAvoid},
                                          {"Budget", Disruption::kBudget}};
  return words;
}

template <>
const Words<OnOutputTaken>& EnumWords() {
  static const Words<OnOutputTaken> words = {{"Wait", OnOutputTaken::kWait},
                                             {"Fail", OnOutputTaken::kFail}};
  return words;
}

}  // namespace parallelrun::api
