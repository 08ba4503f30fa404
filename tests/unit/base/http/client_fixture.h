// For tests of a client: one that is made as they need it, and requests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/http/client.h"
#include "tests/unit/base/http/fixture.h"
#include "tests/unit/base/http/plain_server.h"

namespace parallelrun {

// For either client, with its options.
template <typename ClientType, typename OptionsType>
class ClientFixture : public testing::Test {
 public:
  using Made = ClientType;
  using Options = OptionsType;

 protected:
  static std::unique_ptr<Made> Make(Options options) {
    auto client = Made::Make(std::move(options));
    EXPECT_TRUE(client.ok());
    return std::move(*client);
  }
  static std::unique_ptr<Made> Client(uint16_t port, const std::string& ca = "",
                                      const std::string& token = "") {
    Options options;
    options.base_url =
        (ca.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") + std::to_string(port);
    options.ca_pem = ca;
    options.user_agent = "test/1";
    options.token = [token] { return token; };
    return Make(std::move(options));
  }
  static HttpRequest Request(const std::string& method, const std::string& path,
                             const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    return request;
  }
  static HttpRequest Get() { return Request("GET", "/"); }
  static HttpRequest Post(const std::string& path, const std::string& body) {
    return Request("POST", path, body);
  }
};

class HttpClientTest : public ClientFixture<HttpClient, HttpClientOptions> {};

}  // namespace parallelrun
