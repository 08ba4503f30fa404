#include "api/fields/field.h"

#include <nlohmann/json.hpp>

namespace parallelrun::api::fields {

Shape Shape::With(CelRule rule) const& {
  Shape more = *this;
  more.rules.push_back(std::move(rule));
  return more;
}

Field&& Field::RequiredInCluster(std::string mend) && {
  need = Need::kInCluster;
  missing = std::move(mend);
  return std::move(*this);
}

Field&& Field::Required(std::string mend) && {
  need = Need::kAlways;
  missing = std::move(mend);
  return std::move(*this);
}

Field&& Field::Changes(Change when) && {
  change = when;
  return std::move(*this);
}

Field&& Field::In(uint16_t acting) && {
  acts = acting;
  return std::move(*this);
}

Field&& Field::OnlyInCluster() && {
  only_in_cluster = true;
  return std::move(*this);
}

Field&& Field::ServerFills() && {
  server_fills = true;
  return std::move(*this);
}

Field&& Field::Otherwise(std::string words) && {
  otherwise = std::move(words);
  return std::move(*this);
}

Field&& Field::UnlessInitial() && {
  unless_initial = true;
  return std::move(*this);
}

Field&& Field::Anew() && {
  anew = true;
  return std::move(*this);
}

Field&& Field::ToldToWorkers(std::string as) && {
  worker_name = std::move(as);
  return std::move(*this);
}

Field&& Field::ToldToNodes(std::string as) && {
  node_name = std::move(as);
  return std::move(*this);
}

Field&& Field::SameAsNone(std::string json) && {
  as_none = std::move(json);
  return std::move(*this);
}

Field&& Field::On(std::vector<const Condition*> all) && {
  conditions = std::move(all);
  return std::move(*this);
}

}  // namespace parallelrun::api::fields
