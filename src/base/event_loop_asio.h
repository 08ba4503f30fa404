// Internal to src/base: the io_context behind an EventLoop, for code that uses Boost.Asio itself.
#pragma once

#include <boost/asio/io_context.hpp>

#include "base/event_loop.h"

namespace parallelrun {

boost::asio::io_context& IoContextOf(EventLoop& loop);

}  // namespace parallelrun
