#include "job/node_messages.h"

#include "base/bytes.h"

namespace parallelrun::job {
namespace {

// Of what is held.
constexpr uint8_t kWaits = 0;
constexpr uint8_t kStarted = 1;
constexpr uint8_t kWantsUrls = 2;

void Put(Encoder& out, BatchId id, const Fence& fence) {
  out.U64(id);
  out.U32(fence.epoch);
  out.U64(fence.number);
}

template <typename T>
void Get(Decoder& in, T& lease) {
  lease.id = in.U64();
  lease.fence.epoch = in.U32();
  lease.fence.number = in.U64();
}

constexpr size_t kNameSize = 20;  // id and fence

template <typename T, typename Fn>
void PutList(Encoder& out, const std::vector<T>& list, Fn put) {
  out.U32(static_cast<uint32_t>(list.size()));
  for (const T& entry : list) put(entry);
}

template <typename T, typename Fn>
void GetList(Decoder& in, size_t entry_size, std::vector<T>& list, Fn get) {
  const uint32_t count = in.Count(entry_size);
  list.reserve(count);
  for (uint32_t i = 0; i < count && in.ok(); ++i) get(list.emplace_back());
}

void PutFinished(Encoder& out, const Finished& f) {
  Put(out, f.id, f.fence);
  out.U8(static_cast<uint8_t>(f.kind));
  if (f.kind == Finished::Kind::kReturned) return;
  out.U32(f.process);
  const bool succeeded = f.kind == Finished::Kind::kSucceeded;
  PutResult(out, f, Carrier::kExchange, succeeded);
  if (succeeded) {
    out.U64(f.rows_offset);
    out.Text(f.rows);
  } else {
    out.U8(static_cast<uint8_t>(f.cause));
    out.Text(f.error_kind);
    out.Text(f.message);
    out.Text(f.log);
    out.U64(f.output.stdout_begin);
    out.U64(f.output.stdout_end);
    out.U64(f.output.stderr_begin);
    out.U64(f.output.stderr_end);
  }
}

void PutUrls(Encoder& out, const std::vector<ObjectUrls>& urls) {
  PutList(out, urls, [&](const ObjectUrls& of) {
    Put(out, of.id, of.fence);
    out.U32(of.seconds);
    out.Text(of.why);
    PutList(out, of.urls, [&](std::string_view url) { out.Text(url); });
  });
}

size_t MaxMessage(ProcessEvent::Kind kind) {
  switch (kind) {
    case ProcessEvent::Kind::kMetric: return kMaxMetricBytes;
    case ProcessEvent::Kind::kHeader: return kMaxHeaderBytes;
    default: return kMaxExchangeBytes;
  }
}

void GetFinished(Decoder& in, Finished& f) {
  Get(in, f);
  const uint8_t kind = in.U8();
  if (kind < 1 || kind > 3) return in.Fail();
  f.kind = static_cast<Finished::Kind>(kind);
  if (f.kind == Finished::Kind::kReturned) return;
  f.process = in.U32();
  const bool succeeded = f.kind == Finished::Kind::kSucceeded;
  GetResult(in, f, Carrier::kExchange, succeeded);
  if (succeeded) {
    f.rows_offset = in.U64();
    f.rows = in.Text();
  } else {
    const uint8_t cause = in.U8();
    if (cause < 1 || cause > static_cast<uint8_t>(Cause::kMisfit)) return in.Fail();
    f.cause = static_cast<Cause>(cause);
    f.error_kind = in.Text();
    f.message = in.Text();
    f.log = in.Text();
    f.output = {in.U64(), in.U64(), in.U64(), in.U64()};
  }
}

}  // namespace

std::string Encode(const ExchangeRequest& request) {
  std::string bytes;
  Encoder out(bytes);
  out.U32(request.incarnation.epoch);
  out.U32(request.incarnation.number);
  out.U64(request.settings_digest);
  out.U64(request.number);
  out.U64(request.open);
  out.U8(request.unheard ? 1 : 0);
  out.U32(request.want);
  out.U32(request.park_ms);
  PutList(out, request.held, [&](const HeldLease& h) {
    Put(out, h.id, h.fence);
    out.U8(h.started ? kStarted : h.wants_urls ? kWantsUrls : kWaits);
  });
  PutList(out, request.offered, [&](const OfferedLease& o) {
    Put(out, o.id, o.fence);
    out.U64(o.digest);
  });
  PutList(out, request.parts, [&](const RowsPart& p) {
    Put(out, p.id, p.fence);
    out.U64(p.offset);
    out.Text(p.rows);
  });
  PutList(out, request.finished, [&](const Finished& f) { PutFinished(out, f); });
  PutList(out, request.events, [&](const ProcessEvent& e) {
    out.U32(e.process);
    out.U8(static_cast<uint8_t>(e.kind));
    out.Text(e.message);
    out.Text(e.log);
  });
  return bytes;
}

Result<ExchangeRequest> DecodeExchangeRequest(std::string_view bytes) {
  Decoder in(bytes);
  ExchangeRequest r;
  r.incarnation.epoch = in.U32();
  r.incarnation.number = in.U32();
  r.settings_digest = in.U64();
  r.number = in.U64();
  r.open = in.U64();
  r.unheard = in.U8() != 0;
  r.want = in.U32();
  r.park_ms = in.U32();
  GetList(in, kNameSize + 1, r.held, [&](HeldLease& h) {
    Get(in, h);
    const uint8_t state = in.U8();
    if (state > kWantsUrls) in.Fail();
    h.started = state == kStarted;
    h.wants_urls = state == kWantsUrls;
  });
  GetList(in, kNameSize + 8, r.offered, [&](OfferedLease& o) {
    Get(in, o);
    o.digest = in.U64();
  });
  GetList(in, kNameSize + 12, r.parts, [&](RowsPart& p) {
    Get(in, p);
    p.offset = in.U64();
    p.rows = in.Text();
  });
  GetList(in, kNameSize + 1, r.finished, [&](Finished& f) { GetFinished(in, f); });
  GetList(in, 13, r.events, [&](ProcessEvent& e) {
    e.process = in.U32();
    const uint8_t kind = in.U8();
    if (kind < 1 || kind > static_cast<uint8_t>(ProcessEvent::Kind::kStoreWait)) return in.Fail();
    e.kind = static_cast<ProcessEvent::Kind>(kind);
    e.message = in.Text();
    if (e.message.size() > MaxMessage(e.kind)) return in.Fail();
    e.log = in.Text();
  });
  if (!in.Done()) return Error{Code::kInvalid, "malformed exchange request"};
  return r;
}

Incarnation IncarnationOf(std::string_view request) {
  Decoder in(request);
  const Incarnation incarnation{in.U32(), in.U32()};
  return in.ok() ? incarnation : Incarnation{};
}

std::string Encode(const ExchangeReply& reply) {
  std::string bytes;
  Encoder out(bytes);
  out.U32(reply.epoch);
  out.U8(static_cast<uint8_t>(reply.directive));
  PutList(out, reply.settled, [&](const LeaseName& n) { Put(out, n.id, n.fence); });
  PutList(out, reply.refused, [&](const LeaseName& n) { Put(out, n.id, n.fence); });
  PutList(out, reply.adopted, [&](const Adopted& a) {
    Put(out, a.id, a.old_fence);
    out.U32(a.fence.epoch);
    out.U64(a.fence.number);
  });
  PutList(out, reply.leased, [&](const Leased& l) {
    Put(out, l.id, l.fence);
    out.U64(l.digest);
    out.Text(l.work);
  });
  out.Text(reply.header);
  PutUrls(out, reply.urls);
  return bytes;
}

void AddUrls(std::string& reply, const std::vector<ObjectUrls>& urls) {
  reply.resize(reply.size() - sizeof(uint32_t));  // the count, 0
  Encoder out(reply);
  PutUrls(out, urls);
}

Result<ExchangeReply> DecodeExchangeReply(std::string_view bytes) {
  Decoder in(bytes);
  ExchangeReply r;
  r.epoch = in.U32();
  const uint8_t directive = in.U8();
  if (directive > static_cast<uint8_t>(Directive::kWhere)) in.Fail();
  r.directive = static_cast<Directive>(directive);
  GetList(in, kNameSize, r.settled, [&](LeaseName& n) { Get(in, n); });
  GetList(in, kNameSize, r.refused, [&](LeaseName& n) { Get(in, n); });
  GetList(in, kNameSize + 12, r.adopted, [&](Adopted& a) {
    a.id = in.U64();
    a.old_fence.epoch = in.U32();
    a.old_fence.number = in.U64();
    a.fence.epoch = in.U32();
    a.fence.number = in.U64();
  });
  GetList(in, kNameSize + 12, r.leased, [&](Leased& l) {
    Get(in, l);
    l.digest = in.U64();
    l.work = in.Text();
  });
  r.header = in.Text();
  if (r.header.size() > kMaxHeaderBytes) in.Fail();
  GetList(in, kNameSize + 12, r.urls, [&](ObjectUrls& of) {
    Get(in, of);
    of.seconds = in.U32();
    of.why = in.Text();
    GetList(in, 4, of.urls, [&](std::string_view& url) { url = in.Text(); });
  });
  if (!in.Done()) return Error{Code::kInvalid, "malformed exchange reply"};
  return r;
}

}  // namespace parallelrun::job
