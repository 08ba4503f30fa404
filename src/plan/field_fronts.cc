#include "plan/field_fronts.h"

#include <algorithm>

namespace parallelrun::plan {
namespace {

// As pandas skips them in front of a number.
bool IsLoose(char c) { return c == '+' || c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

void FieldFronts::LookAt(char c) {
  const Front seen = front_;
  front_ = Front::kPast;
  if (seen == Front::kZero) {
    if (c >= '0' && c <= '9') Odd();
  } else if (c == '0') {
    front_ = Front::kZero;
  } else if (seen == Front::kNothing && c == '-') {
    front_ = Front::kMinus;
  } else if (seen == Front::kNothing && IsLoose(c)) {
    Odd();
  }
}

void FieldFronts::Text(std::string_view text) {
  for (size_t i = 0; i < text.size() && front_ != Front::kPast; ++i) LookAt(text[i]);
  if (!quoted_ && quote_ != 0 && text.find(quote_) != std::string_view::npos) {
    found_ = ~uint64_t{0};
  }
}

void FieldFronts::Run(std::string_view run) {
  while (true) {
    const size_t end = run.find(delimiter_);
    Text(run.substr(0, end));
    if (end == std::string_view::npos) return;
    NextField();
    run.remove_prefix(end + 1);
  }
}

void FieldFronts::Odd() {
  found_ |= job::MayLoseBit(column_);
  front_ = Front::kPast;
}

// The columns of these bytes of a block.
void FieldFronts::Mark(uint64_t at, uint64_t delimiters, uint64_t row_ends) {
  for (; at != 0; at &= at - 1) {
    const uint64_t before = (at & (~at + 1)) - 1;
    uint64_t of_row = delimiters & before;
    uint64_t column = column_;
    if (const uint64_t ends = row_ends & before; ends != 0) {
      of_row &= ~(~uint64_t{0} >> __builtin_clzll(ends));
      column = 0;
    }
    found_ |= job::MayLoseBit(column + static_cast<uint64_t>(__builtin_popcountll(of_row)));
  }
}

}  // namespace parallelrun::plan
