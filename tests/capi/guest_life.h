// Every call that a host can make and every kind of callback that it can lend: for what must hold around all of them.
#pragma once

#include <functional>

namespace st::test {

struct LifeWatch {
  std::function<void(const char* call)> after;       // has returned, on the thread that lives
  std::function<void(const char* callback)> inside;  // is running, on whatever thread; may be empty
};

void live_a_life(const LifeWatch& watch);

}  // namespace st::test
