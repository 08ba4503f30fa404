// For tests of the client: one that is made as they need it, and requests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/http/client.h"
#include "tests/unit/base/http/fixture.h"
#include "tests/unit/base/http/plain_server.h"

namespace parallelrun {

class HttpClientTest : public testing::Test {
 protected:
  static std::unique_ptr<HttpClient> Make(HttpClientOptions options) {
    auto client = HttpClient::Make(std::move(options));
    EXPECT_TRUE(client.ok());
    return std::move(*client);
  }
  static std::unique_ptr<HttpClient> Client(uint16_t port, const std::string& ca = "",
                                            const std::string& token = "") {
    HttpClientOptions options;
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

}  // namespace parallelrun
