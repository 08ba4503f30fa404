// What the API server asks of several fields of the spec together. check.cc asks the same of a job
// that was read; the two are held to each other by tests/unit/data/bad_specs.yaml.
#include "api/fields/sections.h"

#include <nlohmann/json.hpp>

namespace parallelrun::api::fields {

const std::vector<CelRule>& SpecRules() {
  static const std::vector<CelRule> rules = {
      {"has(self.inputs) && size(self.inputs) > 0 || has(self.rankMiniBatchCount) && "
       "self.rankMiniBatchCount > 0 || has(self.arguments) && "
       R"cel(self.arguments.exists(a, a.startsWith("--r")))cel",
       "is required: write at least one input, or rankMiniBatchCount for mini-batches "
       "without input",
       ".inputs"},
      {"!has(self.inputs) || self.inputs.all(i, has(i.files)) || self.inputs.all(i, "
       "has(i.tabular)) || self.inputs.all(i, has(i.jsonLines)) || "
       "!self.inputs.all(i, has(i.files) || has(i.tabular) || has(i.jsonLines))",
       "must all be of one kind (files, tabular or jsonLines); what each node only "
       "reads is a side input",
       ".inputs"},
      {"!has(self.inputs) || !has(self.sideInputs) || !self.sideInputs.exists(s, "
       "self.inputs.exists(i, i.name == s.name))",
       "a side input has the name of another input too: give each of inputs and "
       "sideInputs a name of its own",
       ".sideInputs"},
      {"!has(self.inputs) || self.inputs.all(i, (!has(i.files) || !has(i.files.volume) || "
       "has(self.volumes) && self.volumes.exists(v, v.name == i.files.volume)) && "
       "(!has(i.tabular) || !has(i.tabular.volume) || has(self.volumes) && "
       "self.volumes.exists(v, v.name == i.tabular.volume)) && (!has(i.jsonLines) || "
       "!has(i.jsonLines.volume) || has(self.volumes) && self.volumes.exists(v, v.name == "
       "i.jsonLines.volume)))",
       "there is no volume of the name that an input gives: write one of "
       "spec.volumes, or add it there",
       ".inputs"},
      {"!has(self.inputs) || self.inputs.all(i, (!has(i.files) || !has(i.files.store) || "
       "has(self.stores) && self.stores.exists(s, s.name == i.files.store)) && "
       "(!has(i.tabular) || !has(i.tabular.store) || has(self.stores) && "
       "self.stores.exists(s, s.name == i.tabular.store)) && (!has(i.jsonLines) || "
       "!has(i.jsonLines.store) || has(self.stores) && self.stores.exists(s, s.name == "
       "i.jsonLines.store)))",
       "there is no store of the name that an input gives: write one of spec.stores, or add it "
       "there",
       ".inputs"},
      {"!has(self.sideInputs) || self.sideInputs.all(i, !has(i.volume) || has(self.volumes) && "
       "self.volumes.exists(v, v.name == i.volume))",
       "there is no volume of the name that a side input gives: write one of "
       "spec.volumes, or add it there",
       ".sideInputs"},
      {"!has(self.sideInputs) || self.sideInputs.all(i, !has(i.store) || has(self.stores) && "
       "self.stores.exists(s, s.name == i.store))",
       "there is no store of the name that a side input gives: write one of spec.stores, or add it "
       "there",
       ".sideInputs"},
      {"!has(self.output.columns) || size(self.output.columns) == 0 || has(self.output.format) && "
       R"cel(self.output.format in ["csv", "parquet"])cel",
       "are those of a table: write format: csv or format: parquet beside it, or remove it",
       ".output.columns"},
      {"!has(self.output.provenance) || !self.output.provenance || has(self.output.format) && "
       R"cel(self.output.format != "text")cel",
       "needs rows that have names: write format: csv, jsonl or parquet beside it, or remove it",
       ".output.provenance"},
      {"has(self.output.volume) || has(self.output.store)",
       "is required: write the name of one of spec.volumes, or store with that of one of "
       "spec.stores",
       ".output.volume"},
      {"!has(self.output.volume) || !has(self.output.store)",
       "stands beside a store: keep one of the two", ".output.volume"},
      {"!has(self.output.store) || has(self.stores) && "
       "self.stores.exists(s, s.name == self.output.store)",
       "there is no store of that name: write one of spec.stores, or add it there",
       ".output.store"},
      {"!has(self.output.store) || !has(self.state) || !has(self.state.ephemeral) || "
       "!self.state.ephemeral",
       "an output in a store is ended and given back by what the state holds: remove it, without a "
       "volume the state lies on a claim that the operator makes",
       ".state.ephemeral"},
      {R"cel(!has(self.output.store) || self.output.action != "SummaryOnly" || )cel"
       R"cel(has(self.output.sideFiles) && self.output.sideFiles == "Staged")cel",
       "SummaryOnly leaves files, which go to a store with sideFiles: Staged: write that beside "
       "it, or AppendRow, or a volume in place of the store",
       ".output.action"},
      {R"cel(!has(self.output.store) || has(self.output.sideFiles) && )cel"
       R"cel(self.output.sideFiles == "Staged" || !has(self.arguments) || )cel"
       R"cel(!self.arguments.exists(a, a.contains("$(output)")))cel",
       "$(output) is a folder for the script, whose files go to a store with output.sideFiles: "
       "Staged: write that, leave $(output) out, or write a volume in place of output.store",
       ".arguments"},
      {R"cel(!has(self.output.sideFiles) || self.output.sideFiles != "Staged" || )cel"
       "self.output.mountOnNodes",
       "nodes write side files, and this output is not mounted there: remove mountOnNodes, or "
       "sideFiles",
       ".output.sideFiles"},
      {"!has(self.output.volume) || has(self.volumes) && "
       "self.volumes.exists(v, v.name == self.output.volume)",
       "there is no volume of that name: write one of spec.volumes, or add it there",
       ".output.volume"},
      {"!has(self.logs) || !has(self.logs.volume) || has(self.volumes) && "
       "self.volumes.exists(v, v.name == self.logs.volume) || self.logs.volume == "
       R"cel("parallelrun-state" && has(self.state) && has(self.state.volumeClaimTemplate))cel",
       "there is no volume of that name: write one of spec.volumes, or add it there",
       ".logs.volume"},
      {"!has(self.logs) || !has(self.logs.store) || !has(self.logs.volume)",
       "stands beside a store: keep one of the two", ".logs.volume"},
      {"!has(self.logs) || !has(self.logs.store) || has(self.stores) && "
       "self.stores.exists(s, s.name == self.logs.store)",
       "there is no store of that name: write one of spec.stores, or add it there", ".logs.store"},
      {"!has(self.state) || !has(self.state.store) || has(self.stores) && "
       "self.stores.exists(s, s.name == self.state.store)",
       "there is no store of that name: write one of spec.stores, or add it there", ".state.store"},
      {"!has(self.state) || !has(self.state.store) || has(self.output.store)",
       "is for an output in a store: write output.store too, or a volume", ".state.store"},
      {"!has(self.state) || !has(self.state.volume) || has(self.volumes) && "
       "self.volumes.exists(v, v.name == self.state.volume) || "
       "has(self.state.volumeClaimTemplate) || has(self.state.store)",
       "there is no volume of that name: write one of spec.volumes, or add it there",
       ".state.volume"},
      {"!has(self.code.volume) || has(self.volumes) && self.volumes.exists(v, v.name "
       "== self.code.volume)",
       "there is no volume of that name: write one of spec.volumes, or add it there",
       ".code.volume"},
      {"!has(self.output.volume) || has(self.state) && has(self.state.ephemeral) && "
       "self.state.ephemeral || "
       "!has(self.volumes) || !self.volumes.exists(v, v.name == self.output.volume && "
       "(has(v.emptyDir) || has(v.ephemeral)))",
       "is lost with its pod: write a volume that stays, or state: {ephemeral: true} "
       "if that is meant",
       ".output.volume"},
      {"!has(self.output.volume) || !has(self.volumes) || "
       "!self.volumes.exists(v, v.name == self.output.volume && "
       "(has(v.persistentVolumeClaim) && has(v.persistentVolumeClaim.readOnly) && "
       "v.persistentVolumeClaim.readOnly || has(v.nfs) && has(v.nfs.readOnly) && "
       "v.nfs.readOnly || has(v.csi) && has(v.csi.readOnly) && v.csi.readOnly || "
       "has(v.configMap) || has(v.secret) || has(v.image) || has(v.projected) || "
       "has(v.downwardAPI)))",
       "is read-only: write a volume that can be written to", ".output.volume"},
      {"!has(self.output.volume) || !has(self.inputs) || !self.inputs.exists(i, has(i.files) && "
       "has(i.files.volume) && i.files.volume == "
       R"cel(self.output.volume && (!has(i.files.path) || i.files.path in ["", ".", "./"] )cel"
       R"cel(|| has(self.output.path) && (self.output.path + "/").startsWith(i.files.path )cel"
       R"cel(+ "/"))))cel",
       "the output is inside the input: write a path outside of it, or narrow the input's path",
       ".output.path"},
      {"!has(self.output.volume) || !has(self.inputs) || !self.inputs.exists(i, has(i.tabular) && "
       "has(i.tabular.volume) && i.tabular.volume == self.output.volume && (!has(i.tabular.path) "
       "|| "
       R"cel(i.tabular.path in ["", ".", "./"] || has(self.output.path) && )cel"
       R"cel((self.output.path + "/").startsWith(i.tabular.path + "/"))))cel",
       "the output is inside the input: write a path outside of it, or narrow the input's path",
       ".output.path"},
      {"!has(self.output.volume) || !has(self.inputs) || !self.inputs.exists(i, "
       "has(i.jsonLines) && has(i.jsonLines.volume) && i.jsonLines.volume == self.output.volume && "
       "(!has(i.jsonLines.path) || "
       R"cel(i.jsonLines.path in ["", ".", "./"] || has(self.output.path) && )cel"
       R"cel((self.output.path + "/").startsWith(i.jsonLines.path + "/"))))cel",
       "the output is inside the input: write a path outside of it, or narrow the input's path",
       ".output.path"},
      {"!(has(self.output.volume) && has(self.logs) && !has(self.logs.store) && "
       "has(self.logs.path) && has(self.output.path) && "
       "self.logs.path == self.output.path && (has(self.logs.volume) ? "
       "self.logs.volume : self.output.volume) == self.output.volume)",
       "the log folder is the output too: write a path of its own", ".logs.path"},
      {"!(has(self.output.volume) && has(self.state) && has(self.state.path) && "
       "has(self.output.path) && "
       "self.state.path == self.output.path && (has(self.state.volume) ? "
       "self.state.volume : self.output.volume) == self.output.volume)",
       "the state folder is the output too: write a path of its own", ".state.path"},
      {"!(has(self.state) && has(self.state.path) && has(self.logs) && "
       "!has(self.logs.store) && has(self.logs.path) && self.state.path == self.logs.path && "
       "(has(self.state.volume) ? self.state.volume : has(self.output.volume) ? "
       R"cel(self.output.volume : "") == (has(self.logs.volume) ? self.logs.volume : )cel"
       R"cel(has(self.output.volume) ? self.output.volume : has(self.state.volume) ? )cel"
       R"cel(self.state.volume : "")))cel",
       "the state folder is the log folder too: write a path of its own", ".state.path"},
      {"!self.suspend || !(has(self.state) && has(self.state.ephemeral) && "
       "self.state.ephemeral)",
       "a job with ephemeral state would start anew after it: remove state.ephemeral, "
       "so that the state lies on the output's volume",
       ".suspend"},
      {R"cel((self.output.ifExists != "Resume" && self.output.ifExists != "RetryFailed") )cel"
       "|| !(has(self.state) && has(self.state.ephemeral) && self.state.ephemeral)",
       "there is no state to resume from when it is ephemeral: remove "
       "state.ephemeral, or write Overwrite",
       ".output.ifExists"},
      {"!has(self.miniBatchSize) || type(self.miniBatchSize) == int || "
       R"cel(!self.miniBatchSize.matches("[bB]$") || has(self.inputs) && )cel"
       "self.inputs.exists(i, has(i.tabular))",
       "is in bytes, but for files it counts files, and for jsonLines lines: write a "
       "plain number, such as 10",
       ".miniBatchSize"},
      {"!has(self.partitionKeys) || !has(self.inputs) || self.inputs.all(i, "
       "has(i.partitionFormat))",
       "partitionFormat is required with partitionKeys: write where the keys stand in "
       "the path, as in {user}/{season}/{genre}.wav",
       ".inputs"},
  };
  return rules;
}

}  // namespace parallelrun::api::fields
