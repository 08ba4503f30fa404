// For tests of the client: one that is made as they need it, and a request.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "rest_client/client.h"
#include "tests/unit/base/http/fixture.h"

namespace parallelrun::rest_client {

class RestClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { InitRestThread(); }

  static std::unique_ptr<RestClient> Client(uint16_t port, const std::string& ca = "",
                                            const std::string& token = "") {
    RestClientOptions options;
    options.base_url =
        (ca.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") + std::to_string(port);
    options.ca_pem = ca;
    options.user_agent = "test/1";
    options.token = [token] { return token; };
    auto client = RestClient::Make(options);
    EXPECT_TRUE(client.ok());
    return std::move(*client);
  }
  static HttpRequest Post(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    return request;
  }
};

}  // namespace parallelrun::rest_client
