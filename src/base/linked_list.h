// A list whose links lie in its elements: one element is in several lists at once, and leaves each
// of them in one step, without a search. Owns nothing; an element must leave before it ends. Not
// thread-safe.
#pragma once

#include <cassert>

namespace parallelrun {

template <typename T>
struct Neighbours {
  T* before = nullptr;
  T* after = nullptr;
};

template <typename T, Neighbours<T> T::*kLinks>
class LinkedList {
 public:
  LinkedList() = default;
  LinkedList(const LinkedList&) = delete;
  LinkedList& operator=(const LinkedList&) = delete;

  bool empty() const { return first_ == nullptr; }
  T* first() const { return first_; }
  T* last() const { return last_; }
  // The next one; nullptr at the end.
  static T* After(const T& element) { return (element.*kLinks).after; }
  static T* Before(const T& element) { return (element.*kLinks).before; }

  void Append(T& element) { InsertAfter(last_, element); }
  // In front of all for nullptr.
  void InsertAfter(T* before, T& element) {
    Neighbours<T>& links = element.*kLinks;
    assert(links.before == nullptr && links.after == nullptr && first_ != &element);
    links.before = before;
    links.after = before == nullptr ? first_ : After(*before);
    (before == nullptr ? first_ : (before->*kLinks).after) = &element;
    (links.after == nullptr ? last_ : (links.after->*kLinks).before) = &element;
  }
  void Remove(T& element) {
    Neighbours<T>& links = element.*kLinks;
    (links.before == nullptr ? first_ : (links.before->*kLinks).after) = links.after;
    (links.after == nullptr ? last_ : (links.after->*kLinks).before) = links.before;
    links = {};
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace parallelrun
