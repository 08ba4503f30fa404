// What people are told. Whole messages, as they are shown.
#include "store/s3/failure.h"

#include <gtest/gtest.h>

namespace parallelrun::store::s3 {
namespace {

Error Explained(Action action, int status, const std::string& code = "",
                const std::string& message = "", const std::string& id = "") {
  const Request request{action,
                        {"data", "in"},
                        action == Action::kList ? "in/" : "in/a.txt",
                        "AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)"};
  const Result<Server> server = ServerOf("data", "eu-west-1", "https://s3.example", std::nullopt);
  Refusal refusal;
  refusal.status = status;
  refusal.body = {code, message, ""};
  refusal.request_id = id;
  return Explain(request, *server, refusal);
}

TEST(S3Failure, AMissingRightIsNamedWithItsResource) {
  const Error list =
      Explained(Action::kList, 403, "AccessDenied", "Access Denied", "4442587FB7D0A2F9");
  EXPECT_EQ(list.code, Code::kPermission);
  EXPECT_EQ(list.message,
            "listing s3://data/in/ (region eu-west-1): s3:ListBucket is missing on "
            "arn:aws:s3:::data: grant it to AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE) "
            "(403 AccessDenied, Access Denied, request 4442587FB7D0A2F9)");
  EXPECT_EQ(Explained(Action::kRead, 403, "AccessDenied").message,
            "reading s3://data/in/a.txt (region eu-west-1): s3:GetObject is missing on "
            "arn:aws:s3:::data/in/a.txt: grant it to AWS_ACCESS_KEY_ID of the environment "
            "(AKIA…MPLE); without s3:ListBucket on the bucket, S3 says so of objects that are not "
            "there too (403 AccessDenied)");
}

TEST(S3Failure, EachRightThatIsMissingHasItsOwnWords) {
  const struct {
    Action action;
    const char* says;
  } rights[] = {
      {Action::kList, "s3:ListBucket is missing on arn:aws:s3:::data: grant"},
      {Action::kStat, "s3:GetObject is missing on arn:aws:s3:::data/in/a.txt: grant"},
      {Action::kRead, "s3:GetObject is missing on arn:aws:s3:::data/in/a.txt: grant"},
      {Action::kWrite, "s3:PutObject is missing on arn:aws:s3:::data/in/a.txt: grant"},
      {Action::kRemove, "s3:DeleteObject is missing on arn:aws:s3:::data/in/a.txt: "},
      {Action::kEndUpload, "s3:AbortMultipartUpload is missing on arn:aws:s3:::data/in/"}};
  for (const auto& [action, says] : rights) {
    const Error error = Explained(action, 403, "AccessDenied", "Access Denied");
    EXPECT_EQ(error.code, Code::kPermission);
    EXPECT_NE(error.message.find(says), std::string::npos) << error.message;
  }
}

// s3:PutObject was blamed, which was there; the right on the key was not.
TEST(S3Failure, ARightThatS3NamesIsTheOneThatIsTold) {
  const std::string who = "User: arn:aws:iam::123456789012:user/me is not authorized to perform: ";
  const std::string key = "arn:aws:kms:eu-west-1:123456789012:key/0a-1b";
  const std::string why = " because no identity-based policy allows the action";
  Error error = Explained(Action::kWrite, 403, "AccessDenied",
                          who + "kms:GenerateDataKey on resource: " + key + why);
  EXPECT_EQ(error.code, Code::kPermission);
  EXPECT_NE(error.message.find(
                "(region eu-west-1): kms:GenerateDataKey is missing on " + key +
                ": grant it to AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE); the object is "
                "encrypted by that key, whose policy must allow it (403 AccessDenied, User: "),
            std::string::npos)
      << error.message;
  EXPECT_EQ(error.message.find("s3:PutObject"), std::string::npos) << error.message;
  error = Explained(Action::kRead, 403, "AccessDenied", who + "kms:Decrypt on resource: " + key);
  EXPECT_NE(error.message.find("kms:Decrypt is missing on " + key + ": grant it"),
            std::string::npos)
      << error.message;
  error = Explained(Action::kWrite, 403, "AccessDenied",
                    who + "s3:PutObject on resource: \"arn:aws:s3:::data/in/a.txt\" with an " +
                        "explicit deny in a resource-based policy");
  EXPECT_NE(error.message.find("a policy denies s3:PutObject on arn:aws:s3:::data/in/a.txt to "),
            std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("encrypted is met by stores[].encryption"), std::string::npos)
      << error.message;
  // Without a name, as of what is encrypted in another account.
  error = Explained(Action::kRead, 403, "AccessDenied",
                    "The ciphertext refers to a customer master key that does not exist");
  EXPECT_NE(error.message.find("kms:Decrypt is missing on the KMS key by which "
                               "arn:aws:s3:::data/in/a.txt is encrypted, or the key is gone"),
            std::string::npos)
      << error.message;
  error = Explained(Action::kWrite, 400, "KMS.DisabledException", "key/0a-1b is disabled.");
  EXPECT_EQ(error.code, Code::kInvalid);
  EXPECT_NE(error.message.find("the KMS key by which the object is encrypted cannot be used"),
            std::string::npos)
      << error.message;
}

TEST(S3Failure, ANameThatIsNoRightIsNotTakenForOne) {
  for (const char* name : {"", " ", "s3:", ":Put", "a right", "s3:Put\x1b[2J", "s3:<b>"}) {
    const Error error =
        Explained(Action::kWrite, 403, "AccessDenied",
                  std::string("User: x is not authorized to perform: ") + name + " on resource: y");
    EXPECT_NE(error.message.find("s3:PutObject is missing on arn:aws:s3:::data/in/a.txt"),
              std::string::npos)
        << error.message;
  }
  const std::string hostile = Explained(Action::kRead, 403, "AccessDenied",
                                        "is not authorized to perform: s3:GetObject on resource: " +
                                            ("\x1b[2J" + std::string(10'000, 'x')))
                                  .message;
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
  EXPECT_LT(hostile.size(), 3'000u);
}

TEST(S3Failure, WhatIsNotThere) {
  const Error bucket = Explained(Action::kList, 404, "NoSuchBucket");
  EXPECT_EQ(bucket.code, Code::kNotFound);
  EXPECT_EQ(
      bucket.message,
      "listing s3://data/in/ (region eu-west-1): there is no bucket data at s3.example: check "
      "its name and the endpoint (404 NoSuchBucket)");
  EXPECT_EQ(Explained(Action::kRead, 404, "NoSuchKey").code, Code::kNotFound);
  EXPECT_EQ(Explained(Action::kStat, 404).code, Code::kNotFound);
}

TEST(S3Failure, KeysAreBlamedByTheirSource) {
  for (const char* code :
       {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}) {
    const Error error = Explained(Action::kRead, 403, code);
    EXPECT_EQ(error.code, Code::kPermission) << code;
    EXPECT_NE(error.message.find("AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)"),
              std::string::npos)
        << error.message;
    EXPECT_EQ(error.message.find("s3:GetObject"), std::string::npos) << error.message;
  }
}

TEST(S3Failure, OthersSayWhatToDo) {
  EXPECT_NE(Explained(Action::kList, 301, "PermanentRedirect").message.find("AWS_REGION"),
            std::string::npos);
  EXPECT_NE(Explained(Action::kRead, 403, "InvalidObjectState").message.find("restore-object"),
            std::string::npos);
  EXPECT_NE(Explained(Action::kRead, 403, "RequestTimeTooSkewed").message.find("NTP"),
            std::string::npos);
  EXPECT_EQ(Explained(Action::kRead, 412, "PreconditionFailed").code, Code::kStale);
  const Error other = Explained(Action::kList, 400, "InvalidArgument");
  EXPECT_EQ(other.code, Code::kInvalid);
  EXPECT_NE(other.message.find("is it a server for S3"), std::string::npos);
  EXPECT_EQ(Explained(Action::kList, 200, "Strange").code, Code::kInvalid);
}

TEST(S3Failure, WhatMayPassIsUnavailable) {
  const Error error = Explained(Action::kList, 503, "SlowDown");
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_NE(error.message.find("sent 1 times in vain"), std::string::npos);
  Refusal broken;
  broken.broken = "connection refused";
  broken.repeated = 10;
  const Error none = Explain({Action::kList, {"data", ""}, "", "x"},
                             *ServerOf("data", "eu-west-1", "", std::nullopt), broken);
  EXPECT_EQ(none.code, Code::kUnavailable);
  EXPECT_EQ(none.message,
            "listing s3://data/ (region eu-west-1): connection refused, sent 11 times; check the "
            "network and the endpoint");
}

TEST(S3Failure, WhatAServerSaysIsMadeHarmlessAndShort) {
  const std::string message =
      Explained(Action::kRead, 403, "AccessDenied\n\x1b[2J", std::string(10'000, 'x')).message;
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_LT(message.size(), 2'000u);
}

}  // namespace
}  // namespace parallelrun::store::s3
