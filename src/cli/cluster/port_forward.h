// `kubectl port-forward` as a child: a port of this machine that leads to one of a pod. On the
// loop's thread, which must be the main one: the child dies with it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/fd.h"

namespace parallelrun::cli {

// The port in "Forwarding from 127.0.0.1:41223 -> 8443"; 0: the line does not say one.
uint16_t ForwardedPort(const std::string& line);

class PortForward {
 public:
  // `up` hears the port. `ended` hears the last that kubectl said, once it is gone; it may destroy
  // this.
  PortForward(EventLoop& loop, std::function<void(uint16_t port)> up,
              std::function<void(const std::string& why)> ended);
  // Ends kubectl.
  ~PortForward();
  PortForward(const PortForward&) = delete;
  PortForward& operator=(const PortForward&) = delete;

  // `words`: all of kubectl's, with ":PORT" for any port of this machine.
  Status Start(std::vector<std::string> words);

 private:
  void Read();
  void Take(const std::string& line);
  void End();

  EventLoop& loop_;
  const std::function<void(uint16_t port)> up_;
  const std::function<void(const std::string& why)> ended_;
  pid_t pid_ = -1;
  Fd said_;  // its output and its errors
  EventLoop::WatchId watch_ = EventLoop::WatchId::kNone;
  std::string line_;
  std::string last_;
};

}  // namespace parallelrun::cli
