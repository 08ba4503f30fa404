#include "base/http/server/tls.h"

#include <openssl/ssl.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <utility>

namespace parallelrun {
namespace {

namespace ssl = boost::asio::ssl;
constexpr auto kLookEvery = std::chrono::seconds(10);

}  // namespace

Result<TlsIdentity> TlsIdentity::Load(std::string chain_file, std::string key_file) {
  TlsIdentity identity(std::move(chain_file), std::move(key_file));
  identity.next_look_ = std::chrono::steady_clock::now() + kLookEvery;
  if (const Status read = identity.Read(); !read.ok()) return read.error();
  return identity;
}

ssl::context& TlsIdentity::Current(std::chrono::steady_clock::time_point now) {
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    if (Stamp() != stamp_) {
      if (const Status read = Read(); read.ok()) {
        spdlog::info("TLS: {} was read again", chain_file_);
      } else {
        spdlog::error("TLS: the old certificate stays in use: {}", read.error().message);
      }
    }
  }
  return *context_;
}

Status TlsIdentity::Read() {
  const std::string stamp = Stamp();
  auto context = std::make_unique<ssl::context>(ssl::context::tls_server);
  SSL_CTX* handle = context->native_handle();
  SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION);
  SSL_CTX_set_options(handle, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(handle, SSL_MODE_RELEASE_BUFFERS);  // idle connections are many
  boost::system::error_code ec;
  context->use_certificate_chain_file(chain_file_, ec);
  if (ec) {
    return Error{Code::kInvalid, fmt::format("certificate {}: {}; it must be PEM, own certificate "
                                             "first",
                                             chain_file_, ec.message())};
  }
  context->use_private_key_file(key_file_, ssl::context::pem, ec);
  if (ec) {
    return Error{Code::kInvalid, fmt::format("key {}: {}; it must be the PEM key of {}", key_file_,
                                             ec.message(), chain_file_)};
  }
  context_ = std::move(context);
  stamp_ = stamp;
  return {};
}

std::string TlsIdentity::Stamp() const {
  std::string stamp;
  for (const std::string& file : {chain_file_, key_file_}) {
    struct stat st {};
    if (stat(file.c_str(), &st) != 0) return "missing";
    stamp +=
        fmt::format("{}:{}:{}.{} ", st.st_ino, st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  }
  return stamp;
}

}  // namespace parallelrun
