#include "coordinator/access.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/http/target.h"
#include "base/mac.h"
#include "job/node_messages.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kSmallBody = size_t{64} << 10;
constexpr size_t kLogBody = size_t{8} << 20;
constexpr size_t kSideFilesBody = size_t{1} << 20;  // 100 names, and what stands beside them

bool Carries(const HttpRequest& request, const std::string& key, std::string_view role) {
  return SecureEqual(request.Header("authorization"), "Bearer " + RoleToken(key, role));
}

}  // namespace

std::string RoleToken(const std::string& key, std::string_view role) {
  return HmacSha256Hex(key, role);
}

HttpResponse ErrorResponse(int status, std::string_view code, const std::string& message) {
  const nlohmann::json body = {{"error", {{"code", code}, {"message", message}}}};
  return JsonResponse(status,
                      body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::variant<size_t, HttpResponse> Admit(const HttpRequest& request, const std::string& key) {
  if (request.path == "/healthz" || request.path == "/readyz") return size_t{0};
  const Result<std::vector<std::string>> path = PathSegments(request.path);
  if (!path.ok()) return ErrorResponse(400, "Invalid", path.error().message);
  const std::vector<std::string>& s = *path;
  if (s.empty()) return ErrorResponse(404, "NotFound", "there is nothing at /");

  if (s.size() >= 4 && s[0] == "v1" && s[1] == "nodes") {
    const bool is_index =
        s[2].size() <= 6 && s[2].find_first_not_of("0123456789") == std::string::npos;
    if (is_index && Carries(request, key, "node:" + s[2])) {
      if (s[3] == "logs") return kLogBody;
      if (s[3] == "exchange") return job::kMaxExchangeBytes;
      if (s[3] == "side-files") return kSideFilesBody;
      return kSmallBody;
    }
  }
  const bool is_operator = Carries(request, key, "operator");
  const bool is_viewer = is_operator || Carries(request, key, "viewer");
  const bool reads = request.method == "GET" && (s[0] == "v1" || s[0] == "metrics");
  const bool below_nodes = s.size() >= 2 && s[1] == "nodes";
  if (is_viewer && reads && !below_nodes) return size_t{0};
  if (is_operator && request.method == "PUT" && s.size() == 2 && s[1] == "control")
    return kSmallBody;
  if (request.Header("authorization").empty()) {
    return ErrorResponse(401, "Permission", "this call needs a bearer token");
  }
  if (is_viewer) {
    return ErrorResponse(403, "Permission",
                         "this token is not for " + Printable(request.path, 200));
  }
  return ErrorResponse(401, "Permission", "the token is not valid for this call");
}

}  // namespace parallelrun::coordinator
