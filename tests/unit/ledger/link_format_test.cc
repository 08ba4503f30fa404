// The bytes of a link.
#include "ledger/link_format.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include "base/bytes.h"

namespace parallelrun::ledger {
namespace {

using ::testing::HasSubstr;

std::string LinkWith(const std::string& content) {
  LinkHeader header;
  header.log = {3, 0xabcdef, 0x99};
  header.kind = LinkKind::kRecords;
  header.records = 2;
  header.number = 7;
  header.first = 5;
  header.offset = 1000;
  header.digest = 0x1234;
  std::string link(kLinkHeaderSize, '\0');
  link += content;
  WriteLinkHeader(header, link);
  return link;
}

TEST(LinkFormatTest, IsThatOfTheSpecification) {
  const std::string link = LinkWith("content");
  ASSERT_EQ(link.size(), 128u + 7);
  Decoder from(link);
  EXPECT_EQ(from.Bytes(8), "PRLEDGER");
  EXPECT_EQ(from.U32(), 2u);
  EXPECT_EQ(from.U32(), 3u);
  EXPECT_EQ(from.U64(), 0xabcdefu);
  EXPECT_EQ(from.U64(), 0x99u);
  from.Bytes(24);
  EXPECT_EQ(from.U64(), XXH3_64bits(link.data(), 56));
  EXPECT_EQ(from.U32(), 2u);
  EXPECT_EQ(from.U32(), 2u);
  EXPECT_EQ(from.U32(), 7u);
  EXPECT_EQ(from.U32(), 0u);
  EXPECT_EQ(from.U64(), 7u);
  EXPECT_EQ(from.U64(), 5u);
  EXPECT_EQ(from.U64(), 1000u);
  EXPECT_EQ(from.U64(), 0x1234u);
  EXPECT_EQ(from.U64(), XXH3_64bits("content", 7));
  EXPECT_EQ(from.U64(), XXH3_64bits(link.data(), 120));
  EXPECT_EQ(from.Bytes(7), "content");
  EXPECT_TRUE(from.Done());
}

TEST(LinkFormatTest, IsReadAsItWasWritten) {
  const std::string bytes = LinkWith("content");
  const Result<Link> link = DecodeLink(bytes);
  ASSERT_TRUE(link.ok()) << link.error().message;
  EXPECT_EQ(link->header.log.epoch, 3u);
  EXPECT_EQ(link->header.log.run_id, 0xabcdefu);
  EXPECT_EQ(link->header.log.nonce, 0x99u);
  EXPECT_EQ(link->header.kind, LinkKind::kRecords);
  EXPECT_EQ(link->header.records, 2u);
  EXPECT_EQ(link->header.number, 7u);
  EXPECT_EQ(link->header.first, 5u);
  EXPECT_EQ(link->header.digest, 0x1234u);
  EXPECT_EQ(link->content, "content");
  EXPECT_EQ(link->end(), 1000u + 128 + 7);
  EXPECT_EQ(link->digest(), ExtendDigest(0x1234, link->header.checksum));
}

TEST(LinkFormatTest, AnyOtherByteIsSeen) {
  const std::string whole = LinkWith("content");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_FALSE(DecodeLink(damaged).ok()) << i;
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(DecodeLink(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeLink(whole + "x").ok());
  EXPECT_EQ(DecodeLink(whole + "x").error().code, Code::kCorrupt);
}

// Whatever a later format has behind them, the first 64 bytes say who wrote it.
TEST(LinkFormatTest, OneOfALaterFormatNamesItsVersion) {
  const std::string link = LinkWith("content");
  std::string later = link.substr(0, 8);
  Encoder to(later);
  to.U32(3);
  to.Bytes(std::string_view(link).substr(12, 20));
  to.Bytes("9.8.7" + std::string(19, '\0'));
  to.U64(XXH3_64bits(later.data(), later.size()));
  later += std::string(200, 'x');
  const Result<Link> decoded = DecodeLink(later);
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.error().code, Code::kInvalid);
  EXPECT_THAT(decoded.error().message, HasSubstr("parallelrun 9.8.7"));
}

TEST(LinkFormatTest, NamesHaveEightDigits) {
  EXPECT_EQ(LinkName(1), "00000001");
  EXPECT_EQ(LinkName(kMostLinks), "99999999");
  EXPECT_EQ(NumberOfLink("00000012"), 12u);
  for (const char* name : {"", "0", "12", "00000000", "0000012", "000000012", "0000001x",
                           "-0000001", "100000000", "00000012 "}) {
    EXPECT_EQ(NumberOfLink(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace parallelrun::ledger
