// escape, count_of, wrap, hex, random, mac, log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/mac.h"
#include "base/random.h"
#include "base/wrap.h"

namespace parallelrun {
namespace {

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("plain ünï 日本 🙂", 100), "plain ünï 日本 🙂");
  EXPECT_EQ(Printable("a\x1b[2J\r\n\tb\x7f", 100), "a\\x1b[2J\\r\\n\\tb\\x7f");
  EXPECT_EQ(Printable(std::string_view("\0x", 2), 100), "\\x00x");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "31m",
                      100),
            "\\u009b31m");                                             // C1: CSI
  EXPECT_EQ(Printable("\xe2\x80\xaegpj.exe", 100), "\\u202egpj.exe");  // right-to-left override
  EXPECT_EQ(Printable("\xe2\x81\xa6x", 100), "\\u2066x");
  EXPECT_EQ(Printable("\xe2\x80\xa8x", 100), "\\u2028x");
}

TEST(JsonText, KeepsEveryByte) {
  EXPECT_EQ(JsonText("plain ünï 🙂"), "\"plain ünï 🙂\"");
  EXPECT_EQ(JsonText("\"\\\n\x01"), R"("\"\\\u000a\u0001")");
  EXPECT_EQ(JsonText(std::string_view("\0", 1)), R"("\u0000")");
  EXPECT_EQ(JsonText("\xff\xc3\xa4\xed\xa0\x80"), "\"\\udcff\xc3\xa4\\udced\\udca0\\udc80\"");
  EXPECT_EQ(JsonText(""), "\"\"");
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(Printable("\xff\xc0\xaf", 100), "\\xff\\xc0\\xaf");           // overlong "/"
  EXPECT_EQ(Printable("\xed\xa0\x80", 100), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80", 100), "\\xf4\\x90\\x80\\x80");  // > U+10FFFF
  EXPECT_EQ(Printable("\xe2\x82", 100), "\\xe2\\x82");                    // cut short
  EXPECT_EQ(Printable("\xe0\x80\x80"
                      "a",
                      100),
            "\\xe0\\x80\\x80"
            "a");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(Printable("abcdef", 6), "abcdef");
  EXPECT_EQ(Printable("abcdef", 5), "abcde...");
  EXPECT_EQ(Printable("aé", 2), "a...");
  EXPECT_EQ(Printable("a\n", 2), "a...");
  EXPECT_EQ(Printable("", 0), "");
}

TEST(Front, CutsBetweenCharacters) {
  EXPECT_EQ(Front("abc", 3), "abc");
  EXPECT_EQ(Front("abc", 2), "ab");
  EXPECT_EQ(Front("a\u20ac", 4), "a\u20ac");
  EXPECT_EQ(Front("a\u20ac", 3), "a");
  EXPECT_EQ(Front("\u20ac", 2), "");
  EXPECT_EQ(Front("\u20acb", 3), "\u20ac");
}

TEST(Hex, IsTwoDigitsAByte) {
  EXPECT_EQ(Hex(std::string_view("\0\x0f\xf0\xff", 4)), "000ff0ff");
  EXPECT_EQ(Hex(std::array<uint8_t, 3>{0x01, 0xab, 0x80}), "01ab80");
  EXPECT_EQ(Hex(""), "");
}

TEST(Hex, ANumberIsNothingButItsDigits) {
  EXPECT_EQ(ParseHex("0"), 0u);
  EXPECT_EQ(ParseHex("00fF"), 0xffu);
  EXPECT_EQ(ParseHex("ffffffffffffffff"), UINT64_MAX);
  for (const char* text : {"", "0x1", "-1", "+1", " 1", "1 ", "g", "00000000000000001"}) {
    EXPECT_EQ(ParseHex(text), std::nullopt) << text;
  }
}

TEST(Random, IsDifferentEachTime) {
  std::set<std::string> seen;
  for (int i = 0; i < 100; ++i) seen.insert(RandomHex(16));
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_THAT(RandomHex(16), testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(RandomHex(0), "");
  EXPECT_NE(RandomU64(), RandomU64());
}

TEST(Mac, AgreesWithRfc4231) {
  EXPECT_EQ(HmacSha256Hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(HmacSha256Hex("", "").size(), 64u);
}

TEST(Mac, SecureEqual) {
  EXPECT_TRUE(SecureEqual("", ""));
  EXPECT_TRUE(SecureEqual("abc", "abc"));
  EXPECT_FALSE(SecureEqual("abc", "abd"));
  EXPECT_FALSE(SecureEqual("abc", "abcd"));
}

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { spdlog::set_default_logger(before_); }
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_F(LogTest, JsonIsOneObjectALine) {
  testing::internal::CaptureStderr();
  SetUpLogging(true, LogLevel::kInfo);
  spdlog::debug("hidden");
  spdlog::warn("two\nlines \"quoted\" \xff");
  const std::string out = testing::internal::GetCapturedStderr();
  ASSERT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
  const auto object = nlohmann::json::parse(out);
  EXPECT_EQ(object["level"], "WARNING");
  EXPECT_EQ(object["message"], "two\nlines \"quoted\" \xef\xbf\xbd");
  EXPECT_THAT(
      object["time"].get<std::string>(),
      testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z"));
}

TEST_F(LogTest, TextStartsWithTimeAndLevel) {
  testing::internal::CaptureStderr();
  SetUpLogging(false, LogLevel::kDebug);
  spdlog::debug("hello");
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_THAT(out, testing::MatchesRegex("[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3} DEBUG hello\n"));
}

TEST(CountOf, OneAndMany) {
  EXPECT_EQ(CountOf(0, "item"), "0 items");
  EXPECT_EQ(CountOf(1, "item"), "1 item");
  EXPECT_EQ(CountOf(2, "item"), "2 items");
  EXPECT_EQ(CountOf(1, "mini-batch"), "1 mini-batch");
  EXPECT_EQ(CountOf(3, "mini-batch"), "3 mini-batches");
  EXPECT_EQ(CountOf(2, "process"), "2 processes");
  EXPECT_EQ(CountOf(18446744073709551615U, "byte"), "18446744073709551615 bytes");
}

TEST(CountOf, ItsVerb) {
  EXPECT_EQ(CountOf(1, "item", "has", "have"), "1 item has");
  EXPECT_EQ(CountOf(2, "item", "has", "have"), "2 items have");
}

TEST(Wrap, BreaksAtSpaces) {
  EXPECT_EQ(Wrapped("short"), "short\n");
  const std::string word(60, 'x');
  EXPECT_EQ(Wrapped(word + " " + word), word + "\n" + word + "\n");
  EXPECT_EQ(Wrapped("a " + word + " " + word, 4), "a " + word + "\n    " + word + "\n");
}

TEST(Wrap, ALongWordStaysWhole) {
  const std::string word(200, 'x');
  EXPECT_EQ(Wrapped(word), word + "\n");
  EXPECT_EQ(Wrapped(word + " b"), word + "\nb\n");
}

}  // namespace
}  // namespace parallelrun
