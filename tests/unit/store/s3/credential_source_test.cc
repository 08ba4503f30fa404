// Which credentials are used: decided from variables and files as plain data.
#include "store/s3/credential_source.h"

#include <gtest/gtest.h>

#include <string>

namespace parallelrun::store::s3 {
namespace {

const std::map<std::string, std::string> kKeyVariables{
    {"AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"}, {"AWS_SECRET_ACCESS_KEY", "secret-of-keys"}};
const std::map<std::string, std::string> kIdentityVariables{
    {"AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token"}, {"AWS_ROLE_ARN", "arn:aws:iam::1:role/job"}};
const std::map<std::string, std::string> kContainerVariables{
    {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials"},
    {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/other"}};

Surroundings With(std::initializer_list<std::map<std::string, std::string>> variables,
                  Profiles profiles = {}) {
  Surroundings around;
  around.profiles = std::move(profiles);
  for (const auto& some : variables) around.variables.insert(some.begin(), some.end());
  return around;
}

Profiles OneProfile(const std::string& name, Profile profile) {
  return {{name, std::move(profile)}};
}

std::string WhyNot(const Surroundings& around) {
  const Result<Source> source = SourceOf(around, "eu-west-1");
  return source.ok() ? "" : source.error().message;
}

template <typename Kind>
Kind ChosenFrom(const Surroundings& around) {
  const Result<Source> source = SourceOf(around, "eu-west-1");
  EXPECT_TRUE(source.ok()) << source.error().message;
  if (!source.ok() || !std::holds_alternative<Kind>(source->from)) {
    ADD_FAILURE() << "another source: " << (source.ok() ? source->told : "");
    return {};
  }
  return std::get<Kind>(source->from);
}

TEST(S3CredentialSource, TheFirstThatIsSetUpCounts) {
  const Profiles profiles = OneProfile(
      "default", {{"aws_access_key_id", "AKIAPROFILE0EXAMPLE"}, {"aws_secret_access_key", "s"}});
  EXPECT_EQ(
      ChosenFrom<Keys>(With({kKeyVariables, kIdentityVariables, kContainerVariables}, profiles)).id,
      "AKIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(ChosenFrom<WebIdentity>(With({kIdentityVariables, kContainerVariables}, profiles)).role,
            "arn:aws:iam::1:role/job");
  EXPECT_EQ(ChosenFrom<ContainerEndpoint>(With({kContainerVariables}, profiles)).token_file,
            "/var/run/other");
  EXPECT_EQ(ChosenFrom<Keys>(With({}, profiles)).id, "AKIAPROFILE0EXAMPLE");
  EXPECT_EQ(ChosenFrom<InstanceMetadata>(With({})).endpoint, "http://169.254.169.254");
}

TEST(S3CredentialSource, WhatIsSetUpByHalfIsAnErrorAndNotPassedOver) {
  for (const char* one : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) {
    const std::string why = WhyNot(With({{{one, "secret-of-keys"}}, kIdentityVariables}));
    EXPECT_NE(why.find("both are needed"), std::string::npos) << why;
    EXPECT_EQ(why.find("secret-of-keys"), std::string::npos);
  }
  EXPECT_NE(WhyNot(With({{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/x"}}, kContainerVariables}))
                .find("AWS_ROLE_ARN is not"),
            std::string::npos);
  EXPECT_NE(
      WhyNot(With({}, OneProfile("default", {{"aws_access_key_id", "x"}}))).find("needs both"),
      std::string::npos);
}

TEST(S3CredentialSource, AWebIdentityAsksTheRegionsStsOrAnother) {
  const WebIdentity identity = ChosenFrom<WebIdentity>(With({kIdentityVariables}));
  EXPECT_EQ(identity.endpoint, "https://sts.eu-west-1.amazonaws.com");
  EXPECT_EQ(identity.session_name, "parallelrun");
  EXPECT_EQ(ChosenFrom<WebIdentity>(
                With({kIdentityVariables, {{"AWS_ENDPOINT_URL_STS", "http://127.0.0.1:1"}}}))
                .endpoint,
            "http://127.0.0.1:1");
  // A role alone is what other tools take on from keys of their own.
  EXPECT_EQ(ChosenFrom<InstanceMetadata>(With({{{"AWS_ROLE_ARN", "x"}}})).endpoint,
            "http://169.254.169.254");
}

TEST(S3CredentialSource, TheTokenOfAContainerGoesToNobodyElse) {
  const auto why = [](const char* url) {
    return WhyNot(With({{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url}}}));
  };
  for (const char* url : {"https://anywhere.example/x", "http://127.0.0.1:80/x?y=1",
                          "http://localhost/x", "http://[::1]/x", "http://169.254.170.2/x",
                          "http://169.254.170.23/x", "http://[fd00:ec2::23]/x"}) {
    EXPECT_EQ(why(url), "") << url;
  }
  for (const char* url : {"http://anywhere.example/x", "http://169.254.170.24/", "x", "ftp://[::1]",
                          "http://169.254.170.2@evil.example/"}) {
    EXPECT_NE(why(url).find("must be https"), std::string::npos) << url;
  }
  EXPECT_EQ(ChosenFrom<ContainerEndpoint>(
                With({{{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1"}}}))
                .url,
            "http://169.254.170.2/v2/credentials/1");
}

TEST(S3CredentialSource, Profiles) {
  const Profile keys{{"aws_access_key_id", "AKIAOTHER000EXAMPLE"},
                     {"aws_secret_access_key", "s"},
                     {"aws_session_token", "t"}};
  EXPECT_EQ(ChosenFrom<Keys>(With({{{"AWS_PROFILE", "other"}}}, OneProfile("other", keys))).token,
            "t");
  EXPECT_NE(WhyNot(With({{{"AWS_PROFILE", "none"}}}, OneProfile("other", keys))).find("none"),
            std::string::npos);
  EXPECT_EQ(
      ChosenFrom<WebIdentity>(
          With({}, OneProfile("default", {{"role_arn", "r"}, {"web_identity_token_file", "f"}})))
          .token_file,
      "f");
  for (const char* setting : {"credential_process", "sso_session", "source_profile"}) {
    const std::string why = WhyNot(With({}, OneProfile("default", {{setting, "x"}})));
    EXPECT_NE(why.find("export-credentials"), std::string::npos) << setting << why;
  }
  // One with a region only says nothing about credentials.
  ChosenFrom<InstanceMetadata>(With({}, OneProfile("default", {{"region", "eu-west-1"}})));
}

TEST(S3CredentialSource, NothingAtAll) {
  const Surroundings around = With({{{"AWS_EC2_METADATA_DISABLED", "true"}}});
  EXPECT_EQ(SourceOf(around, "x").error().code, Code::kPermission);
  EXPECT_NE(WhyNot(around).find("set AWS_ACCESS_KEY_ID"), std::string::npos);
}

TEST(S3CredentialSource, MessagesShowPartsOfIdsAndNoSecrets) {
  EXPECT_EQ(ShownId("AKIAIOSFODNN7EXAMPLE"), "AKIA…MPLE");
  EXPECT_EQ(ShownId("password"), "…");
  const Result<Source> source = SourceOf(With({kKeyVariables}), "x");
  EXPECT_EQ(source->told, "AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)");
}

TEST(S3Surroundings, FilesOfProfiles) {
  const Profiles config = ParseProfiles(
      "# of aws configure\n[default]\nregion = eu-west-1\ns3 =\n  addressing_style = path\n"
      "[profile other]\r\nregion=us-east-2 \r\n[sso-session x]\nregion = no\n[other]\nregion = "
      "no\n",
      true);
  EXPECT_EQ(config, (Profiles{{"default", {{"region", "eu-west-1"}}},
                              {"other", {{"region", "us-east-2"}}}}));
  const Profiles credentials = ParseProfiles(
      "aws_access_key_id = nobodys\n[default]\naws_access_key_id = A=B\n;x = y\n[ other ]\nregion "
      "= z\n"
      "[broken\nx\n",
      false);
  EXPECT_EQ(credentials.at("default"), (Profile{{"aws_access_key_id", "A=B"}}));
  const Profiles merged = Merged(config, credentials);
  EXPECT_EQ(merged.at("default").size(), 2u);
  EXPECT_EQ(merged.at("other").at("region"), "z");
}

TEST(S3Surroundings, WhatIsNearestToTheJobCounts) {
  Surroundings around;
  EXPECT_EQ(around.Region(""), "us-east-1");
  EXPECT_EQ(around.Endpoint(""), "");
  around.profiles["default"] = {{"region", "profile-1"}, {"endpoint_url", "http://profile"}};
  EXPECT_EQ(around.Region(""), "profile-1");
  EXPECT_EQ(around.Endpoint(""), "http://profile");
  around.variables = {{"AWS_DEFAULT_REGION", "default-1"}, {"AWS_ENDPOINT_URL", "http://all"}};
  EXPECT_EQ(around.Region(""), "default-1");
  EXPECT_EQ(around.Endpoint(""), "http://all");
  around.variables["AWS_REGION"] = "region-1";
  around.variables["AWS_ENDPOINT_URL_S3"] = "http://s3";
  EXPECT_EQ(around.Region(""), "region-1");
  EXPECT_EQ(around.Endpoint(""), "http://s3");
  EXPECT_EQ(around.Region("job-1"), "job-1");
  EXPECT_EQ(around.Endpoint("http://job"), "http://job");
}

}  // namespace
}  // namespace parallelrun::store::s3
