// Which credentials are used. Pure.
//
// The order is that of the tools around Azure, and the first that is set up counts:
//   AZURE_STORAGE_CONNECTION_STRING; AZURE_STORAGE_KEY (with AZURE_STORAGE_ACCOUNT);
//   AZURE_STORAGE_SAS_TOKEN; a workload identity (AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID and
//   AZURE_TENANT_ID).
// One that is set up and cannot be used is an error: to go on to the next would run the job with
// somebody else's rights.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "base/error.h"
#include "store/azure_blob/address.h"
#include "store/azure_blob/sign.h"

namespace parallelrun::store::azure_blob {

// What the user has set up for Azure and the tools around it, in the environment.
struct Surroundings {
  std::map<std::string, std::string> variables;  // those of them that are set, and not empty

  // "" where it is not set.
  std::string Variable(const std::string& name) const;
};

// Of this process.
Surroundings ReadSurroundings();

struct WorkloadIdentity {
  std::string token_file;  // it is read each time, as it changes
  std::string client;
  std::string tenant;
  std::string authority;  // "https://login.microsoftonline.com"
};

struct Source {
  std::variant<SharedKey, Sas, WorkloadIdentity> from;
  std::string told;           // for messages: nothing secret
  std::string endpoint = {};  // of a connection string; empty: it names none
};

// kInvalid for what is set up by half, for another account, or in a way that is not understood;
// kPermission when there is nothing at all.
Result<Source> SourceOf(const Surroundings& around, const Address& address);

}  // namespace parallelrun::store::azure_blob
