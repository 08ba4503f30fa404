// Requests and responses as plain values, shared by the server and the client.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallelrun {

struct HttpHeader {
  std::string name;
  std::string value;
};
using HttpHeaders = std::vector<HttpHeader>;

// The first header called `name` (upper and lower case are the same), or nullptr.
const std::string* FindHeader(const HttpHeaders& headers, std::string_view name);

// The name of a header with ASCII's letters in lower case: one spelling of all that mean the same.
std::string LowerCase(std::string_view name);

// A name is a token; a value has no control byte but a tab. What fails this must never be written
// to a connection: a line break in it would start a header, or a message, of the sender's choice.
bool IsSafeHeader(const HttpHeader& header);

struct HttpRequest {
  std::string method = "GET";
  std::string path;   // as on the wire: still percent-encoded, without the query
  std::string query;  // raw, without "?"; see target.h
  HttpHeaders headers;
  std::string body;
  std::string peer;  // "address:port" of the client; set by the server

  // The value of the first such header, or "".
  std::string_view Header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type;  // none is sent when empty
  HttpHeaders headers;       // without Content-Type, Content-Length, Connection
  std::string body;

  std::string_view Header(std::string_view name) const;
};

// A short plain-text response.
HttpResponse TextResponse(int status, std::string text);

// `json` is the whole body.
HttpResponse JsonResponse(int status, std::string json);

// "Not Found" for 404; "Status" for what is not known.
const char* StatusText(int status);

}  // namespace parallelrun
