#include "api/document.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/scalar.h"
#include "api/text.h"
#include "api/yaml_tree.h"

namespace parallelrun::api {
namespace {

std::string TextOf(const Node& node, std::string_view key) {
  const Node* const found = node.kind == Node::Kind::kMap ? node.Find(key) : nullptr;
  return found != nullptr && found->kind == Node::Kind::kString ? found->text : std::string();
}

std::string TitleOf(const Node& node) {
  std::string title = TextOf(node, "kind");
  if (title.empty()) title = "a document without kind";
  const Node* const metadata = node.kind == Node::Kind::kMap ? node.Find("metadata") : nullptr;
  const std::string name = metadata != nullptr ? TextOf(*metadata, "name") : std::string();
  return name.empty() ? title : title + " " + name;
}

// Any version and spelling of ours, so that what is wrong with it can be said.
bool IsOurs(const Node& node) {
  return TextOf(node, "kind") == "ParallelRunJob" ||
         TextOf(node, "apiVersion").starts_with("parallelrun.dev/");
}

// The objects of a `kind: List`, as kubectl writes it, stand for documents of their own.
void OpenLists(std::vector<YamlTree>& documents) {
  std::vector<YamlTree> opened;
  for (YamlTree& document : documents) {
    const bool is_list = TextOf(document.root, "kind") == "List";
    const Node* const items = is_list ? document.root.Find("items") : nullptr;
    if (items == nullptr || items->kind != Node::Kind::kList) {
      opened.push_back(std::move(document));
      continue;
    }
    for (const Node& item : items->items) opened.push_back({item, document.problems});
  }
  documents = std::move(opened);
}

void Choose(std::vector<YamlTree> documents, Document& out) {
  OpenLists(documents);
  std::vector<YamlTree*> ours;
  for (YamlTree& document : documents) {
    if (IsOurs(document.root)) ours.push_back(&document);
  }
  // The only document is meant, whatever it says: its problems name what it lacks.
  if (ours.empty() && documents.size() == 1 && TextOf(documents[0].root, "kind").empty()) {
    ours.push_back(&documents[0]);
  }
  if (ours.empty()) {
    std::string found;
    for (const YamlTree& document : documents) {
      found += (found.empty() ? "" : ", ") + TitleOf(document.root);
    }
    out.problems.push_back({.what = "no ParallelRunJob in this file" +
                                    (found.empty() ? std::string() : " (it holds " + found + ")"),
                            .mend = "start it with \"apiVersion: parallelrun.dev/v1alpha1\" and "
                                    "\"kind: ParallelRunJob\""});
    return;
  }
  if (ours.size() > 1) {
    out.problems.push_back({.what = std::to_string(ours.size()) + " ParallelRunJobs in one file (" +
                                    "lines " + std::to_string(ours[0]->root.at.line) + " and " +
                                    std::to_string(ours[1]->root.at.line) + ")",
                            .mend = "put each into a file of its own",
                            .line = ours[1]->root.at.line,
                            .column = ours[1]->root.at.column});
    return;
  }
  for (const YamlTree& document : documents) {
    if (&document == ours[0]) continue;
    out.notes.push_back("line " + std::to_string(document.root.at.line) + ": " +
                        TitleOf(document.root) +
                        " is passed over: only the ParallelRunJob is read here");
  }
  out.problems = std::move(ours[0]->problems);
  if (!HasErrors(out.problems)) out.job = std::move(ours[0]->root);
}

Document Refusal(std::string what, std::string mend, const Position& at) {
  Document document;
  document.problems.push_back(
      {.what = std::move(what), .mend = std::move(mend), .line = at.line, .column = at.column});
  return document;
}

// The first byte that no YAML file may hold, or that yaml-cpp reads in a way of its own: it takes
// some control characters for the end, and a carriage return alone for text.
std::optional<Position> FindControlByte(std::string_view text) {
  Position at{1, 1, nullptr};
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool line_break = byte == '\n' || (byte == '\r' && text.substr(i + 1).starts_with('\n'));
    if ((byte < 0x20 && byte != '\t' && !line_break) || byte == 0x7F) return at;
    ++at.column;
    if (byte == '\n') at = {at.line + 1, 1, nullptr};
  }
  return std::nullopt;
}

Result<Node> FromJson(const nlohmann::json& value, int depth, size_t& values) {
  if (depth > kMaxDocumentDepth) {
    return Error{Code::kInvalid,
                 "nested deeper than " + std::to_string(kMaxDocumentDepth) + " levels"};
  }
  if (++values > kMaxDocumentValues) {
    return Error{Code::kInvalid, "more than " + std::to_string(kMaxDocumentValues) + " values"};
  }
  Node node;
  switch (value.type()) {
    case nlohmann::json::value_t::boolean:
      node.kind = Node::Kind::kBool;
      node.boolean = value.get<bool>();
      node.text = node.boolean ? "true" : "false";
      break;
    case nlohmann::json::value_t::number_integer:
    case nlohmann::json::value_t::number_unsigned:
    case nlohmann::json::value_t::number_float:
      if (value.is_number_float() || (value.is_number_unsigned() && value.get<uint64_t>() >> 63)) {
        return NumberNode(value.get<double>(), value.dump());
      }
      node.kind = Node::Kind::kInteger;
      node.integer = value.get<int64_t>();
      node.text = value.dump();
      break;
    case nlohmann::json::value_t::string:
      node.kind = Node::Kind::kString;
      node.text = value.get<std::string>();
      break;
    case nlohmann::json::value_t::array:
      node.kind = Node::Kind::kList;
      for (const nlohmann::json& item : value) {
        Result<Node> read = FromJson(item, depth + 1, values);
        if (!read.ok()) return read.error();
        node.items.push_back(std::move(*read));
      }
      break;
    case nlohmann::json::value_t::object:
      node.kind = Node::Kind::kMap;
      for (const auto& [key, field] : value.items()) {
        Result<Node> read = FromJson(field, depth + 1, values);
        if (!read.ok()) return read.error();
        node.fields.push_back({key, {}, std::move(*read)});
      }
      break;
    default: break;
  }
  return node;
}

// The documents of a text, within the bounds; problems when there are none.
YamlTrees ReadBounded(std::string_view text, PlainScalars plain) {
  const auto refuse = [](std::string what, std::string mend, const Position& at) {
    return YamlTrees{{}, Refusal(std::move(what), std::move(mend), at).problems};
  };
  if (text.size() > kMaxDocumentBytes) {
    return refuse("the file is larger than 1 MiB", "move data out of the job file", {});
  }
  if (!IsUtf8(text)) return refuse("the file is not UTF-8 text", "save it as UTF-8", {});
  if (const std::optional<Position> at = FindControlByte(text)) {
    return refuse("a control character in the file", "remove it", *at);
  }
  return ReadYamlTrees(text, plain);
}

}  // namespace

Document ReadDocument(std::string_view text) {
  Document document;
  YamlTrees read = ReadBounded(text, PlainScalars::kTyped);
  if (HasErrors(read.problems)) {
    document.problems = std::move(read.problems);
    return document;
  }
  Choose(std::move(read.trees), document);
  return document;
}

Document ReadForeignDocument(std::string_view text, PlainScalars plain) {
  Document document;
  YamlTrees read = ReadBounded(text, plain);
  document.problems = std::move(read.problems);
  if (HasErrors(document.problems)) return document;
  if (read.trees.size() != 1) {
    document.problems.push_back(
        {.what = read.trees.empty() ? "the file is empty" : "the file holds several documents",
         .mend = "give a file with one document"});
    return document;
  }
  document.problems = std::move(read.trees[0].problems);
  document.job = std::move(read.trees[0].root);
  return document;
}

Document JsonDocument(const nlohmann::json& object) {
  size_t values = 0;
  Result<Node> root = FromJson(object, 1, values);
  if (!root.ok()) return Refusal(root.error().message, "", {});
  Document document;
  document.job = std::move(*root);
  return document;
}

}  // namespace parallelrun::api
