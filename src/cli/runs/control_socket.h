// Where a run on this machine can be asked: a Unix socket for each run, in a folder that is this
// user's alone, under a name made of its state folder. Whoever connects to it has found the run: no
// process number stands anywhere, and a socket that nobody serves is of a command that was killed.
// docs/cli.md, "parallelrun ps", says who uses it; the lines are below.
//
//   {"ask": "status"}               answered by one line; then the connection is closed
//   {"ask": "follow"}               {"progress": {...}} at each change, and {"ended": N,
//                                   "summary": "..."} at the end
//   {"ask": "stop", "now": false}   as Ctrl-C, and then as follow; `now`: as a second Ctrl-C
//
// Both ends are of one release or not: an unknown member is passed over, an unknown word closes.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/time.h"

namespace parallelrun::cli {

// Made if need be. kPermission: it is somebody else's, or open to others.
Result<std::string> ControlFolder();
// The name of a run's socket in it.
std::string ControlName(const std::string& state_folder);

// The run's end. On the loop's thread.
class ControlSocket {
 public:
  struct Answers {
    std::function<nlohmann::json()> status;
    std::function<void(bool now)> stop;
  };

  // `loop` outlives it.
  ControlSocket(EventLoop& loop, Answers answers);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  // The caller holds the lock of the state folder: a socket of its name is nobody's.
  Status Open(const std::string& state_folder);
  bool followed() const;
  // To all who follow. One that does not read what it gets is left.
  void Tell(const nlohmann::json& event);

 private:
  struct Peer {
    Fd socket;
    EventLoop::WatchId watch = EventLoop::WatchId::kNone;
    std::string asked;  // as far as it came
    bool follows = false;
  };

  void Accept();
  void Read(int peer);
  void Answer(int peer, const std::string& line);
  bool Send(const Peer& peer, const nlohmann::json& event) const;
  void Close(int peer);

  EventLoop& loop_;
  const Answers answers_;
  Fd folder_;
  std::string name_;  // in it; empty: not open
  Fd listening_;
  EventLoop::WatchId watch_ = EventLoop::WatchId::kNone;
  std::map<int, Peer> peers_;  // by descriptor
};

// The other end. Blocking, each call with a limit.
class ControlClient {
 public:
  // kNotFound: no run works on that state folder. Removes what a killed one has left.
  static Result<ControlClient> Connect(const std::string& state_folder);
  // Those of all runs of this user, with a folder that cannot be read as none.
  static std::vector<ControlClient> ConnectToAll();

  Status Ask(const nlohmann::json& question);
  // The next line, null at the end. kUnavailable: nothing came in time.
  Result<nlohmann::json> Next(Duration limit);

 private:
  explicit ControlClient(Fd socket) : socket_(std::move(socket)) {}
  static Result<ControlClient> ConnectTo(int folder, const std::string& name);

  Fd socket_;
  std::string read_;
};

}  // namespace parallelrun::cli
