#include "coordinator/page/live_page.h"

#include <spdlog/fmt/fmt.h>
#include <zlib.h>

#include <nlohmann/json.hpp>

#include "base/mac.h"
#include "coordinator/access.h"
#include "coordinator/page/assets.h"

namespace parallelrun::coordinator {
namespace {

constexpr char kEvents[] = "/v1/events";
constexpr char kLog[] = "/v1/log";
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// All that it names is relative: it works below any prefix.
constexpr char kHtml[] =
    "<!DOCTYPE html>\n"
    "<html lang=\"en\">\n"
    "<head>\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"referrer\" content=\"no-referrer\">\n"
    "<title>ParallelRun</title>\n"
    "<link rel=\"icon\" href=\"data:,\">\n"
    "<link rel=\"stylesheet\" href=\"page.css\">\n"
    "<script src=\"page.js\" defer></script>\n"
    "</head>\n"
    "<body>\n"
    "<main id=\"page\"></main>\n"
    "<noscript>This page needs JavaScript.</noscript>\n"
    "</body>\n"
    "</html>\n";

// Empty where it cannot be made: then it is sent as it is.
std::string Gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 9, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return "";
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(whole ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace

bool IsLoopbackHost(std::string_view host) {
  const size_t bracket = host.rfind(']');
  const size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    if (host.find_first_not_of("0123456789", colon + 1) != std::string_view::npos) return false;
    host = host.substr(0, colon);
  }
  return host == "127.0.0.1" || host == "localhost" || host == "[::1]";
}

LivePage::LivePage(uint32_t epoch, std::function<nlohmann::json()> make, GiveLog give_log)
    : assets_([] {
        std::array<Asset, 3> all = {
            Asset{"/", "text/html; charset=utf-8", kHtml, "", ""},
            Asset{"/page.js", "text/javascript; charset=utf-8", std::string(kPageScript), "", ""},
            Asset{"/page.css", "text/css; charset=utf-8", std::string(kPageStyle), "", ""}};
        for (Asset& asset : all) {
          asset.gzip = Gzip(asset.text);
          asset.etag = "\"" + Sha256Hex(asset.text).substr(0, 20) + "\"";
        }
        return all;
      }()),
      give_log_(std::move(give_log)),
      events_(epoch, std::move(make)) {}

const LivePage::Asset* LivePage::Find(std::string_view path) const {
  for (const Asset& asset : assets_) {
    if (asset.path == path) return &asset;
  }
  return nullptr;
}

std::optional<std::variant<size_t, HttpResponse>> LivePage::Admit(
    const HttpRequest& request) const {
  const bool is_asset = Find(request.path) != nullptr;
  if (!is_asset && request.path != kEvents && request.path != kLog) return std::nullopt;
  if (!IsLoopbackHost(request.Header("host"))) {
    return ErrorResponse(421, "Invalid",
                         "this page is for 127.0.0.1 and localhost; a proxy has to send that as "
                         "its Host");
  }
  if (!is_asset) return std::nullopt;
  if (request.method != "GET" && request.method != "HEAD") {
    return ErrorResponse(405, "Invalid", "the page is only read");
  }
  return size_t{0};
}

bool LivePage::Handle(const std::shared_ptr<HttpExchange>& exchange, Instant now) {
  const HttpRequest& request = exchange->request();
  if (const Asset* asset = Find(request.path)) {
    exchange->Respond(Give(*asset, request));
    return true;
  }
  if (request.method != "GET") return false;
  if (request.path == kLog) {
    give_log_(exchange);
    return true;
  }
  if (request.path != kEvents) return false;
  events_.Join(exchange, now);
  return true;
}

HttpResponse LivePage::Give(const Asset& asset, const HttpRequest& request) {
  HttpResponse response;
  response.headers = {{"Content-Security-Policy", kPolicy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      {"Cache-Control", "no-cache"},
                      {"Vary", "Accept-Encoding"},
                      {"ETag", asset.etag}};
  if (request.Header("if-none-match") == asset.etag) {
    response.status = 304;
    return response;
  }
  response.content_type = asset.type;
  const bool gzip = !asset.gzip.empty() &&
                    request.Header("accept-encoding").find("gzip") != std::string_view::npos;
  if (gzip) response.headers.push_back({"Content-Encoding", "gzip"});
  response.body = gzip ? asset.gzip : asset.text;
  return response;
}

}  // namespace parallelrun::coordinator
