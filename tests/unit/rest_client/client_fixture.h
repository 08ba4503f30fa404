// For tests of the client: as those of base's client have it.
#pragma once

#include <gtest/gtest.h>

#include "rest_client/client.h"
#include "tests/unit/base/http/client_fixture.h"

namespace parallelrun::rest_client {

class RestClientTest : public ClientFixture<RestClient, RestClientOptions> {
 protected:
  static void SetUpTestSuite() { InitRestThread(); }
};

}  // namespace parallelrun::rest_client
