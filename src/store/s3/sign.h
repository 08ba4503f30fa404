// Signature Version 4: how a request proves to S3, and to what speaks it, whose it is. Pure: the
// time is passed in, and the same request at the same time gets the same signature.
//
// What is signed is the request as it goes over the wire. S3 takes paths as they come: nothing is
// normalized, and "%" is not encoded a second time, which other services of AWS want.
#pragma once

#include <string>
#include <string_view>

#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun::store::s3 {

struct Keys {
  std::string id;      // AKIA…; not a secret, and shown in part
  std::string secret;  // never shown
  std::string token;   // of a session; empty for keys that do not end. Never shown
};

// For what a signature counts, beside its day.
struct Scope {
  std::string region;
  std::string service = "s3";
};

// The two texts that a signature is made of, each from the one before: apart, so that the published
// test cases tell which of them is wrong.
std::string CanonicalRequest(const HttpRequest& request, const std::string& host);
std::string StringToSign(const std::string& canonical, const Scope& scope, WallTime now);

// Adds X-Amz-Date, for S3 X-Amz-Content-Sha256, for a session X-Amz-Security-Token, and then
// Authorization, which covers all headers that are there. `host` is what the header Host will say;
// path and query must be percent-encoded already.
void Sign(HttpRequest& request, const std::string& host, const Keys& keys, const Scope& scope,
          WallTime now);

// The same as parameters of the query, so that whoever is given the URL can send this request, and
// no other one, for `life` from `now` on, without keys: whole seconds, a week at most. The headers
// that are there are signed, and have to be sent as they are; any others may be, since nothing is
// said of them, nor of a body. The URL is a secret. It ends with the keys, where these end sooner.
void Presign(HttpRequest& request, const std::string& host, const Keys& keys, const Scope& scope,
             WallTime now, Duration life);

}  // namespace parallelrun::store::s3
