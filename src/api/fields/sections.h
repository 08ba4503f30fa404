// The fields of the spec, section by section. A list stands in the order in which its fields are
// read and told of. Each is made at its first use; any thread.
#pragma once

#include "api/fields/field.h"

namespace parallelrun::api::fields {

const FieldList& SpecFields();             // spec.cc: of JobSpec
const FieldList& FailureRuleFields();      // failure_rules.cc: of JobSpec, among SpecFields
const FieldList& EnvironmentFields();      // pods.cc: of Environment
const FieldList& CoordinatorFields();      // pods.cc: of CoordinatorOptions
const FieldList& InputFields();            // inputs.cc: of Input
const FieldList& TabularFields();          // tabular.cc: of Input, where it is a table
const FieldList& ManifestFields();         // inputs.cc: of Manifest
const FieldList& SideInputFields();        // inputs.cc: of SideInput
const FieldList& StoreFields();            // stores.cc: of ObjectStore
const FieldList& StoreCredentialFields();  // stores.cc: of StoreCredentials
const FieldList& StoreEncryptionFields();  // stores.cc: of StoreEncryption
const FieldList& CacheFields();            // stores.cc: of CacheOptions
const FieldList& OutputFields();           // output.cc: of Output
const FieldList& LogFields();              // output.cc: of Logs
const FieldList& StateFields();            // output.cc: of StateOptions

const FieldList& VolumeSources();  // volumes.cc: what a volume may be, by name

Shape CodeShape();         // pods.cc
Shape ResourcesShape();    // pods.cc
Shape PodTemplateShape();  // pods.cc
Shape VolumeShape();       // volumes.cc: of one of spec.volumes

// What the API server asks of several fields of the spec together: spec_rules.cc.
const std::vector<CelRule>& SpecRules();

// Values of the fields of `fields` in `owner`, by name.
nlohmann::json WriteFields(const FieldList& fields, const void* owner);

}  // namespace parallelrun::api::fields
