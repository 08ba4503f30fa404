#include "api/block_yaml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "api/scalar.h"
#include "api/text.h"
#include "base/json.h"

namespace parallelrun::api {
namespace {

// Letters that have no meaning to YAML, and that nothing makes a number, a date or a boolean of.
bool IsPlain(const std::string& text) {
  const auto first = static_cast<unsigned char>(text.empty() ? '\0' : text[0]);
  if (first >= 0x80 || (std::isalpha(first) == 0 && first != '/')) return false;
  const bool simple = std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && (std::isalnum(byte) != 0 || c == '_' || c == '-' || c == '.' || c == '/');
  });
  if (!simple) return false;
  const std::optional<Node> read = ResolveScalar(text);
  return read && read->kind == Node::Kind::kString;
}

// Bytes of what YAML does not allow unescaped at `at`: controls, line separators, byte order marks.
// 0 when there is none.
size_t UnprintableAt(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  if (byte(at) < 0x20 || byte(at) == 0x7F) return 1;
  if (byte(at) == 0xC2 && byte(at + 1) < 0xA0) return 2;
  if (byte(at) == 0xE2 && byte(at + 1) == 0x80 && (byte(at + 2) & 0xFE) == 0xA8) return 3;
  if (byte(at) == 0xEF && byte(at + 1) == 0xBB && byte(at + 2) == 0xBF) return 3;
  if (byte(at) == 0xEF && byte(at + 1) == 0xBF && byte(at + 2) >= 0xBE) return 3;
  return 0;
}

unsigned Character(const std::string& text, size_t at, size_t size) {
  unsigned value = static_cast<unsigned char>(text[at]);
  if (size == 2) value &= 0x1F;
  if (size == 3) value &= 0x0F;
  for (size_t i = 1; i < size; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
  }
  return value;
}

// JSON's writer knows which bytes are none.
std::string AsUtf8(const std::string& text) {
  if (IsUtf8(text)) return text;
  using nlohmann::json;
  const auto read = ParseJson(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
  return read ? read->get<std::string>() : "";
}

std::string InQuotes(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size();) {
    const size_t size = UnprintableAt(text, at);
    if (text[at] == '"' || text[at] == '\\') {
      out += std::string("\\") + text[at++];
    } else if (text[at] == '\n' || text[at] == '\t') {
      out += text[at++] == '\n' ? "\\n" : "\\t";
    } else if (size > 0) {
      out += fmt::format("\\u{:04x}", Character(text, at, size));
      at += size;
    } else {
      out += text[at++];
    }
  }
  return out + "\"";
}

// Several lines, none of them of blanks alone, that a literal block keeps as they are.
bool FitsLiteral(const std::string& text) {
  if (text.find('\n') == std::string::npos || std::isspace(static_cast<unsigned char>(text[0])))
    return false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\n' && text[at] != '\t' && UnprintableAt(text, at) > 0) return false;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (!line.empty() && line.find_first_not_of(" \t") == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}

std::string Literal(const std::string& text, const std::string& indent) {
  std::string out = text.ends_with("\n\n") ? "|+\n" : text.ends_with('\n') ? "|\n" : "|-\n";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) out += indent + text.substr(at, end - at);
    out += "\n";
    at = end + 1;
  }
  return out;
}

std::string Scalar(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kString: return YamlText(node.text);
    case Node::Kind::kList: return "[]";
    case Node::Kind::kMap: return "{}";
    default: return node.ToJson().dump();
  }
}

bool HasFields(const Node& node) {
  return std::any_of(node.fields.begin(), node.fields.end(), [](const Node::Field& field) {
    return field.value.kind != Node::Kind::kNull;
  });
}

// The lines of a map or list; the first one is not indented.
void WriteBlock(const Node& node, const std::string& indent, std::string& out) {
  bool first = true;
  const auto begin = [&] {
    if (!first) out += indent;
    first = false;
  };
  for (const Node& item : node.items) {
    begin();
    out += "- ";
    if (HasFields(item) || !item.items.empty()) {
      WriteBlock(item, indent + "  ", out);
    } else {
      out += Scalar(item) + "\n";
    }
  }
  for (const Node::Field& field : node.fields) {
    const Node& value = field.value;
    if (value.kind == Node::Kind::kNull) continue;
    begin();
    out += YamlText(field.key) + ":";
    if (HasFields(value) || !value.items.empty()) {
      out += "\n" + indent + "  ";
      WriteBlock(value, indent + "  ", out);
    } else if (value.kind == Node::Kind::kString && FitsLiteral(value.text)) {
      out += " " + Literal(value.text, indent + "  ");
    } else {
      out += " " + Scalar(value) + "\n";
    }
  }
}

}  // namespace

std::string YamlText(const std::string& text) { return IsPlain(text) ? text : QuotedYaml(text); }

std::string QuotedYaml(const std::string& text) { return InQuotes(AsUtf8(text)); }

std::string QuotedYaml(const std::vector<std::string>& texts) {
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + QuotedYaml(text);
  return "[" + list + "]";
}

std::string BlockYaml(const Node& node) {
  std::string out;
  WriteBlock(node, "", out);
  return out;
}

Node TextNode(std::string text) {
  Node node;
  node.kind = Node::Kind::kString;
  node.text = std::move(text);
  return node;
}

Node MapNode(std::vector<Node::Field> fields) {
  Node node;
  node.kind = Node::Kind::kMap;
  node.fields = std::move(fields);
  return node;
}

}  // namespace parallelrun::api
