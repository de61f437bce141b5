// A host that passes every kind of callback and memory that the library can borrow.
#pragma once

#include <cstdlib>
#include <cstring>
#include <string>

#include "dlpack_of_others.h"
#include "guest_life.h"
#include "sine_rows.h"

namespace st::test {

/// Each callback reports that it runs. `user` is the host.
struct LendingHost {
  explicit LendingHost(const LifeWatch& watch) : watch_(watch) {}
  void note(const char* callback) const {
    if (watch_.inside) watch_.inside(callback);
  }
  static const LendingHost& at(void* user) { return *static_cast<const LendingHost*>(user); }

  static void log(void* user, int32_t, const char*, const char*) { at(user).note("log"); }
  static void parallel(void* user, int64_t n, st_task_fn task, void* arg) {
    at(user).note("parallel");
    for (int64_t i = 0; i < n; ++i) {
      task(arg, i);
      at(user).note("parallel");
    }
  }
  static void* alloc(void* user, size_t bytes, size_t align) {
    at(user).note("alloc");
    return std::aligned_alloc(align, (bytes + align - 1) / align * align);
  }
  static void free(void* user, void* memory) {
    at(user).note("free");
    std::free(memory);
  }
  static void release(void* user) { at(user).note("release"); }
  static void deleter(DLManagedTensor* self) { at(self->manager_ctx).note("deleter"); }
  static st_status fill(void* user, int64_t k, const int64_t* ids, int64_t, const st_view* views) {
    const LendingHost& host = at(user);
    host.note("fill");
    for (int64_t i = 0; i < k; ++i) {
      const auto row = static_cast<size_t>(ids[i]);
      static_cast<float*>(views[0].data)[i] = host.rows.x[row];
      static_cast<float*>(views[1].data)[i] = host.rows.y[row];
    }
    return ST_OK;
  }
  static st_status shape(void* user, int32_t, const st_op_type* in, int32_t, st_op_type* out) {
    at(user).note("shape");
    out[0] = in[0];
    return ST_OK;
  }
  static st_status forward(void* user, int32_t, const st_view* in, int32_t, const st_view* out) {
    at(user).note("forward");
    std::memcpy(out[0].data, in[0].data, static_cast<size_t>(in[0].bytes));
    return ST_OK;
  }
  static st_status backward(void* user, int32_t, const st_view*, int32_t, const st_view*, const st_view* dy, const st_view* dx) {
    at(user).note("backward");
    std::memcpy(dx[0].data, dy[0].data, static_cast<size_t>(dy[0].bytes));
    return ST_OK;
  }
  static st_status on_step(void* user, const st_step_report*) {
    at(user).note("on_step");
    return ST_OK;
  }
  static st_status learning_rate(void* user, int64_t, double* lr) {
    at(user).note("learning_rate");
    *lr = 1e-3;
    return ST_OK;
  }
  static st_status on_token(void* user, int32_t) {
    at(user).note("on_token");
    return ST_OK;
  }
  static st_status write(void* user, const void* bytes, int64_t count) {
    at(user).note("write");
    static_cast<LendingHost*>(user)->stream.append(static_cast<const char*>(bytes), static_cast<size_t>(count));
    return ST_OK;
  }
  static st_status read(void* user, void* room, int64_t most, int64_t* count) {
    auto& host = *static_cast<LendingHost*>(user);
    host.note("read");
    *count = static_cast<int64_t>(host.stream.copy(static_cast<char*>(room), static_cast<size_t>(most), host.at_byte));
    host.at_byte += static_cast<size_t>(*count);
    return ST_OK;
  }

  SineRows rows;
  std::string stream;
  size_t at_byte = 0;

 private:
  const LifeWatch& watch_;
};

}  // namespace st::test
