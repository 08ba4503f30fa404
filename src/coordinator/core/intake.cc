#include "coordinator/core/intake.h"

#include <algorithm>
#include <optional>
#include <set>

namespace parallelrun::coordinator {

Intake::Intake(uint32_t node, const job::ExchangeRequest& request, WorkInstant worked,
               int64_t wall_us, Journal& journal, job::Availability& availability,
               Attempts& attempts, plan::PlanStore& plan)
    : asker_{node, request.incarnation, request.number},
      request_(request),
      worked_(worked),
      wall_us_(wall_us),
      journal_(journal),
      availability_(availability),
      attempts_(attempts),
      plan_(plan) {}

void Intake::TakeUnheard() {
  if (!request_.unheard) return;
  std::set<job::LeaseName> held;
  for (const job::HeldLease& lease : request_.held) held.insert({lease.id, lease.fence});
  for (const job::Held& one : availability_.HeldBy(asker_.node)) {
    const job::Lease& lease = one.lease;
    if (lease.incarnation != request_.incarnation || lease.request >= request_.number) continue;
    // What came with the other request, which is still open, may be on its way.
    const job::LeaseName name{one.id, lease.fence};
    if (lease.request != request_.open && !held.contains(name)) attempts_.HandBack(name);
  }
}

void Intake::TakeHeld() {
  for (const job::HeldLease& held : request_.held) {
    if (availability_.Renew(asker_.incarnation, held, worked_)) {
      attempts_.Began(held);
      continue;
    }
    if (journal_.state().Recorded(held.id, held.fence)) {
      // A renewal waits for no sync: it is settled when it is reported, or listed again.
      const bool durable = journal_.appended() == journal_.durable();
      if (durable) taken_.reply.settled.push_back({held.id, held.fence});
      continue;
    }
    // It expired (a partition, a slow network) and nobody else has it: go on.
    Adopt({held.id, held.fence}, RefusedReport::Kind::kLease, held.started);
  }
}

void Intake::TakeOffered() {
  for (const job::OfferedLease& offer : request_.offered) {
    const job::LeaseName name{offer.id, offer.fence};
    if (Repeated(name)) continue;
    const bool known = journal_.state().known(offer.id);
    if (known && !plan_.AtHand(journal_.state(), offer.id)) {
      taken_.compared = false;  // it is being read: it is offered again
      continue;
    }
    const Result<uint64_t> digest = plan_.Digest(journal_.state(), offer.id);
    if (!digest.ok() && known) {
      taken_.compared = false;  // the disk: it is offered again
      continue;
    }
    const bool same = digest.ok() && *digest == offer.digest;
    if (!same) {
      RefuseAndBlock(name, RefusedReport::Kind::kOffer,
                     digest.ok() ? RefusalReason::kContent : RefusalReason::kUnknown);
    } else {
      if (known) attempts_.NoteLastChance(offer.id);
      Adopt(name, RefusedReport::Kind::kOffer, false);
    }
  }
}

void Intake::Adopt(const job::LeaseName& name, RefusedReport::Kind kind, bool started) {
  std::optional<job::Fence> adopted;
  if (!journal_.decided()) adopted = availability_.Adopt(asker_, name.id, started, worked_);
  if (!adopted) return RefuseAndBlock(name, kind, WhyRefused(name.id));
  taken_.reply.adopted.push_back({name.id, name.fence, *adopted});
}

bool Intake::Repeated(const job::LeaseName& name) {
  if (!journal_.state().Recorded(name.id, name.fence)) return false;
  // Recorded, perhaps a moment ago: the answer waits for all that was appended so far.
  WaitFor(journal_.appended());
  taken_.reply.settled.push_back(name);
  return true;
}

void Intake::TakeParts() {
  for (const job::RowsPart& part : request_.parts) {
    const job::LeaseName name{part.id, part.fence};
    if (journal_.decided() || !availability_.Has(asker_.incarnation, name)) continue;
    if (part.offset != journal_.state().PartBytes(part.id, part.fence)) continue;  // a repeat
    WaitFor(journal_.Add(job::RowsRecord{part.id, part.fence, part.rows}));
  }
}

void Intake::TakeFinished() {
  std::set<job::LeaseName> adopted_now;  // held, and told again under the new fence
  for (const job::Adopted& one : taken_.reply.adopted) adopted_now.insert({one.id, one.old_fence});
  for (const job::Finished& done : request_.finished) {
    const job::LeaseName name{done.id, done.fence};
    if (Repeated(name) || adopted_now.contains(name)) continue;
    if (journal_.decided() || !availability_.Has(asker_.incarnation, name)) {
      TakeLate(done);
    } else {
      TakeOne(done);
    }
  }
}

void Intake::TakeLate(const job::Finished& done) {
  const job::LeaseName name{done.id, done.fence};
  std::optional<job::Fence> adopted;
  if (!journal_.decided() && done.kind == job::Finished::Kind::kSucceeded) {
    adopted = availability_.Adopt(asker_, done.id, true, worked_);
  }
  if (adopted) {
    taken_.reply.adopted.push_back({done.id, done.fence, *adopted});
  } else if (done.kind == job::Finished::Kind::kReturned) {
    taken_.reply.refused.push_back(name);  // as good as taken
  } else {
    Refuse(name, KindOf(done), WhyRefused(done.id));
  }
}

void Intake::TakeOne(const job::Finished& done) {
  const job::LeaseName name{done.id, done.fence};
  switch (done.kind) {
    case job::Finished::Kind::kReturned: attempts_.HandBack(name); break;
    case job::Finished::Kind::kSucceeded:
      if (done.rows_offset != journal_.state().PartBytes(done.id, done.fence)) {
        availability_.End(name);  // run it again
        return Refuse(name, KindOf(done), RefusalReason::kIncomplete);
      }
      WaitFor(attempts_.Succeeded(asker_.node, done, wall_us_));
      taken_.moved = true;
      break;
    case job::Finished::Kind::kFailed:
      WaitFor(attempts_.Failed(asker_.node, done, wall_us_));
      taken_.failed.push_back(&done);
      taken_.moved = true;
      break;
  }
  taken_.reply.settled.push_back(name);
}

// --- what is not taken

void Intake::Refuse(const job::LeaseName& name, RefusedReport::Kind kind, RefusalReason why) {
  taken_.reply.refused.push_back(name);
  taken_.refused.push_back({name, kind, why});
}

void Intake::RefuseAndBlock(const job::LeaseName& name, RefusedReport::Kind kind,
                            RefusalReason why) {
  Refuse(name, kind, why);
  availability_.BlockRefused(name.id, worked_);
}

// Of what is not leased to whom it comes from, and cannot be adopted.
RefusalReason Intake::WhyRefused(job::BatchId id) const {
  if (journal_.decided()) return RefusalReason::kJobOver;
  if (!journal_.state().known(id)) return RefusalReason::kUnknown;
  if (journal_.state().settled(id)) return RefusalReason::kSettled;
  return availability_.Leased(id) ? RefusalReason::kLeased : RefusalReason::kExpired;
}

void Intake::WaitFor(uint64_t position) { taken_.position = std::max(taken_.position, position); }

}  // namespace parallelrun::coordinator
