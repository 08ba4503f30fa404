// Does the API server know the ParallelRunJob as this operator does? It would silently drop what
// its schema lacks, so with an older CustomResourceDefinition the operator does nothing, and says
// how to mend it. A newer one that has more is fine.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "kube/client.h"

namespace parallelrun::operators {

// Fields that this operator reads or writes and that the ParallelRunJob of an OpenAPI v3 document
// ({"components": {"schemas": ...}}) does not have, as "spec.nodeCount"; {"kind ParallelRunJob"}
// when it is not there at all. Pure.
std::vector<std::string> MissingFields(const nlohmann::json& openapi);

// Reads /openapi/v3/apis/parallelrun.dev/v1alpha1. kNotFound: no such resource; kStale: an older
// one; both say the mend. kUnavailable: the API server did not answer.
Status CheckServedSchema(kube::Client& client);

}  // namespace parallelrun::operators
