// Internal to http/server: the TLS identity of a server, read again when its files change.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "base/error.h"

namespace parallelrun {

class TlsIdentity {
 public:
  // PEM files: the certificate with its chain, and its key.
  static Result<TlsIdentity> Load(std::string chain_file, std::string key_file);

  // The context for a new connection. Looks at the files at most every 10 s; goes on with the last
  // good pair when the new one cannot be used, and logs that.
  boost::asio::ssl::context& Current(std::chrono::steady_clock::time_point now);

 private:
  TlsIdentity(std::string chain_file, std::string key_file)
      : chain_file_(std::move(chain_file)), key_file_(std::move(key_file)) {}
  Status Read();
  // Changes when either file does.
  std::string Stamp() const;

  std::string chain_file_;
  std::string key_file_;
  std::string stamp_;
  std::chrono::steady_clock::time_point next_look_;
  std::unique_ptr<boost::asio::ssl::context> context_;
};

}  // namespace parallelrun
