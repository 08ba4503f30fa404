-- The health of a ParallelRunJob for Argo CD. Standard libraries are off where this runs.
local status = obj.status
if status == nil then
  return {status = "Progressing", message = "Waiting for the operator"}
end

local found = {}
for _, condition in ipairs(status.conditions or {}) do
  if condition.status == "True" then
    found[condition.type] = condition
  end
end

-- The end of a job is final, whatever was changed in its spec afterwards.
if found.Complete ~= nil then
  local message = found.Complete.message
  -- Complete all the same: the job's thresholds say what is a failure.
  if found.Complete.reason ~= "Completed" then message = found.Complete.reason .. ": " .. message end
  return {status = "Healthy", message = message}
end
if found.Failed ~= nil then
  return {status = "Degraded", message = found.Failed.reason .. ": " .. found.Failed.message}
end
if status.observedGeneration ~= obj.metadata.generation then
  return {status = "Progressing", message = "Waiting for the operator"}
end
if found.Stalled ~= nil then
  return {status = "Degraded", message = found.Stalled.reason .. ": " .. found.Stalled.message}
end
if found.Suspended ~= nil then
  return {status = "Suspended", message = "Suspended"}
end

local message = status.phase or "Pending"
local shown = status.display
if shown ~= nil then
  if shown.done ~= nil and shown.done ~= "" then message = message .. ", done " .. shown.done end
  if shown.nodes ~= nil and shown.nodes ~= "" then message = message .. ", nodes " .. shown.nodes end
end
for _, condition in ipairs(status.conditions or {}) do
  if condition.type == "NodesReady" and condition.status == "False" and condition.message ~= "" then
    message = message .. ": " .. condition.message
  end
end
return {status = "Progressing", message = message}
