#include "coordinator/last_reports.h"

#include <spdlog/spdlog.h>

#include "coordinator/log_tree/batch_report.h"
#include "coordinator/log_tree/failed_items.h"
#include "coordinator/log_tree/reports.h"
#include "coordinator/page/run_report.h"
#include "coordinator/plan/plan_store.h"

namespace parallelrun::coordinator {

void WriteLastReports(const EndedJob& ended, Files& files, const std::string& state_folder,
                      const LogFolder& folder, WallTime now) {
  PlanStore plan(ended.ledger);
  for (const Status& written :
       {WriteReports(ended.state, ended.rules, plan, folder),
        WriteBatchReports(files, state_folder, ended.state, ended.rules, folder),
        WriteFailedItems(files, state_folder, ended.state, ended.rules, plan, folder,
                         ended.dead_letters),
        WriteRunReport(files, state_folder, ended.state, ended.rules, plan, folder, ended.waits,
                       now)}) {
    if (!written.ok()) spdlog::warn("the reports are not complete: {}", written.error().message);
  }
}

}  // namespace parallelrun::coordinator
