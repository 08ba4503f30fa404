#include "coordinator/last_reports.h"

#include "coordinator/log_tree/batch_report.h"
#include "coordinator/log_tree/failed_items.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/page/run_report.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

std::string WriteLastReports(const EndedJob& ended, Files& files, const std::string& state_folder,
                             const LogFolder& folder, WallTime now) {
  plan::PlanStore plan(ended.ledger);
  std::string wrong;
  for (const Status& written :
       {WriteReports(ended.state, ended.rules, plan, folder),
        WriteBatchReports(files, state_folder, ended.state, ended.rules, folder),
        WriteFailedItems(files, state_folder, ended.state, ended.rules, plan, folder,
                         ended.dead_letters),
        WriteRunReport(files, state_folder, ended.state, ended.rules, plan, folder, ended.waits,
                       now)}) {
    if (!written.ok()) wrong += (wrong.empty() ? "" : "; ") + written.error().message;
  }
  return wrong.empty() ? "" : "the reports of the job are not complete: " + wrong;
}

}  // namespace parallelrun::coordinator
