#include "store/azure_blob/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::store::azure_blob {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(AzureAddress, TheSameHoweverItIsWritten) {
  for (const char* url : {"abfss://photos@data.dfs.core.windows.net/2026/a b",
                          "abfss://photos@data.dfs.core.windows.net/2026/a b/",
                          "https://data.blob.core.windows.net/photos/2026/a b/"}) {
    const Result<Address> address = ParseAddress(url);
    ASSERT_TRUE(address.ok()) << address.error().message;
    EXPECT_EQ(address->Url(""), "abfss://photos@data.dfs.core.windows.net/2026/a b");
    EXPECT_EQ(address->Url("c"), "abfss://photos@data.dfs.core.windows.net/2026/a b/c");
    EXPECT_EQ(address->KeyOf("c"), "2026/a b/c");
    const Result<Server> server = ServerOf(*address, "");
    ASSERT_TRUE(server.ok());
    EXPECT_EQ(server->url, "https://data.blob.core.windows.net");
    EXPECT_EQ(server->path_prefix, "/photos");
  }
  for (const char* url :
       {"abfss://photos@data.dfs.core.windows.net", "https://data.blob.core.windows.net/photos"}) {
    EXPECT_EQ(ParseAddress(url)->KeyOf("a"), "a");
  }
}

TEST(AzureAddress, OtherCloudsAndEndpoints) {
  const Result<Address> china = ParseAddress("abfss://c-1@data.dfs.core.chinacloudapi.cn/p");
  EXPECT_EQ(ServerOf(*china, "")->url, "https://data.blob.core.chinacloudapi.cn");
  const Result<Address> zone = ParseAddress("https://data.z6.blob.storage.azure.net/photos");
  EXPECT_EQ(zone->Url(""), "abfss://photos@data.z6.dfs.storage.azure.net");
  EXPECT_EQ(ServerOf(*zone, "")->url, "https://data.z6.blob.storage.azure.net");
  const Result<Server> azurite = ServerOf(*china, "http://127.0.0.1:10000/data");
  EXPECT_EQ(azurite->url, "http://127.0.0.1:10000");
  EXPECT_EQ(azurite->path_prefix, "/data/c-1");
  EXPECT_TRUE(azurite->is_private);
  EXPECT_FALSE(ServerOf(*china, "http://azurite:10000/data")->is_private);
  EXPECT_FALSE(ServerOf(*china, "ftp://127.0.0.1").ok());
}

TEST(AzureAddress, WhatIsNoneSaysWhatToWrite) {
  for (const char* url :
       {"abfss://photos/2026", "abfss://@data.dfs.core.windows.net/", "abfss://photos@data",
        "abfss://photos@data.blob.core.windows.net/x", "https://data.dfs.core.windows.net/photos",
        "https://data.blob.core.windows.net", "https://data.blob.core.windows.net/p",
        "https://Data.blob.core.windows.net/photos", "abfss://a--b@data.dfs.core.windows.net",
        "https://example.com/photos", "abfss://photos@data.dfs.a:b/x"}) {
    const Result<Address> address = ParseAddress(url);
    ASSERT_FALSE(address.ok()) << url;
    EXPECT_EQ(address.error().code, Code::kInvalid);
    EXPECT_THAT(address.error().message, HasSubstr(url));
  }
  EXPECT_THAT(ParseAddress("abfss://photos/2026").error().message,
              HasSubstr("write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"));
  EXPECT_THAT(ParseAddress("https://data.blob.core.windows.net/photos/a%20b").error().message,
              HasSubstr("write %20 as a space"));
  EXPECT_TRUE(ParseAddress("https://data.blob.core.windows.net/photos/100%/%4/%zz").ok());
  EXPECT_THAT(ParseAddress("https://photos.s3.eu-west-1.amazonaws.com/a").error().message,
              HasSubstr("is written s3://BUCKET/PREFIX"));
}

TEST(AzureAddress, ASignatureInAUrlIsRefusedAndShownToNobody) {
  for (const char* url : {"https://data.blob.core.windows.net/photos/x?sv=1&sig=SECRET",
                          "https://data.blob.core.windows.net/photos?sp=r",
                          "abfss://photos@data.dfs.core.windows.net/x?sv=1&sig=SECRET"}) {
    const Error error = ParseAddress(url).error();
    EXPECT_THAT(error.message, HasSubstr("AZURE_STORAGE_SAS_TOKEN")) << url;
    EXPECT_THAT(error.message, Not(HasSubstr("sp=r")));
    EXPECT_THAT(error.message, Not(HasSubstr("SECRET")));
  }
  EXPECT_TRUE(ParseAddress("abfss://photos@data.dfs.core.windows.net/what?").ok());
}

}  // namespace
}  // namespace parallelrun::store::azure_blob
