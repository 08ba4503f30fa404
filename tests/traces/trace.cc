#include "tests/traces/trace.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "tests/support/source_folder.h"

namespace parallelrun::trace {
namespace {

constexpr std::string_view kRule = "----";
constexpr const char* kRewrite = "PARALLELRUN_REWRITE_TRACES";

std::string Folder() { return SourceFolder() + "tests/traces/"; }

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool IsSpace(char c) { return c == ' ' || c == '\t'; }

// Words are parted by spaces; within quotes, which are left out, a space is a space.
bool NextWord(std::string_view& text, std::string& word) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  if (text.empty()) return false;
  word.clear();
  bool quoted = false;
  while (!text.empty() && (quoted || !IsSpace(text.front()))) {
    if (text.front() == '"') {
      quoted = !quoted;
    } else {
      word += text.front();
    }
    text.remove_prefix(1);
  }
  return true;
}

// What stands in a text between two blank lines: commands, and what they say.
class Player {
 public:
  Player(std::string_view text, const Driver& driver) : lines_(Lines(text)), driver_(driver) {}

  Played Play() {
    while (at_ < lines_.size() && played_.mistakes.empty()) {
      if (lines_[at_].empty() || lines_[at_].front() == '#') {
        Copy();
      } else {
        PlayBlock();
      }
    }
    return std::move(played_);
  }

 private:
  void Copy() { played_.text += lines_[at_++] + "\n"; }

  void PlayBlock() {
    const std::vector<Command> commands = TakeCommands();
    std::vector<std::string> said;
    for (Command command : commands) {
      for (std::string& line : Lines(driver_(command))) {
        if (line.empty()) command.Wrong("the driver said an empty line");
        said.push_back(std::move(line));
      }
      const std::vector<Finding> mistakes = command.Mistakes();
      played_.mistakes.insert(played_.mistakes.end(), mistakes.begin(), mistakes.end());
      if (!mistakes.empty()) return;
    }
    if (said.empty()) said.emplace_back("ok");
    Compare(said);
    played_.text += std::string(kRule) + "\n";
    for (const std::string& line : said) played_.text += line + "\n";
  }

  // Up to the rule. An indented line goes on with the command above it.
  std::vector<Command> TakeCommands() {
    std::vector<std::pair<std::string, int>> texts;
    while (at_ < lines_.size() && !lines_[at_].empty() && lines_[at_] != kRule) {
      const std::string& line = lines_[at_];
      const int number = static_cast<int>(at_) + 1;
      if (line.front() != '#') {
        if (IsSpace(line.front()) && !texts.empty()) {
          texts.back().first += line;
        } else {
          texts.emplace_back(line, number);
        }
      }
      Copy();
    }
    std::vector<Command> commands;
    for (const auto& [text, number] : texts) commands.emplace_back(text, number);
    return commands;
  }

  void Compare(const std::vector<std::string>& said) {
    const bool has_rule = at_ < lines_.size() && lines_[at_] == kRule;
    if (has_rule) ++at_;
    const size_t begin = at_;
    std::vector<std::string> stands;
    while (at_ < lines_.size() && !lines_[at_].empty()) stands.push_back(lines_[at_++]);
    if (has_rule && stands == said) return;
    const auto [where, unused] =
        std::mismatch(stands.begin(), stands.end(), said.begin(), said.end());
    const auto line = begin + static_cast<size_t>(where - stands.begin());
    played_.differences.push_back({static_cast<int>(line) + 1, Difference(stands, said)});
  }

  std::vector<std::string> lines_;
  const Driver& driver_;
  size_t at_ = 0;
  Played played_;
};

std::string Read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

Command::Command(std::string_view text, int line) : line_(line) {
  NextWord(text, name_);
  std::string word;
  while (NextWord(text, word)) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      words_.push_back(word);
      continue;
    }
    const std::string key = word.substr(0, equals);
    if (!named_.emplace(key, word.substr(equals + 1)).second) Wrong(key + " is there twice");
    untaken_.push_back(key);
  }
}

std::string Command::Word(const char* what) {
  if (words_.empty()) {
    Wrong(std::string("says no ") + what);
    return "";
  }
  std::string word = words_.front();
  words_.erase(words_.begin());
  return word;
}

uint64_t Command::NumberWord(const char* what) {
  return words_.empty() ? (Wrong(std::string("says no ") + what), 0) : NumberIn(Word(what));
}

std::vector<std::string> Command::Words() { return std::exchange(words_, {}); }

bool Command::Flag(const std::string& word) { return std::erase(words_, word) > 0; }

std::string Command::Text(const std::string& key) {
  if (!Has(key)) Wrong("needs " + key + "=…");
  return Text(key, "");
}

std::string Command::Text(const std::string& key, const std::string& otherwise) {
  std::erase(untaken_, key);
  const auto found = named_.find(key);
  return found == named_.end() ? otherwise : found->second;
}

uint64_t Command::Number(const std::string& key) {
  return Has(key) ? NumberIn(Text(key)) : (Wrong("needs " + key + "=…"), 0);
}

uint64_t Command::Number(const std::string& key, uint64_t otherwise) {
  return Has(key) ? NumberIn(Text(key)) : otherwise;
}

std::vector<std::string> Command::List(const std::string& key) {
  std::vector<std::string> parts;
  std::istringstream text(Text(key, ""));
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

std::map<std::string, std::string> Command::Named() {
  untaken_.clear();
  return named_;
}

uint64_t Command::NumberIn(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) Wrong("\"" + text + "\" is no number");
  return number;
}

std::vector<Finding> Command::Mistakes() const {
  if (!mistakes_.empty()) return mistakes_;  // it may not have come to the words below
  std::vector<Finding> all;
  for (const std::string& word : words_) all.push_back({line_, name_ + ": what is " + word + "?"});
  for (const std::string& key : untaken_) {
    all.push_back({line_, name_ + ": what is " + key + "=…?"});
  }
  return all;
}

Played Play(std::string_view text, const Driver& driver) { return Player(text, driver).Play(); }

std::string Difference(const std::vector<std::string>& stands,
                       const std::vector<std::string>& now) {
  // same[i][j]: how many lines the outputs from i and j on have in common, in order.
  std::vector<std::vector<size_t>> same(stands.size() + 1, std::vector<size_t>(now.size() + 1));
  for (size_t i = stands.size(); i-- > 0;) {
    for (size_t j = now.size(); j-- > 0;) {
      same[i][j] =
          stands[i] == now[j] ? same[i + 1][j + 1] + 1 : std::max(same[i + 1][j], same[i][j + 1]);
    }
  }
  std::string text;
  size_t i = 0;
  size_t j = 0;
  while (i < stands.size() || j < now.size()) {
    if (i < stands.size() && j < now.size() && stands[i] == now[j]) {
      text += "  " + stands[i++] + "\n";
      ++j;
    } else if (j == now.size() || (i < stands.size() && same[i + 1][j] >= same[i][j + 1])) {
      text += "- " + stands[i++] + "\n";
    } else {
      text += "+ " + now[j++] + "\n";
    }
  }
  return text;
}

std::vector<std::string> Texts(const std::string& folder) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(Folder() + folder)) {
    if (entry.path().extension() != ".txt") continue;
    texts.push_back(folder + "/" + entry.path().filename().string());
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

std::string NameOf(const testing::TestParamInfo<std::string>& text) {
  std::string name = std::filesystem::path(text.param).stem().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

void Check(const std::string& text, const Driver& driver) {
  const std::string path = Folder() + text;
  const std::string stands = Read(path);
  ASSERT_NE(stands, "") << path << " is empty";
  ASSERT_EQ(stands.front(), '#') << path << " does not begin by saying what it shows";
  const Played played = Play(stands, driver);
  for (const Finding& mistake : played.mistakes) {
    ADD_FAILURE_AT(path.c_str(), mistake.line) << mistake.text;
  }
  if (!played.mistakes.empty()) return;
  if (std::getenv(kRewrite) != nullptr) {
    if (played.text == stands) return;
    const std::string beside = path + ".new";
    std::ofstream(beside) << played.text;
    std::filesystem::rename(beside, path);
    return;
  }
  for (const Finding& difference : played.differences) {
    ADD_FAILURE_AT(path.c_str(), difference.line)
        << "- stands there, + is said now; " << kRewrite << "=1 writes it down:\n"
        << difference.text;
  }
}

}  // namespace parallelrun::trace
