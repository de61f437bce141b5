#include "host_callbacks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "api_calls.h"

namespace st::fuzz {
namespace {

/// A call into the library from a callback; calls do not nest further.
void call_back(World& world) {
  if (world.depth > 0 || !world.bytes.rarely(3)) return;
  ++world.depth;
  call_something(world);
  --world.depth;
}

/// The written bytes, occasionally with one wrong byte.
st_status replay(Caller& caller, void* bytes, int64_t room, int64_t* count) {
  const std::vector<uint8_t>& stream = caller.world.stream;
  const auto left = static_cast<int64_t>(stream.size()) - caller.replay;
  *count = std::clamp<int64_t>(left, 0, room);
  if (*count > 0) std::memcpy(bytes, stream.data() + caller.replay, static_cast<size_t>(*count));
  if (*count > 0 && caller.world.bytes.rarely(32)) static_cast<uint8_t*>(bytes)[*count - 1] ^= 1;
  caller.replay += *count;
  return caller.world.bytes.rarely(32) ? static_cast<st_status>(ST_IO) : static_cast<st_status>(ST_OK);
}

st_status outcome(Caller& caller) {
  call_back(caller.world);
  return caller.fails() ? static_cast<st_status>(1 + caller.world.bytes.next() % 40) : static_cast<st_status>(ST_OK);
}

}  // namespace

Elsewhere& elsewhere() {
  static Elsewhere state;
  return state;
}

st_status on_step(void* user, const st_step_report* report) {
  if (report == nullptr || report->step < 1) finding("on_step", "a report without a step");
  return outcome(*static_cast<Caller*>(user));
}

st_status on_token(void* user, int32_t) { return outcome(*static_cast<Caller*>(user)); }

st_status write_bytes(void* user, const void* bytes, int64_t count) {
  auto& caller = *static_cast<Caller*>(user);
  const auto* begin = static_cast<const uint8_t*>(bytes);
  caller.world.stream.insert(caller.world.stream.end(), begin, begin + count);  // all of it must be readable
  return outcome(caller);
}

st_status read_bytes(void* user, void* bytes, int64_t room, int64_t* count) {
  auto& caller = *static_cast<Caller*>(user);
  if (caller.replay >= 0) return replay(caller, bytes, room, count);
  static const char kHeader[] = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  Bytes& input = caller.world.bytes;
  *count = std::min<int64_t>(room, input.next());
  for (int64_t i = 0; i < *count; ++i)
    static_cast<uint8_t*>(bytes)[i] =
        input.rarely(4) ? input.next() : static_cast<uint8_t>(kHeader[static_cast<size_t>(i) % sizeof kHeader]);
  if (room >= 8 && input.rarely(2)) {
    const int64_t length = static_cast<int64_t>(sizeof kHeader) - 1;
    std::memcpy(bytes, &length, 8);
  }
  if (input.rarely(16)) *count = caller.world.number();  // more than there is room for, or negative
  if (input.empty()) *count = 0;
  return outcome(caller);
}

st_status learning_rate(void*, int64_t k, double* lr) {
  if (k < 0) finding("learning_rate", "a step before the first");
  static constexpr double kRates[] = {0.01, 0, 1e300, -1, HUGE_VAL, NAN, 0.01, 0.01};
  const int behaviour = elsewhere().rate_behaviour.load() % 12;
  if (behaviour == 8) return ST_IO;
  if (behaviour == 9) return -5;
  if (behaviour == 10) st_trainer_set_schedule(elsewhere().trainer, nullptr, nullptr, nullptr);
  if (behaviour != 11) *lr = kRates[behaviour % 8];  // else writes nothing
  return ST_OK;
}

st_status fill_rows(void*, int64_t k, const int64_t* row_ids, int64_t n, const st_view* views) {
  if (k < 1) finding("fill", "no rows are wanted");
  for (int64_t i = 0; i < n; ++i) {
    if (views[i].rank < 1 || views[i].dims[0] != k) finding("fill", "a view is not of k rows");
    if (views[i].bytes == 0) continue;  // a field without elements has no data
    std::memset(views[i].data, static_cast<int>(row_ids[k - 1] % 2), static_cast<size_t>(views[i].bytes));
  }
  switch (elsewhere().fill_behaviour.load() % 8) {
    case 1:
      return ST_IO;
    case 2:
      return 12345;
    case 3:
      st_trainer_step(elsewhere().trainer, 0, nullptr, nullptr);
      return ST_OK;
    case 4:
      st_trainer_destroy(static_cast<st_trainer*>(nullptr));
      return ST_OK;
    default:
      return ST_OK;
  }
}

st_status op_shape(void*, int32_t n, const st_op_type* inputs, int32_t m, st_op_type* outputs) {
  const int behaviour = elsewhere().op_behaviour.load() % 16;
  if (behaviour == 1 || n < 1) return ST_INVALID_ARGUMENT;
  for (int32_t i = 0; i < m; ++i) {
    outputs[i] = inputs[0];
    if (behaviour == 2) outputs[i].rank = 9;
    if (behaviour == 3) outputs[i].rank = -1;
    if (behaviour == 4) outputs[i].dtype = 99;
    if (behaviour == 5) outputs[i].dims[0] = INT64_MAX;
    if (behaviour == 6) outputs[i].dims[0] = INT64_MIN;
  }
  if (behaviour == 7) st_context_trim(elsewhere().context);
  return ST_OK;
}

st_status op_forward(void*, int32_t n, const st_view* inputs, int32_t m, const st_view* outputs) {
  for (int32_t i = 0; i < m; ++i) {
    if (n < 1 || inputs[0].bytes != outputs[i].bytes) return ST_INTERNAL;
    std::memcpy(outputs[i].data, inputs[0].data, static_cast<size_t>(outputs[i].bytes));
  }
  const int behaviour = elsewhere().op_behaviour.load() % 16;
  if (behaviour == 9) st_trainer_step(elsewhere().trainer, 0, nullptr, nullptr);
  return behaviour == 8 ? ST_IO : ST_OK;
}

st_status op_backward(void*, int32_t n, const st_view*, int32_t m, const st_view*, const st_view* d_outputs, const st_view* d_inputs) {
  for (int32_t i = 0; i < n; ++i) {
    if (d_inputs[i].data == nullptr) continue;
    std::memset(d_inputs[i].data, 0, static_cast<size_t>(d_inputs[i].bytes));
    if (i == 0 && m > 0 && d_outputs[0].bytes == d_inputs[0].bytes)
      std::memcpy(d_inputs[0].data, d_outputs[0].data, static_cast<size_t>(d_inputs[0].bytes));
  }
  return elsewhere().op_behaviour.load() % 16 == 10 ? ST_CANCELLED : ST_OK;
}

void log_record(void*, int32_t level, const char* area, const char* text) {
  if (level < ST_LOG_ERROR || level > ST_LOG_DEBUG || std::strlen(area) + std::strlen(text) == 0) finding("log", "a record without words");
  const char* rate = nullptr;
  st_trainer_get(elsewhere().trainer, "lr", &rate);  // may be the handle of the call that logs this
}

void parallel(void*, int64_t n, st_task_fn task, void* arg) {
  for (int64_t i = n; i-- > 0;) task(arg, i);
}

void* allocate(void*, size_t bytes, size_t align) {
  if (elsewhere().alloc_failures > 0 && elsewhere().alloc_failures-- == 1) return nullptr;
  if (bytes == 0 || align < 16 || (align & (align - 1)) != 0) finding("alloc", "bytes or align are not as promised");
  if (bytes > (size_t{1} << 28)) return nullptr;
  ++elsewhere().allocated;
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}

void release_memory(void*, void* memory) {
  --elsewhere().allocated;
  std::free(memory);
}

}  // namespace st::fuzz
