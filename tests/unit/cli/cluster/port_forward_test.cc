#include "cli/cluster/port_forward.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <string>
#include <vector>

namespace parallelrun::cli {
namespace {

TEST(PortForward, ThePortStandsInALineOfItsOwn) {
  EXPECT_EQ(ForwardedPort("Forwarding from 127.0.0.1:41223 -> 8443"), 41223);
  for (const char* line :
       {"Forwarding from [::1]:41223 -> 8443", "Forwarding from 127.0.0.1:", "Forwarding from ",
        "Forwarding from 127.0.0.1:99999 -> 8443", "Handling connection for 41223",
        "Forwarding from 127.0.0.1:80evil", ""}) {
    EXPECT_EQ(ForwardedPort(line), 0) << line;
  }
}

struct Heard {
  std::vector<uint16_t> ports;
  std::string why;
};

// What is heard of a shell that does this in place of kubectl, to its end.
Heard Hear(const std::string& script) {
  EventLoop loop;
  Heard heard;
  PortForward forward(
      loop, [&](uint16_t port) { heard.ports.push_back(port); },
      [&](const std::string& why) {
        heard.why = why;
        loop.Stop();
      });
  EXPECT_TRUE(forward.Start({"sh", "-c", script}).ok());
  loop.Run();
  return heard;
}

TEST(PortForward, WhatItSaidLastIsWhyItHasEnded) {
  const Heard heard = Hear(
      "echo 'Forwarding from 127.0.0.1:4001 -> 8443'\n"
      "echo 'error: lost connection to pod' >&2\n"
      "echo 'Handling connection for 4001'\n"
      "exit 1");
  EXPECT_EQ(heard.ports, std::vector<uint16_t>{4001});
  EXPECT_EQ(heard.why, "error: lost connection to pod");
}

TEST(PortForward, ALineWithoutEndIsBounded) {
  EXPECT_EQ(Hear("head -c 100000 /dev/zero; echo; echo last").why, "last");
}

TEST(PortForward, ItEndsWithItsOwner) {
  EventLoop loop;
  {
    PortForward forward(
        loop, [&](uint16_t) { loop.Stop(); }, [](const std::string&) {});
    ASSERT_TRUE(
        forward.Start({"sh", "-c", "echo 'Forwarding from 127.0.0.1:1 -> 1'; exec sleep 3600"})
            .ok());
    loop.Run();
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(PortForward, AProgramThatIsNotThereIsSaid) {
  EventLoop loop;
  PortForward forward(
      loop, [](uint16_t) {}, [](const std::string&) {});
  EXPECT_FALSE(forward.Start({"no-such-kubectl"}).ok());
}

}  // namespace
}  // namespace parallelrun::cli
