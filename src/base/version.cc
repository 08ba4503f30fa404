#include "base/version.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <boost/version.hpp>

namespace parallelrun {

const char* const kVersion = PARALLELRUN_VERSION;

std::string VersionText(const std::string& program) {
  std::string boost = BOOST_LIB_VERSION;  // 1_74
  std::replace(boost.begin(), boost.end(), '_', '.');
  return program + " " + kVersion + "\n" + OpenSSL_version(OPENSSL_VERSION) + "; Boost " + boost;
}

}  // namespace parallelrun
