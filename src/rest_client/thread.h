// Internal to src/rest_client: the one thread on which all of cpprestsdk runs.
//
// The library closes a connection for a time-out or a cancellation while another of its threads may
// be within a read of the same socket, which it does not guard: with more than one thread the close
// is lost once in some fifty times, and once in some hundred the process crashes.
#pragma once

#include <functional>

namespace parallelrun::rest_client {

// Runs `work` there, after what was posted earlier. It must not throw and must not block. The first
// call starts the thread; when the process exits, work that is ready by then is still done.
void PostToRestThread(std::function<void()> work);

}  // namespace parallelrun::rest_client
