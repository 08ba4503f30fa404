#include "coordinator/last_reports.h"

#include "coordinator/log_tree/batch_report.h"
#include "coordinator/log_tree/failed_items.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/page/run_report.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

std::string WriteLastReports(const EndedJob& ended, const LogFolder& folder, WallTime now) {
  plan::PlanStore plan(ended.ledger);
  std::string wrong;
  for (const Status& written :
       {WriteReports(ended.state, ended.rules, plan, folder),
        WriteBatchReports(ended.ledger, ended.state, ended.rules, folder),
        WriteFailedItems(ended.ledger, ended.state, ended.rules, plan, folder, ended.dead_letters),
        WriteRunReport(ended.ledger, ended.state, ended.rules, plan, folder, ended.waits, now)}) {
    if (!written.ok()) wrong += (wrong.empty() ? "" : "; ") + written.error().message;
  }
  return wrong.empty() ? "" : "the reports of the job are not complete: " + wrong;
}

}  // namespace parallelrun::coordinator
