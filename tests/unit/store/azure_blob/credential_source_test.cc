#include "store/azure_blob/credential_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/base64.h"

namespace parallelrun::store::azure_blob {
namespace {

using testing::HasSubstr;
using testing::Not;

const Address kAddress{"data", "dfs.core.windows.net", "photos", ""};
const std::string kKey = EncodeBase64("a key");

using Variables = std::map<std::string, std::string>;

Source Used(const Variables& variables) {
  Result<Source> source = SourceOf({variables}, kAddress);
  EXPECT_TRUE(source.ok()) << source.error().message;
  return source.ok() ? *source : Source{};
}

Error Refused(const Variables& variables) {
  const Result<Source> source = SourceOf({variables}, kAddress);
  EXPECT_FALSE(source.ok());
  EXPECT_THAT(source.error().message, Not(HasSubstr("SECRET")));
  return source.error();
}

TEST(AzureCredentials, TheFirstThatIsSetUpCounts) {
  Variables all{{"AZURE_STORAGE_CONNECTION_STRING",
                 "DefaultEndpointsProtocol=https;AccountName=data;AccountKey=" + kKey +
                     ";BlobEndpoint=http://127.0.0.1:1/data;"},
                {"AZURE_STORAGE_ACCOUNT", "data"},
                {"AZURE_STORAGE_KEY", kKey},
                {"AZURE_STORAGE_SAS_TOKEN", "?sv=1&sp=rl&se=2027-01-01&sig=SECRET"},
                {"AZURE_FEDERATED_TOKEN_FILE", "/token"},
                {"AZURE_CLIENT_ID", "id"},
                {"AZURE_TENANT_ID", "tenant"}};
  Source source = Used(all);
  EXPECT_EQ(std::get<SharedKey>(source.from), (SharedKey{"data", "a key"}));
  EXPECT_EQ(source.told, "AZURE_STORAGE_CONNECTION_STRING of the environment");
  EXPECT_EQ(source.endpoint, "http://127.0.0.1:1/data");
  all.erase("AZURE_STORAGE_CONNECTION_STRING");
  source = Used(all);
  EXPECT_EQ(std::get<SharedKey>(source.from), (SharedKey{"data", "a key"}));
  EXPECT_EQ(source.told, "AZURE_STORAGE_KEY of the environment");
  EXPECT_EQ(source.endpoint, "");
  all.erase("AZURE_STORAGE_KEY");
  source = Used(all);
  EXPECT_EQ(std::get<Sas>(source.from).token, "sv=1&sp=rl&se=2027-01-01&sig=SECRET");
  EXPECT_EQ(source.told,
            "AZURE_STORAGE_SAS_TOKEN of the environment (a SAS, sp=rl, until 2027-01-01)");
  all.erase("AZURE_STORAGE_SAS_TOKEN");
  source = Used(all);
  const auto& identity = std::get<WorkloadIdentity>(source.from);
  EXPECT_EQ(identity.token_file, "/token");
  EXPECT_EQ(identity.authority, "https://login.microsoftonline.com");
  EXPECT_EQ(source.told, "the workload identity id (AZURE_FEDERATED_TOKEN_FILE)");
  all.erase("AZURE_FEDERATED_TOKEN_FILE");
  const Error none = Refused(all);
  EXPECT_EQ(none.code, Code::kPermission);
  for (const char* looked_for : {"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_KEY",
                                 "AZURE_STORAGE_SAS_TOKEN", "AZURE_FEDERATED_TOKEN_FILE"}) {
    EXPECT_THAT(none.message, HasSubstr(looked_for));
  }
}

TEST(AzureCredentials, OfConnectionStrings) {
  const auto of = [](const std::string& text) {
    return Variables{{"AZURE_STORAGE_CONNECTION_STRING", text}};
  };
  const Source sas =
      Used(of("BlobEndpoint=https://data.blob.core.windows.net/;"
              "SharedAccessSignature=sv=1&sp=r&sig=SECRET"));
  EXPECT_EQ(std::get<Sas>(sas.from).token, "sv=1&sp=r&sig=SECRET");
  EXPECT_THAT(sas.told, Not(HasSubstr("SECRET")));
  EXPECT_EQ(
      Used(of("AccountName=data;AccountKey=" + kKey + ";EndpointSuffix=core.cloudapi.de")).endpoint,
      "https://data.blob.core.cloudapi.de");
  EXPECT_THAT(Refused(of("AccountName=other;AccountKey=" + kKey)).message,
              HasSubstr("is of account other, and the URL names data"));
  EXPECT_THAT(Refused(of("AccountName=data;AccountKey=SECRET!")).message, HasSubstr("not base64"));
  EXPECT_THAT(Refused(of("AccountName=data")).message, HasSubstr("neither AccountKey nor"));
  EXPECT_THAT(Refused(of("UseDevelopmentStorage=true")).message, HasSubstr("write out"));
}

TEST(AzureCredentials, WhatIsSetUpByHalfOrForAnotherIsAnErrorAndNoOtherCounts) {
  const Variables identity{{"AZURE_FEDERATED_TOKEN_FILE", "/token"},
                           {"AZURE_CLIENT_ID", "id"},
                           {"AZURE_TENANT_ID", "tenant"}};
  Variables other = identity;
  other["AZURE_STORAGE_ACCOUNT"] = "other";
  EXPECT_EQ(Used(other).from.index(), 2u);  // it has a word for tools, and no credential
  other["AZURE_STORAGE_KEY"] = kKey;
  EXPECT_THAT(Refused(other).message, HasSubstr("AZURE_STORAGE_ACCOUNT is of account other"));
  EXPECT_THAT(Refused({{"AZURE_STORAGE_KEY", "SECRET!"}}).message, HasSubstr("not base64"));
  for (const char* sas : {"SECRET", "sig=", "sv=1&sig=SEC RET", "sv=1&sig=SECRET\n"}) {
    EXPECT_THAT(Refused({{"AZURE_STORAGE_SAS_TOKEN", sas}}).message, HasSubstr("is none"));
  }
  for (const char* missing : {"AZURE_CLIENT_ID", "AZURE_TENANT_ID"}) {
    Variables half = identity;
    half.erase(missing);
    EXPECT_THAT(Refused(half).message, HasSubstr(missing));
  }
  Variables spied = identity;
  spied["AZURE_AUTHORITY_HOST"] = "http://login.example.com/";
  EXPECT_THAT(Refused(spied).message, HasSubstr("must be https"));
}

}  // namespace
}  // namespace parallelrun::store::azure_blob
