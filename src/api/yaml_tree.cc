#include "api/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "api/document.h"
#include "api/scalar.h"
#include "api/text.h"

namespace parallelrun::api {
namespace {

Position At(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1, nullptr}; }

// Leaves the parser with one problem; never leaves this file.
struct ReadStopped {
  Problem problem;
};

[[noreturn]] void Stop(const Position& at, std::string field, std::string what, std::string mend) {
  throw ReadStopped{{.field = std::move(field),
                     .what = std::move(what),
                     .mend = std::move(mend),
                     .line = at.line,
                     .column = at.column}};
}

size_t CountValues(const Node& node) {
  size_t count = 1;
  for (const Node& item : node.items) count += CountValues(item);
  for (const Node::Field& field : node.fields) count += CountValues(field.value);
  return count;
}

int DepthOf(const Node& node) {
  int depth = 0;
  for (const Node& item : node.items) depth = std::max(depth, DepthOf(item));
  for (const Node::Field& field : node.fields) depth = std::max(depth, DepthOf(field.value));
  return depth + 1;
}

std::string_view LineAt(std::string_view text, int line) {
  for (; line > 1 && !text.empty(); --line) {
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool IsIndentedWithTab(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  return begin != std::string_view::npos && line.substr(0, begin).find('\t') != std::string::npos;
}

// A tab where a line is indented is no YAML, and the parser speaks of the map or list that it does
// not find there, or of the one that the line before had begun.
Problem NoYaml(std::string_view text, const YAML::Exception& error) {
  const Position at = At(error.mark);
  for (const int line : {at.line, at.line + 1}) {
    if (at.line < 1 || !IsIndentedWithTab(LineAt(text, line))) continue;
    return {.what = "not YAML: a tab indents this line",
            .mend = "write spaces in its place",
            .line = line,
            .column = 1};
  }
  return {.what = "not YAML: " + error.msg, .line = at.line, .column = at.column};
}

// Builds one tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(PlainScalars plain, size_t& values) : plain_(plain), values_(values) {}

  Node TakeRoot() { return std::move(root_); }
  Problems TakeProblems() { return std::move(problems_); }

  void OnDocumentStart(const YAML::Mark& mark) override { root_.at = At(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.at = At(mark);
    Add(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      Stop(At(mark), Path(), "an alias within the value that it stands for", "write the value out");
    }
    Charge(CountValues(found->second) - 1, At(mark));
    if (static_cast<int>(frames_.size()) + DepthOf(found->second) > kMaxDocumentDepth) {
      StopTooDeep(At(mark));
    }
    Add(found->second, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = Scalar(At(mark), tag, value);
    const bool is_key =
        !frames_.empty() && frames_.back().node.kind == Node::Kind::kMap && !frames_.back().has_key;
    if (is_key && tag == "?" && value == "<<") {
      Stop(At(mark), Path(), "merge keys (<<) are not supported", "write the fields out");
    }
    node.at = At(mark);
    Add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Node::Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Node::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Frame {
    Node node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    Position key_at;
    std::unordered_map<std::string, int> lines;  // of the keys so far
  };

  // A tree of which much is copied by aliases must not outgrow memory.
  void Charge(size_t values, const Position& at) {
    values_ += values;
    if (values_ > kMaxDocumentValues) {
      Stop(at, Path(), "the file holds more than " + std::to_string(kMaxDocumentValues) + " values",
           "move data out of the job file");
    }
  }

  [[noreturn]] void StopTooDeep(const Position& at) {
    Stop(at, Path(), "nested deeper than " + std::to_string(kMaxDocumentDepth) + " levels", "");
  }

  Node Scalar(const Position& at, const std::string& tag, const std::string& value) {
    constexpr std::string_view kCore = "tag:yaml.org,2002:";
    Node node;
    std::optional<Node> resolved = ResolveScalar(value);
    const bool is_null = resolved && resolved->kind == Node::Kind::kNull;
    if (tag == "!" || tag == std::string(kCore) + "str" ||
        (plain_ == PlainScalars::kTexts && tag == "?" && !is_null)) {
      node.kind = Node::Kind::kString;
      node.text = value;
      return node;
    }
    if (!resolved) Stop(at, Path(), Quoted(value) + " is not a finite number", "");
    if (tag == "?" || tag.empty()) return std::move(*resolved);
    const bool fits = tag.starts_with(kCore) &&
                      ((tag.ends_with(":int") && resolved->kind == Node::Kind::kInteger) ||
                       (tag.ends_with(":float") && (resolved->kind == Node::Kind::kInteger ||
                                                    resolved->kind == Node::Kind::kNumber)) ||
                       (tag.ends_with(":bool") && resolved->kind == Node::Kind::kBool) ||
                       (tag.ends_with(":null") && resolved->kind == Node::Kind::kNull));
    if (!fits) {
      Stop(at, Path(), "the tag " + Quoted(tag) + " does not fit " + Quoted(value),
           "remove the tag, and put text in quotes");
    }
    return std::move(*resolved);
  }

  void Open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (tag != "?" && tag != "!" && !tag.empty() && tag != "tag:yaml.org,2002:map" &&
        tag != "tag:yaml.org,2002:seq") {
      Stop(At(mark), Path(), "the tag " + Quoted(tag) + " is not supported", "remove the tag");
    }
    if (static_cast<int>(frames_.size()) >= kMaxDocumentDepth) StopTooDeep(At(mark));
    if (!frames_.empty() && frames_.back().node.kind == Node::Kind::kMap &&
        !frames_.back().has_key) {
      Stop(At(mark), Path(), "a key must be text, not a list or a map", "");
    }
    Frame frame;
    frame.node.kind = kind;
    frame.node.at = At(mark);
    frame.anchor = anchor;
    frames_.push_back(std::move(frame));
  }

  void Close() {
    Node node = std::move(frames_.back().node);
    const YAML::anchor_t anchor = frames_.back().anchor;
    frames_.pop_back();
    Add(std::move(node), anchor);
  }

  void Add(Node node, YAML::anchor_t anchor) {
    Charge(1, node.at);
    if (anchor != 0) {
      Charge(CountValues(node), node.at);
      anchors_[anchor] = node;
    }
    if (frames_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = frames_.back();
    if (frame.node.kind == Node::Kind::kList) {
      frame.node.items.push_back(std::move(node));
    } else if (!frame.has_key) {
      TakeKey(frame, node);
    } else {
      frame.has_key = false;
      AddField(frame, std::move(node));
    }
  }

  void TakeKey(Frame& frame, const Node& node) {
    switch (node.kind) {
      case Node::Kind::kString: frame.key = node.text; break;
      case Node::Kind::kBool: frame.key = node.boolean ? "true" : "false"; break;
      case Node::Kind::kInteger:
      case Node::Kind::kNumber: frame.key = node.ToJson().dump(); break;
      default: Stop(node.at, Path(), "a key must be text", "put it in quotes");
    }
    frame.key_at = node.at;
    frame.has_key = true;
  }

  void AddField(Frame& frame, Node node) {
    const auto [known, is_new] = frame.lines.try_emplace(frame.key, frame.key_at.line);
    if (is_new) {
      frame.node.fields.push_back({frame.key, frame.key_at, std::move(node)});
      return;
    }
    problems_.push_back({.field = JoinPath(Path(), frame.key),
                         .what = "given twice, in line " + std::to_string(known->second) +
                                 " and in line " + std::to_string(frame.key_at.line),
                         .mend = "keep one of them",
                         .line = frame.key_at.line,
                         .column = frame.key_at.column});
  }

  // Of the value that is being read.
  std::string Path() const {
    std::string path;
    for (const Frame& frame : frames_) {
      if (frame.node.kind == Node::Kind::kList) {
        path = JoinPath(path, frame.node.items.size());
      } else if (frame.has_key) {
        path = JoinPath(path, frame.key);
      }
    }
    return path;
  }

  const PlainScalars plain_;
  size_t& values_;
  Node root_;
  Problems problems_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, Node> anchors_;
};

}  // namespace

YamlTrees ReadYamlTrees(std::string_view text, PlainScalars plain) {
  YamlTrees read;
  size_t values = 0;
  try {
    std::istringstream stream(JoinSurrogates(text));
    YAML::Parser parser(stream);
    while (true) {
      TreeBuilder builder(plain, values);
      if (!parser.HandleNextDocument(builder)) break;
      YamlTree tree{builder.TakeRoot(), builder.TakeProblems()};
      if (tree.root.kind != Node::Kind::kNull) read.trees.push_back(std::move(tree));
    }
    return read;
  } catch (const ReadStopped& stopped) {
    return {{}, {stopped.problem}};
  } catch (const YAML::Exception& error) {
    return {{}, {NoYaml(text, error)}};
  } catch (const std::exception& error) {
    return {{}, {{.what = std::string("cannot be read: ") + error.what()}}};
  }
}

}  // namespace parallelrun::api
