// Internal to `parallelrun convert`: what several kinds of file say in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "azure/convert/section.h"

namespace parallelrun::azure {

std::string JobNameFrom(const std::string& text);
// Not a path on this machine: an address, something registered, a binding.
bool IsElsewhere(const std::string& address);
// The path within its storage, when the address says it: "azureml://datastores/a/paths/b/" -> "b".
std::string PathInStorage(const std::string& address);
void ReadAzureEnvironment(const api::Node* node, const std::string& field, Draft& draft);
void ReadVariables(const api::Node* node, const std::string& field, Draft& draft);
void ReadCode(const std::string& code, const std::string& script, const std::string& field,
              Draft& draft);
// `format`: where the keys stand in the paths, as an MLTable says it; empty when none does.
void ReadAzureKeys(const api::Node* node, const std::string& field, const std::string& format,
                   Draft& draft);
void CheckAzureData(const std::string& address, const std::string& field, Draft& draft);
// Adds spec.`name` with a whole number of at least `least`, reported otherwise.
void SetInteger(const std::string& text, const std::string& field, const std::string& name,
                int64_t least, int64_t add, Draft& draft);
// The same for a number from 0 to 100.
void SetPercent(const std::string& text, const std::string& field, const std::string& name,
                Draft& draft);
void SetLevel(const std::string& text, const std::string& field, Draft& draft);
void LoseCloud(Section& section);

}  // namespace parallelrun::azure
