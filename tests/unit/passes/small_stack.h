// Runs a test's body on a small stack, where a recursion over the graph's length would crash without needing a huge graph.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

namespace st {

/// Runs `body` on a thread with half a mebibyte of stack. An exception of `body` ends the process.
inline void on_a_small_stack(const std::function<void()>& body) {
  pthread_attr_t attributes;
  pthread_t thread{};
  const auto run = [](void* given) -> void* {
    (*static_cast<const std::function<void()>*>(given))();
    return nullptr;
  };
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, size_t{512} << 10), 0);
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<void*>(static_cast<const void*>(&body))), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(pthread_attr_destroy(&attributes), 0);
}

}  // namespace st
