#include "base/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun {
namespace {

TEST(Version, NamesTheReleaseAndTheLibrariesOfSecurityFixes) {
  const std::string text = VersionText("parallelrun");
  EXPECT_THAT(text, testing::StartsWith("parallelrun " PARALLELRUN_VERSION "\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nOpenSSL [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(text, testing::ContainsRegex("; Boost [0-9]+\\.[0-9]+$"));
}

}  // namespace
}  // namespace parallelrun
