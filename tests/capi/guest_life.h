// Every call that a host can make and every kind of callback that it can pass, to check what must hold around all of them.
#pragma once

#include <functional>

namespace st::test {

struct LifeWatch {
  std::function<void(const char* call)> after;       // called when a call has returned, on the same thread
  std::function<void(const char* callback)> inside;  // called inside a callback, on any thread; may be empty
};

void live_a_life(const LifeWatch& watch);

}  // namespace st::test
