// What goes wrong between us and Azure: it is busy, cuts its answers, does not know us; tokens end,
// clocks differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "store/objects/http_date.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/store/azure_blob/small_azure.h"

namespace parallelrun::store::azure_blob {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Surroundings WithSas() {
  return {{{"AZURE_STORAGE_SAS_TOKEN", "sv=2021-12-02&sp=w&se=2099-01-01&sig=SECRET%3D"}}};
}

std::string StatError(const StoreOptions& options, const Surroundings& around = WithKey()) {
  const auto stat = StoreAt(options, around)->Stat("a");
  EXPECT_FALSE(stat.ok());
  EXPECT_THAT(stat.error().message, AllOf(Not(HasSubstr(Secret())), Not(HasSubstr("SECRET"))));
  return std::string(CodeName(stat.error().code)) + " " + stat.error().message;
}

TEST(AzureBadDays, ABurstOfRefusalsIsWaitedOut) {
  SmallAzure server([](PlainConnection& connection, const Heard&, size_t number) {
    const auto [status, code] =
        number % 2 == 0 ? std::pair{503, "ServerBusy"} : std::pair{500, "OperationTimedOut"};
    return number < 5 && connection.Write(SmallAzure::ErrorReply(status, code));
  });
  server.Put("a", "1");
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server))).names, ElementsAre("a"));
  EXPECT_EQ(server.heard().size(), 6u);
}

TEST(AzureBadDays, HowOftenItThrottledIsCountedWhileItIsAsked) {
  SmallAzure server([](PlainConnection& connection, const Heard&, size_t number) {
    if (number < 2) return connection.Write(SmallAzure::ErrorReply(503, "ServerBusy"));
    return number == 2 && connection.Write(SmallAzure::ErrorReply(500, "OperationTimedOut"));
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_EQ(store->CountAnswers().all, 0u);
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_EQ(store->CountAnswers().throttled, 2u);
  EXPECT_EQ(store->CountAnswers().all, 4u);
}

TEST(AzureBadDays, AStoreThatStaysBusyIsToldSo) {
  SmallAzure server([](PlainConnection& connection, const Heard& heard, size_t) {
    return connection.Write(heard.method == "HEAD" ? "HTTP/1.1 429 X\r\nContent-Length: 0\r\n\r\n"
                                                   : SmallAzure::ErrorReply(503, "ServerBusy"));
  });
  StoreOptions options = QuickOptions(server);
  options.limits.most = 4;
  EXPECT_THAT(StatError(options), AllOf(HasSubstr("Unavailable "),
                                        HasSubstr("overloaded or broken; sent 5 times in vain")));
  EXPECT_EQ(server.heard().size(), 5u);
}

TEST(AzureBadDays, AnAnswerThatIsShortButWholeIsNotTakenForAll) {
  SmallAzure server([](PlainConnection& connection, const Heard& heard, size_t number) {
    return heard.method == "GET" && number < 3 &&
           connection.Write(Reply(206, "xxx", "Content-Range: bytes 0-9/10\r\n"));
  });
  server.Put("a", "0123456789");
  const auto store = StoreAt(QuickOptions(server));
  const auto object = store->Open("a");
  std::string bytes(10, '?');
  const Result<size_t> read = (*object)->ReadAt(0, bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(bytes, "0123456789");
  EXPECT_EQ(server.heard().size(), 4u);
}

TEST(AzureBadDays, AClockThatIsWrongIsMendedByTheServers) {
  const WallTime theirs = SystemClock().WallNow() + seconds(3600);
  SmallAzure server([&](PlainConnection& connection, const Heard& heard, size_t) {
    const auto time = ParseHttpDate(heard.Header("x-ms-date"));
    if (time && *time > theirs - seconds(900)) return false;
    return connection.Write(
        fmt::format("HTTP/1.1 403 X\r\nDate: {}\r\nx-ms-error-code: AuthenticationFailed\r\n"
                    "Content-Length: 0\r\n\r\n",
                    HttpDate(theirs)));
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server));
  for (int i = 0; i < 2; ++i) {
    const auto stat = store->Stat("a");
    ASSERT_TRUE(stat.ok()) << stat.error().message;
  }
  EXPECT_EQ(server.heard().size(), 3u);  // the first one twice
}

TEST(AzureBadDays, EachRefusalSaysWhoseItIsAndWhatToDo) {
  std::string code;
  int status = 403;
  SmallAzure server([&](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(fmt::format(
        "HTTP/1.1 {} X\r\nx-ms-error-code: {}\r\nx-ms-request-id: r1\r\nContent-Length: 0\r\n\r\n",
        status, code));
  });
  const StoreOptions options = QuickOptions(server);
  const std::string place =
      "Permission looking at abfss://container@account.dfs.core.windows.net/a: ";
  code = "AuthenticationFailed";
  EXPECT_THAT(StatError(options),
              AllOf(HasSubstr(place + "the key does not belong to account account at 127.0.0.1:"),
                    HasSubstr("check AZURE_STORAGE_KEY of the environment (403 "
                              "AuthenticationFailed, request r1)")));
  EXPECT_THAT(StatError(options, WithSas()),
              HasSubstr("does not accept AZURE_STORAGE_SAS_TOKEN of the environment (a SAS, sp=w, "
                        "until 2099-01-01): it has ended"));
  code = "AuthorizationPermissionMismatch";
  EXPECT_THAT(StatError(options, WithSas()), HasSubstr("it needs permission read (sp=r)"));
  EXPECT_THAT(ListAll(*StoreAt(options, WithSas())).error,
              HasSubstr("it needs permission list (sp=l)"));
  code = "AuthorizationFailure";
  EXPECT_THAT(StatError(options),
              AllOf(HasSubstr("the key does not belong"), HasSubstr("or the account's firewall")));
  code = "KeyBasedAuthenticationNotPermitted";
  EXPECT_THAT(StatError(options), HasSubstr("account account takes no keys"));
  code = "SomethingNew";
  status = 400;
  EXPECT_THAT(StatError(options), AllOf(HasSubstr("Invalid "), HasSubstr("SomethingNew")));
}

TEST(AzureBadDays, ASecretThatCanBeReadOnTheWayIsNotSent) {
  StoreOptions options;
  options.url = "abfss://container@account.dfs.core.windows.net";
  options.endpoint = "http://192.0.2.1:10000/account";
  const auto store = MakeStore(options, WithSas(), std::make_shared<SystemClock>());
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(store.error().message,
              AllOf(HasSubstr("may be sent over https only"), Not(HasSubstr("SECRET"))));
}

// Entra ID, as far as it matters here.
class Entra {
 public:
  explicit Entra(int refused = 0)
      : server_([this, refused](PlainConnection& connection) {
          for (std::string text = connection.ReadRequest(); !text.empty();
               text = connection.ReadRequest()) {
            const std::lock_guard lock(mutex_);
            asked_.emplace_back(text);
            connection.Write(
                refused != 0
                    ? Reply(refused, R"({"error":"x","error_description":"AADSTS7: no\r\nT"})")
                    : Reply(200, fmt::format(R"({{"access_token":"token-{}","expires_in":3599}})",
                                             asked_.size())));
          }
        }) {
    std::ofstream(file()) << "the assertion\n";
  }
  Surroundings around() const {
    return {{{"AZURE_FEDERATED_TOKEN_FILE", file()},
             {"AZURE_CLIENT_ID", "client"},
             {"AZURE_TENANT_ID", "tenant"},
             {"AZURE_AUTHORITY_HOST", server_.url() + "/"}}};
  }
  std::vector<Heard> asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  std::string file() const { return folder_.path("token"); }

  TempFolder folder_;
  std::mutex mutex_;  // guards what follows, up to the server
  std::vector<Heard> asked_;
  PlainServer server_;
};

TEST(AzureIdentity, ATokenIsFetchedOnceAndAgainWhenTheServerSaysThatItEnded) {
  Entra entra;
  SmallAzure server([](PlainConnection& connection, const Heard& heard, size_t number) {
    if (heard.Header("Authorization") == "Bearer token-1" && number < 2) return false;
    if (heard.Header("Authorization") == "Bearer token-2") return false;
    return connection.Write(
        "HTTP/1.1 401 X\r\nx-ms-error-code: InvalidAuthenticationInfo\r\n"
        "Content-Length: 0\r\n\r\n");
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server), entra.around());
  for (int i = 0; i < 4; ++i) {
    const auto stat = store->Stat("a");
    ASSERT_TRUE(stat.ok()) << stat.error().message;
  }
  ASSERT_EQ(entra.asked().size(), 2u);
  const Heard first = entra.asked().front();
  EXPECT_EQ(first.path, "/tenant/oauth2/v2.0/token");
  EXPECT_EQ(QueryParameter(first.body, "client_assertion"), "the assertion");
  EXPECT_EQ(QueryParameter(first.body, "client_id"), "client");
  EXPECT_EQ(QueryParameter(first.body, "scope"), "https://storage.azure.com/.default");
}

TEST(AzureIdentity, WhatIsMissingIsTheRole) {
  Entra entra;
  SmallAzure server([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallAzure::ErrorReply(403, "AuthorizationPermissionMismatch"));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server), entra.around())).error,
              HasSubstr("the role Storage Blob Data Reader is missing on container container of "
                        "account account: grant it to the workload identity client"));
}

TEST(AzureIdentity, ARefusalOfEntraIsToldAndNothingElseIsTried) {
  Entra entra(400);
  SmallAzure server;
  const std::string error = ListAll(*StoreAt(QuickOptions(server), entra.around())).error;
  EXPECT_THAT(error, AllOf(HasSubstr("the workload identity client"), HasSubstr("AADSTS7: no;"),
                           HasSubstr("trust this service account"), Not(HasSubstr("assertion"))));
  EXPECT_TRUE(server.heard().empty());
}

}  // namespace
}  // namespace parallelrun::store::azure_blob
