// What a stranger may send to the HTTP server, on one connection; with the parts of a target.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <charconv>
#include <utility>

#include "base/event_loop_asio.h"
#include "base/http/server/connection.h"
#include "base/http/target.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

struct Host final : HttpConnectionHost {
  explicit Host(EventLoop& l) : loop(l) {
    options.max_header_bytes = 4096;
    gate = [](const HttpRequest& request) -> std::variant<size_t, HttpResponse> {
      if (request.path == "/deny") return TextResponse(401, "who are you?");
      return size_t{1000};
    };
    handler = [](const std::shared_ptr<HttpExchange>& exchange) {
      const HttpRequest& request = exchange->request();
      Expect(request.body.size() <= 1000, "a body is larger than the gate allowed");
      Expect(!request.path.empty() && request.path[0] == '/', "a path does not begin with /");
      for (const HttpHeader& header : request.headers) {
        Expect(header.value.find('\n') == std::string::npos, "a header holds a line break");
      }
      if (const auto segments = PathSegments(request.path); segments.ok()) {
        std::string path;
        for (const std::string& segment : *segments) {
          Expect(segment != ".." && segment.find('/') == std::string::npos, "a path leads away");
          path += "/" + PercentEncode(segment);
        }
        const auto again = PathSegments(path.empty() ? "/" : path);
        Expect(again.ok() && *again == *segments, "a path changes when it is written again");
      }
      QueryParameter(request.query, "a");
      int status = 200;  // or what the path says
      std::from_chars(request.path.data() + 1, request.path.data() + request.path.size(), status);
      HttpResponse response = TextResponse(status, request.method);
      response.headers.push_back({"x-again", std::string(request.Header("x-again"))});
      exchange->Respond(std::move(response));
    };
  }
  void Forget(const std::shared_ptr<HttpConnection>&) override { loop.Stop(); }
  EventLoop& loop;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  if (size > size_t{16} << 10) return 0;  // fits into the socket's buffer
  EventLoop loop;
  const auto host = std::make_shared<Host>(loop);
  int ends[2];
  Expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
         "no socket");
  HttpSocket socket(IoContextOf(loop), boost::asio::ip::tcp::v4(), ends[0]);
  const auto connection = MakeHttpConnection(host, std::move(socket), "fuzz", false, nullptr);
  connection->Start();
  Expect(write(ends[1], data, size) == static_cast<ssize_t>(size), "the input does not fit");
  shutdown(ends[1], SHUT_WR);
  const auto drain = loop.WatchReadable(ends[1], [&] {
    char buffer[4096];
    while (read(ends[1], buffer, sizeof(buffer)) > 0) {
    }
  });
  loop.Run();
  loop.Unwatch(drain);
  close(ends[1]);
  return 0;
}
