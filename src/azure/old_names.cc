#include "azure/old_names.h"

#include <map>

#include "api/text.h"

namespace parallelrun::azure {

std::string OldNameMend(std::string_view name) {
  // Squashed old name -> mend.
  static const std::map<std::string, std::string, std::less<>> mends = {
      {"amlnodecount", "write spec.nodeCount"},
      {"allowedfailedcount", "write spec.allowedFailedCount"},
      {"allowedfailedpercent", "write spec.allowedFailedPercent"},
      {"allowreuse", "remove it: results of another job are not used again"},
      {"amlbiminibatchrows", "write spec.miniBatchSize: for jsonLines it counts lines"},
      {"appendrowfilename", "write spec.output.fileName"},
      {"appendrowto", "write spec.output.fileName"},
      {"computetarget", "remove it; where pods run is said in spec.podTemplate.spec.nodeSelector"},
      {"description", "write metadata.annotations.description"},
      {"entryscript", "write spec.entryScript"},
      {"environmentvariables", "write spec.environment.env: [{name: NAME, value: VALUE}]"},
      {"errorthreshold", "write spec.errorThreshold"},
      {"firsttaskcreationtimeout", "write spec.firstTaskCreationTimeoutSeconds"},
      {"inputdata", "write spec.inputs"},
      {"instancecount", "write spec.nodeCount"},
      {"instancetype", "write spec.podTemplate.spec.nodeSelector"},
      {"isdeterministic", "remove it"},
      {"logginglevel", "write spec.loggingLevel"},
      {"maxconcurrencyperinstance", "write spec.processCountPerNode"},
      {"maxretries", "write spec.runMaxTry, which counts the first try too (retries + 1)"},
      {"minibatcherrorthreshold", "write spec.allowedFailedCount"},
      {"minibatchsize", "write spec.miniBatchSize"},
      {"nodecount", "write spec.nodeCount"},
      {"outputaction", "write spec.output.action"},
      {"partitionformat", "write spec.inputs[].partitionFormat"},
      {"partitionkeys", "write spec.partitionKeys"},
      {"processcountpernode", "write spec.processCountPerNode"},
      {"profilingmodule", "write spec.profiling"},
      {"programarguments", "write spec.arguments, a list with one item for each word"},
      {"progressupdatetimeout", "write spec.progressUpdateTimeoutSeconds"},
      {"rankminibatchcount", "write spec.rankMiniBatchCount"},
      {"resourcemonitorinterval", "write spec.resourceMonitorIntervalSeconds"},
      {"resumefrom", "write spec.output.ifExists: Resume"},
      {"retrysettings", "write spec.runMaxTry (retries + 1) and spec.runInvocationTimeoutSeconds"},
      {"runinvocationtimeout", "write spec.runInvocationTimeoutSeconds"},
      {"runmaxtry", "write spec.runMaxTry"},
      {"shmsize", "write spec.sharedMemory"},
      {"sideinputs", "write spec.sideInputs"},
      {"sourcedirectory", "write spec.code"},
      {"taskoverheadtimeout", "write spec.taskOverheadTimeoutSeconds"},
  };
  const auto found = mends.find(api::Squashed(name));
  return found == mends.end() ? std::string() : found->second;
}

}  // namespace parallelrun::azure
