// Makes many things by several threads at once, and hands them on in their order. The caller's
// thread is one of them: where no other can be started it does all of it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace parallelrun {

struct Makers {
  const char* name = "";  // of the threads, as Thread has it
  size_t threads = 1;     // the caller's is among them
  // So many things are made or wait to be taken, at most: what bounds the memory.
  size_t most_held() const { return 2 * threads; }
};

namespace in_order {
// `make` and `take` for the thing with that number; see MakeInOrder.
void Run(const Makers& makers, size_t count, const std::function<void(size_t)>& make,
         const std::function<bool(size_t)>& take);
}  // namespace in_order

// `make(i)` is called once for each i below `count`, in any order, by several threads at once; what
// it returns goes to `take(i, made)`, on the caller's thread, for one i after the other. Once that
// returns false no more is begun, and what is being made is waited for and forgotten. All threads
// have ended when this returns.
template <typename Make, typename Take>
void MakeInOrder(const Makers& makers, size_t count, const Make& make, const Take& take) {
  using Made = decltype(make(size_t{0}));
  std::vector<std::optional<Made>> held(makers.most_held());
  in_order::Run(
      makers, count, [&](size_t i) { held[i % held.size()].emplace(make(i)); },
      [&](size_t i) {
        Made made = *std::move(held[i % held.size()]);
        held[i % held.size()].reset();
        return take(i, std::move(made));
      });
}

}  // namespace parallelrun
