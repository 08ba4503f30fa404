-- What Argo CD's users may do to a ParallelRunJob: nothing once it has ended or is being canceled.
local actions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  local over = condition.type == "Complete" or condition.type == "Failed" or condition.type == "FailureTarget"
  if over and condition.status == "True" then
    return actions
  end
end
if obj.spec.cancel then
  return actions
end
if obj.spec.suspend then
  actions["resume"] = {iconClass = "fa fa-fw fa-play"}
else
  actions["suspend"] = {iconClass = "fa fa-fw fa-pause"}
end
actions["cancel"] = {iconClass = "fa fa-fw fa-stop"}
return actions
