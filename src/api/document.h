// Reads the text of a job file, YAML or JSON, into a tree that knows where every value stands.
// What comes from outside is bounded before it is touched: 1 MiB, 64 levels, 100,000 values
// (aliases count as often as they are used). Duplicate keys are refused: yaml-cpp would keep the
// first of them and kubectl the last. Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/node.h"
#include "api/problem.h"

namespace parallelrun::api {

inline constexpr size_t kMaxDocumentBytes = 1 << 20;
inline constexpr int kMaxDocumentDepth = 64;
inline constexpr size_t kMaxDocumentValues = 100000;

// What a plain scalar is: YAML 1.1's numbers, booleans and nulls, as the API server reads a job; or
// a text as it is written, but for null, as Azure ML's loader reads its files: there `y` is a name.
enum class PlainScalars { kTyped, kTexts };

struct Document {
  Node job;                        // the ParallelRunJob of the file; null when there are errors
  Problems problems;               // why it could not be read
  std::vector<std::string> notes;  // what was passed over: "line 1: ConfigMap digits-code: ..."
};

// Of several YAML documents in `text`, or objects in a List, takes the one ParallelRunJob.
Document ReadDocument(std::string_view text);

// The only document of `text`, whatever it is, with the same bounds.
Document ReadForeignDocument(std::string_view text, PlainScalars plain = PlainScalars::kTyped);

// An object that was JSON already, as from the API server; no positions.
Document JsonDocument(const nlohmann::json& object);

}  // namespace parallelrun::api
