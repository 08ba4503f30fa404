#include "api/object_names.h"

namespace parallelrun::api {

std::string ObjectBase(const std::string& job, const std::string& uid) {
  return job + "-" + uid.substr(0, 5);
}

std::string AccessSecretName(const std::string& job, const std::string& uid) {
  return ObjectBase(job, uid) + "-access";
}

std::string CoordinatorServiceName(const std::string& job, const std::string& uid) {
  return ObjectBase(job, uid) + "-coordinator";
}

std::string StateClaimName(const std::string& job, const std::string& uid) {
  return ObjectBase(job, uid) + "-state";
}

}  // namespace parallelrun::api
