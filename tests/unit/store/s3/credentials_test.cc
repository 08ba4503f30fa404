// Credentials from servers that give them: asked for as they want it, renewed in time, and nothing
// of them in a message.
#include "store/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <latch>
#include <string>

#include "store/s3/timestamps.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using testing::HasSubstr;
using testing::Not;

class SetClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  WallTime WallNow() const override { return wall + (now - Instant()); }
  Instant now{};
  WallTime wall = *ParseIsoTime("2026-11-23T12:00:00Z");
};

class S3CredentialsTest : public testing::Test {
 protected:
  S3CredentialsTest() {
    std::string name = std::filesystem::temp_directory_path() / "s3.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~S3CredentialsTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& text) {
    const std::string path = folder_ / "token";
    std::ofstream(path, std::ios::trunc) << text;
    return path;
  }
  // Of the keys that there are, or why there are none.
  static std::string IdOf(Credentials& credentials) {
    const Result<Keys> keys = credentials.Get();
    return keys.ok() ? keys->id : keys.error().message;
  }
  Credentials From(const Source& source) { return {source, FetchOptions{}, clock_}; }

  static std::string KeysJson(const std::string& id, const std::string& ends) {
    return fmt::format(
        R"({{"Code":"Success","AccessKeyId":"{}","SecretAccessKey":"{}","Token":"t",)"
        R"("Expiration":"{}"}})",
        id, kSecret, ends);
  }
  static std::string AssumedXml(const std::string& id, const std::string& ends) {
    return fmt::format(
        "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"
        "<AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey>"
        "<SessionToken>t</SessionToken><Expiration>{}</Expiration></Credentials>"
        "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>",
        id, kSecret, ends);
  }

  std::filesystem::path folder_;
  std::shared_ptr<SetClock> clock_ = std::make_shared<SetClock>();
};

TEST_F(S3CredentialsTest, AWebIdentityIsHandedToStsAndReadAnewForEach) {
  SmallS3 sts([](PlainConnection& connection, const Heard&, size_t number) {
    return connection.Write(
        SmallS3::Reply(200, AssumedXml(fmt::format("ASIA{}", number), "2026-11-23T13:00:00Z")));
  });
  const std::string file = File("token+1\n");
  Credentials credentials =
      From({WebIdentity{file, "arn:aws:iam::1:role/job", "me", sts.url()}, "identity"});
  EXPECT_EQ(IdOf(credentials), "ASIA0");
  EXPECT_EQ(IdOf(credentials), "ASIA0");
  ASSERT_EQ(sts.heard().size(), 1u);
  const Heard first = sts.heard()[0];
  EXPECT_EQ(first.method, "POST");
  EXPECT_EQ(
      first.body,
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole"
      "%2Fjob&RoleSessionName=me&WebIdentityToken=token%2B1");
  EXPECT_EQ(first.Header("Authorization"), "");
  File("token2");
  clock_->now += seconds(55 * 60);
  EXPECT_EQ(IdOf(credentials), "ASIA1");
  EXPECT_THAT(sts.heard()[1].body, HasSubstr("WebIdentityToken=token2"));
}

TEST_F(S3CredentialsTest, AWebIdentityThatFailsDoesNotFallThroughToTheNodesRole) {
  SmallS3 sts([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(
        403,
        "<ErrorResponse><Error><Code>AccessDenied</Code><Message>not authorized</Message>"
        "</Error></ErrorResponse>"));
  });
  SmallS3 metadata;
  SmallS3 server;
  Surroundings around;
  around.variables = {{"AWS_WEB_IDENTITY_TOKEN_FILE", File("identity-token")},
                      {"AWS_ROLE_ARN", "arn:aws:iam::1:role/job"},
                      {"AWS_ENDPOINT_URL_STS", sts.url()},
                      {"AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url()}};
  const AllNames all = ListAll(*StoreAt(QuickOptions(server), around));
  EXPECT_THAT(all.error, HasSubstr("the role arn:aws:iam::1:role/job of the web identity in "));
  EXPECT_THAT(all.error, HasSubstr("answered 403 AccessDenied, not authorized"));
  EXPECT_THAT(all.error, Not(HasSubstr("identity-token")));
  EXPECT_EQ(metadata.heard().size(), 0u);
  EXPECT_EQ(server.heard().size(), 0u);
}

TEST_F(S3CredentialsTest, AContainersEndpointIsShownItsToken) {
  SmallS3 giver([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(200, KeysJson("ASIA", "2026-11-23T18:00:00Z")));
  });
  Credentials credentials =
      From({ContainerEndpoint{giver.url() + "/v1/keys?x=1", "", File("  Token of mine\n")}, "it"});
  EXPECT_EQ(credentials.Get()->token, "t");
  const Heard heard = giver.heard().at(0);
  EXPECT_EQ(heard.path, "/v1/keys");
  EXPECT_EQ(heard.query, "x=1");
  EXPECT_EQ(heard.Header("Authorization"), "Token of mine");
}

TEST_F(S3CredentialsTest, TheInstanceIsAskedByItsSecondVersion) {
  SmallS3 metadata([](PlainConnection& connection, const Heard& heard, size_t) {
    const std::string roles = "/latest/meta-data/iam/security-credentials/";
    if (heard.method == "PUT" && heard.path == "/latest/api/token") {
      return connection.Write(SmallS3::Reply(200, "session"));
    }
    if (heard.Header("X-aws-ec2-metadata-token") != "session") {
      return connection.Write(SmallS3::Reply(401, ""));
    }
    if (heard.path == roles) return connection.Write(SmallS3::Reply(200, "node role"));
    if (heard.path != roles + "node role") return connection.Write(SmallS3::Reply(404, ""));
    return connection.Write(SmallS3::Reply(200, KeysJson("ASIANODE", "2026-11-23T18:00:00Z")));
  });
  Credentials credentials = From({InstanceMetadata{metadata.url()}, "the node"});
  const Result<Keys> keys = credentials.Get();
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->id, "ASIANODE");
}

TEST_F(S3CredentialsTest, AnInstanceWithoutARoleAndNoInstanceAtAllAreTold) {
  SmallS3 bare([](PlainConnection& connection, const Heard& heard, size_t) {
    return connection.Write(heard.method == "PUT" ? SmallS3::Reply(200, "session")
                                                  : SmallS3::Reply(404, ""));
  });
  EXPECT_THAT(From({InstanceMetadata{bare.url()}, "the node"}).Get().error().message,
              AllOf(HasSubstr("no credentials for S3 were found: set AWS_ACCESS_KEY_ID"),
                    HasSubstr("this instance has no role")));
  // Many a machine that is none of AWS's has something there that refuses.
  SmallS3 refuses([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(403, ""));
  });
  EXPECT_THAT(From({InstanceMetadata{refuses.url()}, "the node"}).Get().error().message,
              HasSubstr("no credentials for S3 were found: set AWS_ACCESS_KEY_ID"));
  std::string gone;
  {
    const SmallS3 server;
    gone = server.url();
  }
  const Error error = From({InstanceMetadata{gone}, "the node"}).Get().error();
  EXPECT_EQ(error.code, Code::kPermission);
  EXPECT_THAT(error.message, HasSubstr("set AWS_ACCESS_KEY_ID"));
}

TEST_F(S3CredentialsTest, OldOnesServeWhileNewOnesCannotBeHad) {
  SmallS3 giver([](PlainConnection& connection, const Heard&, size_t number) {
    return connection.Write(number == 0
                                ? SmallS3::Reply(200, KeysJson("ASIA0", "2026-11-23T13:00:00Z"))
                                : SmallS3::Reply(403, kSecret));
  });
  Credentials credentials = From({ContainerEndpoint{giver.url() + "/", "", ""}, "it"});
  EXPECT_EQ(IdOf(credentials), "ASIA0");
  clock_->now += seconds(56 * 60);
  EXPECT_EQ(IdOf(credentials), "ASIA0");
  EXPECT_EQ(giver.heard().size(), 2u);
  EXPECT_EQ(IdOf(credentials), "ASIA0");  // and it is not asked each time
  EXPECT_EQ(giver.heard().size(), 2u);
  clock_->now += seconds(4 * 60);
  const Result<Keys> ended = credentials.Get();
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.error().message, "credentials for S3: it: answered 403");
}

TEST_F(S3CredentialsTest, AStopEndsTheWaitForThem) {
  std::latch heard(1);
  SmallS3 silent([&](PlainConnection& connection, const Heard&, size_t) {
    heard.count_down();
    connection.WaitForClient();
    return true;
  });
  std::stop_source source;
  Credentials credentials({ContainerEndpoint{silent.url() + "/", "", ""}, "it"},
                          {"", seconds(1000), source.get_token()}, clock_);
  auto keys = std::async(std::launch::async, [&] { return credentials.Get(); });
  heard.wait();
  source.request_stop();
  EXPECT_FALSE(keys.get().ok());
}

TEST_F(S3CredentialsTest, ATokenWithALineBreakIsNotSent) {
  SmallS3 giver;
  Credentials credentials =
      From({ContainerEndpoint{giver.url() + "/", "a\r\nX: secret-part", ""}, "it"});
  const Result<Keys> keys = credentials.Get();
  ASSERT_FALSE(keys.ok());
  EXPECT_THAT(keys.error().message, Not(HasSubstr("secret-part")));
  EXPECT_EQ(giver.heard().size(), 0u);
}

TEST_F(S3CredentialsTest, KeysInFilesAreReadAnewEachHalfMinute) {
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::trunc) << text << "\n";
  };
  write("accessKeyId", "AKIAOLD0000000000001");
  write("secretAccessKey", kSecret);
  Credentials credentials = From(SourceOf(KeyFiles{folder_, "Secret photos-keys"}));
  EXPECT_EQ(credentials.told(), "Secret photos-keys");
  const Result<Keys> keys = credentials.Get();
  ASSERT_TRUE(keys.ok()) << keys.error().message;
  EXPECT_EQ(keys->id, "AKIAOLD0000000000001");
  EXPECT_EQ(keys->secret, kSecret);
  EXPECT_EQ(keys->token, "") << "there need be none";

  write("accessKeyId", "AKIANEW0000000000002");
  write("sessionToken", "token");
  EXPECT_EQ(IdOf(credentials), "AKIAOLD0000000000001");
  clock_->now += seconds(31);
  EXPECT_EQ(IdOf(credentials), "AKIANEW0000000000002");
  EXPECT_EQ(credentials.Get()->token, "token");
}

TEST_F(S3CredentialsTest, KeysThatAreNotWholeAreToldByTheirSecret) {
  Credentials credentials = From(SourceOf(KeyFiles{folder_, "Secret photos-keys"}));
  EXPECT_THAT(IdOf(credentials), AllOf(HasSubstr("Secret photos-keys"), HasSubstr("accessKeyId")));
  std::ofstream(folder_ / "accessKeyId") << "AKIAOLD0000000000001";
  std::ofstream(folder_ / "secretAccessKey") << "\n";
  const std::string said = IdOf(credentials);
  EXPECT_THAT(said, AllOf(HasSubstr("its secretAccessKey is empty"), Not(HasSubstr("AKIAOLD"))));
}

TEST_F(S3CredentialsTest, FilesAreReadWithinABound) {
  EXPECT_EQ(*ReadTrimmed(File(" \na b\r\n")), "a b");
  EXPECT_EQ(ReadTrimmed(File(std::string(2'000'000, 'a'))).error().code, Code::kInvalid);
  EXPECT_EQ(ReadTrimmed(folder_ / "none").error().code, Code::kNotFound);
  EXPECT_FALSE(ReadTrimmed(folder_).ok());
}

}  // namespace
}  // namespace parallelrun::store::s3
