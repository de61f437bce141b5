// Tensors: memory with an owner, passed between libraries as DLPack without a copy.
#include <cstring>
#include <functional>
#include <limits>

#include "dlpack_of_others.h"
#include "held.h"
#include "small_run.h"

namespace {

using namespace st::test;

class Tensor : public testing::Test {
 protected:
  st_view view() {
    st_view made{};
    EXPECT_TRUE(works(st_tensor_view(tensor, &made)));
    return made;
  }
  DLManagedTensor* exported() {
    DLManagedTensor* managed = nullptr;
    EXPECT_TRUE(works(st_tensor_to_dlpack(tensor, &managed)));
    return managed;
  }
  int64_t allocated() { return memory_of(context).allocated_bytes; }
  static void count(void* user) { ++*static_cast<int*>(user); }

  /// Another library's array of 2 x 3 floats; counts its releases.
  struct Foreign {
    Foreign() {
      managed.dl_tensor = {values, {1, 0}, 2, {2, 32, 1}, shape, nullptr, 0};
      managed.manager_ctx = this;
      managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    }
    float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t shape[2] = {2, 3}, strides[2] = {3, 1};
    DLManagedTensor managed{};
    int deleted = 0;
  };
  st_status take(Foreign& from) { return st_tensor_from_dlpack(context, &from.managed, tensor.out()); }

  HeldContext context = hold<HeldContext>(st_context_create, nullptr);
  HeldTensor tensor;
};

TEST_F(Tensor, IsZeroAlignedAndCountedByItsContext) {
  const int64_t before = allocated();
  const int64_t dims[] = {3, 5, 7};
  ASSERT_TRUE(works(st_tensor_create(context, ST_F64, 3, dims, tensor.out())));
  const st_view v = view();
  EXPECT_EQ(v.dtype, ST_F64);
  ASSERT_EQ(v.rank, 3);
  EXPECT_TRUE(std::equal(dims, dims + 3, v.dims));
  EXPECT_EQ(v.strides, nullptr);
  EXPECT_EQ(v.bytes, 3 * 5 * 7 * 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(v.data) % 64, 0U);
  for (int64_t i = 0; i < 105; ++i) ASSERT_EQ(static_cast<const double*>(v.data)[i], 0.0);
  EXPECT_EQ(allocated(), before + v.bytes);
  tensor.reset();
  EXPECT_EQ(allocated(), before);
}

TEST_F(Tensor, MayBeANumberOrEmpty) {
  ASSERT_TRUE(works(st_tensor_create(context, ST_BF16, 0, nullptr, tensor.out())));
  EXPECT_EQ(view().bytes, 2);
  tensor.reset();
  const int64_t none[] = {4, 0};
  ASSERT_TRUE(works(st_tensor_create(context, ST_F32, 2, none, tensor.out())));
  EXPECT_EQ(view().bytes, 0);
  DLManagedTensor* const managed = exported();
  tensor.reset();
  EXPECT_TRUE(works(st_tensor_from_dlpack(context, managed, tensor.out())));
  EXPECT_EQ(view().dims[1], 0);
}

TEST_F(Tensor, OfWhatCannotBeIsRefused) {
  const auto create = [&](st_dtype dtype, std::initializer_list<int64_t> dims) {
    return st_tensor_create(context, dtype, static_cast<int32_t>(dims.size()), dims.begin(), tensor.out());
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(0, {2}), {"st_tensor_create", "dtype 0"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(ST_F32, {ST_BATCH, 2}), {"[-1, 2]"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(ST_F32, {int64_t{1} << 40, int64_t{1} << 40}), {"any memory"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(ST_F64, {int64_t{1} << 60}), {"any memory"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, create(ST_F32, {0, std::numeric_limits<int64_t>::max(), 2}), {"any memory"}));
  EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, create(ST_F32, {int64_t{1} << 50}), {"st_tensor_create", "needs", "is available"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, create(ST_F32, {1, 1, 1, 1, 1, 1, 1, 1, 1}), {"9 dimensions"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_tensor_create(context, ST_F32, -1, nullptr, tensor.out()), {"rank -1"}));
}

TEST_F(Tensor, OfTheHostsMemoryKeepsItsStridesAndIsReleasedOnce) {
  float values[12];
  const int64_t dims[] = {2, 3}, strides[] = {6, 2};
  const st_view host = {ST_F32, 2, dims, strides, values, sizeof values};
  int released = 0;
  ASSERT_TRUE(works(st_tensor_wrap(context, &host, count, &released, tensor.out())));
  const st_view v = view();
  EXPECT_EQ(v.data, values);
  EXPECT_EQ(v.bytes, 48);
  ASSERT_NE(v.strides, nullptr);
  EXPECT_EQ(v.strides[0], 6);
  EXPECT_EQ(v.strides[1], 2);
  EXPECT_NE(v.dims, dims) << "dims are copied, since the host's may be gone";
  DLManagedTensor* const one = exported();
  DLManagedTensor* const two = exported();
  EXPECT_EQ(one->dl_tensor.strides[0], 6);
  tensor.reset();
  one->deleter(one);
  EXPECT_EQ(released, 0);
  two->deleter(two);
  EXPECT_EQ(released, 1);
}

TEST_F(Tensor, ThatIsNotWrappedIsNotReleased) {
  float values[12];
  const int64_t dims[] = {2, 3}, backwards[] = {-3, 1}, far[] = {INT64_MAX / 2, 1}, wide[] = {10, 1};
  int released = 0;
  const auto wrap = [&](const int64_t* strides, int64_t bytes) {
    const st_view host = {ST_F32, 2, dims, strides, values, bytes};
    return st_tensor_wrap(context, &host, count, &released, tensor.out());
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, wrap(nullptr, 23), {"needs 24 bytes", "23"}));
  EXPECT_TRUE(fails(ST_UNSUPPORTED, wrap(backwards, 48), {"stride -3"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, wrap(far, 48), {"memory"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, wrap(wide, 48), {"needs 52 bytes"}));
  EXPECT_EQ(released, 0);
}

TEST_F(Tensor, ExportsEveryDtypeAndTakesItBack) {
  struct Row {
    st_dtype dtype;
    uint8_t code, bits;
  };
  // kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6
  const Row rows[] = {{ST_F32, 2, 32}, {ST_F64, 2, 64}, {ST_BF16, 4, 16}, {ST_F16, 2, 16},
                      {ST_I32, 0, 32}, {ST_I64, 0, 64}, {ST_U8, 1, 8},    {ST_BOOL, 6, 8}};
  const int64_t dims[] = {3, 4};
  for (const Row& row : rows) {
    auto made = hold<HeldTensor>(st_tensor_create, context, row.dtype, 2, dims);
    st_view v{};
    ASSERT_TRUE(works(st_tensor_view(made, &v)));
    std::memset(v.data, 7, static_cast<size_t>(v.bytes));
    DLManagedTensor* managed = nullptr;
    ASSERT_TRUE(works(st_tensor_to_dlpack(made, &managed)));
    const DLTensor& t = managed->dl_tensor;
    EXPECT_EQ(t.data, v.data);
    EXPECT_EQ(t.device.device_type, 1);
    EXPECT_EQ(t.device.device_id, 0);
    EXPECT_EQ(t.dtype.code, row.code);
    EXPECT_EQ(t.dtype.bits, row.bits);
    EXPECT_EQ(t.dtype.lanes, 1);
    ASSERT_EQ(t.ndim, 2);
    EXPECT_EQ(t.shape[0] * 10 + t.shape[1], 34);
    EXPECT_EQ(t.strides[0] * 10 + t.strides[1], 41);
    EXPECT_EQ(t.byte_offset, 0U);
    const auto back = hold<HeldTensor>(st_tensor_from_dlpack, context, managed);
    made.reset();
    st_view again{};
    ASSERT_TRUE(works(st_tensor_view(back, &again)));
    EXPECT_EQ(again.dtype, row.dtype);
    EXPECT_EQ(again.strides, nullptr);
    EXPECT_EQ(again.bytes, v.bytes);
    EXPECT_EQ(static_cast<const uint8_t*>(again.data)[again.bytes - 1], 7) << "the memory still exists";
  }
}

TEST_F(Tensor, ExportOutlivesTheTensorAndItsContext) {
  const int64_t dims[] = {1000};
  ASSERT_TRUE(works(st_tensor_create(context, ST_F32, 1, dims, tensor.out())));
  DLManagedTensor* const managed = exported();
  tensor.reset();
  context.reset();
  auto* const values = static_cast<float*>(managed->dl_tensor.data);
  values[999] = 3;
  EXPECT_EQ(values[0] + values[999], 3);
  managed->deleter(managed);
}

TEST_F(Tensor, FromDlpackEndsItOnce) {
  Foreign foreign;
  ASSERT_TRUE(works(take(foreign)));
  EXPECT_EQ(view().data, foreign.values);
  EXPECT_EQ(view().strides, nullptr);
  EXPECT_EQ(view().bytes, 24);
  DLManagedTensor* const again = exported();
  tensor.reset();
  EXPECT_EQ(foreign.deleted, 0);
  again->deleter(again);
  EXPECT_EQ(foreign.deleted, 1);

  Foreign without;
  without.managed.deleter = nullptr;
  ASSERT_TRUE(works(take(without)));
  EXPECT_TRUE(works(st_tensor_destroy(tensor))) << "there is nothing to release";
  *tensor.out() = nullptr;
}

TEST_F(Tensor, FromDlpackHonoursOffsetAndStrides) {
  Foreign foreign;
  foreign.managed.dl_tensor.byte_offset = 8;
  foreign.managed.dl_tensor.strides = foreign.strides;
  ASSERT_TRUE(works(take(foreign)));
  EXPECT_EQ(view().strides, nullptr) << "its strides are row-major";
  EXPECT_EQ(static_cast<const float*>(view().data)[0], 2);
  tensor.reset();

  foreign.strides[0] = 1;  // the transpose of a 3 x 2
  foreign.strides[1] = 2;
  ASSERT_TRUE(works(take(foreign)));
  const st_view v = view();
  ASSERT_NE(v.strides, nullptr);
  EXPECT_EQ(static_cast<const float*>(v.data)[1 * v.strides[0] + 2 * v.strides[1]], 7);
  tensor.reset();  // before the memory is freed
}

TEST_F(Tensor, FromDlpackRefusesWhatItCannotHoldAndLeavesItAlone) {
  Foreign foreign;
  const DLTensor fine = foreign.managed.dl_tensor;
  const auto refuses = [&](st_status status, const std::function<void(DLTensor&)>& change, std::initializer_list<std::string_view> words) {
    foreign.managed.dl_tensor = fine;
    change(foreign.managed.dl_tensor);
    return fails(status, take(foreign), words);
  };
  int64_t negative[] = {2, -3}, huge[] = {int64_t{1} << 62, int64_t{1} << 62}, backwards[] = {-3, 1};
  EXPECT_TRUE(refuses(ST_UNSUPPORTED, [](auto& t) { t.dtype = {2, 32, 4}; }, {"4 lanes"}));
  EXPECT_TRUE(refuses(ST_UNSUPPORTED, [](auto& t) { t.dtype = {0, 16, 1}; }, {"code 0", "16 bits"}));
  EXPECT_TRUE(refuses(ST_UNSUPPORTED, [](auto& t) { t.dtype = {5, 64, 1}; }, {"code 5"}));
  EXPECT_TRUE(refuses(ST_UNSUPPORTED, [](auto& t) { t.ndim = 9; }, {"9 dimensions"}));
  EXPECT_TRUE(refuses(ST_INVALID_ARGUMENT, [](auto& t) { t.ndim = -1; }, {"rank -1"}));
  EXPECT_TRUE(refuses(ST_INVALID_ARGUMENT, [](auto& t) { t.shape = nullptr; }, {"no dims"}));
  EXPECT_TRUE(refuses(ST_INVALID_ARGUMENT, [](auto& t) { t.data = nullptr; }, {"no data"}));
  EXPECT_TRUE(refuses(ST_INVALID_ARGUMENT, [&](auto& t) { t.shape = negative; }, {"[2, -3]"}));
  EXPECT_TRUE(refuses(ST_INVALID_ARGUMENT, [&](auto& t) { t.shape = huge; }, {"any memory"}));
  EXPECT_TRUE(refuses(ST_UNSUPPORTED, [&](auto& t) { t.strides = backwards; }, {"stride -3"}));
  foreign.managed.dl_tensor = fine;
  EXPECT_EQ(foreign.deleted, 0) << "a refused tensor still belongs to the other library";
  EXPECT_TRUE(works(take(foreign)));
  tensor.reset();
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(Tensor, FromDlpackTakesTheHostsMemoryAlone) {
  // DLDeviceType of dlpack.h 1.2, by number
  const char* const names[] = {"type 0,",        "kDLCPU (1)",       "kDLCUDA (2)",    "kDLCUDAHost (3)",     "kDLOpenCL (4)",
                               "type 5,",        "type 6,",          "kDLVulkan (7)",  "kDLMetal (8)",        "kDLVPI (9)",
                               "kDLROCM (10)",   "kDLROCMHost (11)", "kDLExtDev (12)", "kDLCUDAManaged (13)", "kDLOneAPI (14)",
                               "kDLWebGPU (15)", "kDLHexagon (16)",  "kDLMAIA (17)",   "kDLTrn (18)",         "type 19,"};
  for (int32_t type = 0; type < 20; ++type) {
    Foreign foreign;
    foreign.managed.dl_tensor.device = {type, 4};
    if (type == 1 || type == 3) {  // the second is pinned
      ASSERT_TRUE(works(take(foreign)));
      EXPECT_EQ(view().data, foreign.values);
      EXPECT_EQ(view().device, 0);
      DLManagedTensor* const again = exported();
      EXPECT_EQ(again->dl_tensor.device.device_type, 1) << "what is exported is kDLCPU";
      EXPECT_EQ(again->dl_tensor.device.device_id, 0);
      again->deleter(again);
      tensor.reset();
      continue;
    }
    EXPECT_TRUE(
        fails(ST_UNSUPPORTED, take(foreign),
              {"st_tensor_from_dlpack", "device 4", names[type], "allowed", "kDLCPU (1)", "kDLCUDAHost (3)", "copy it to the host"}));
    EXPECT_EQ(foreign.deleted, 0);
  }
  for (const int32_t type : {-1, INT32_MIN, INT32_MAX, 4096}) {
    Foreign foreign;
    foreign.managed.dl_tensor.device = {type, 0};
    EXPECT_TRUE(fails(ST_UNSUPPORTED, take(foreign), {"type " + std::to_string(type) + ", which has no name"}));
  }
}

TEST_F(Tensor, HoldsABatchForAStep) {
  SineRun by_views, by_tensors;
  ASSERT_TRUE(works(by_views.step()));
  st_named_view batch[2];
  HeldTensor parts[2];
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(works(st_tensor_create(by_tensors.context, ST_F32, 2, by_tensors.dims, parts[i].out())));
    batch[i].name = by_tensors.views[i].name;
    ASSERT_TRUE(works(st_tensor_view(parts[i], &batch[i].view)));
    std::memcpy(batch[i].view.data, by_tensors.views[i].view.data, 32);
  }
  ASSERT_TRUE(works(st_trainer_step(by_tensors.trainer, 2, batch, nullptr)));
  EXPECT_EQ(by_tensors.digest(), by_views.digest());
}

}  // namespace
