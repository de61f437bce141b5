// Calls whose work is as short as the call itself. Their fast path must not miss a handle that another thread destroys, a reused slot,
// adjacent arrays, or the host's floating-point state.
#include <atomic>
#include <cmath>
#include <thread>
#include <vector>

#include "gemm_case.h"
#include "inside.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using namespace st::test;

HeldContext one_thread() {
  auto options = filled(st_context_options_init);
  options.threads = 1;
  return hold<HeldContext>(st_context_create, &options);
}

TEST(SmallCalls, OnAPlanThatIsDestroyedAndMadeAnewAreWholeOrRefused) {
  const HeldContext context = one_thread();
  const GemmCase x({16, 16, 16});
  GemmCase expected({16, 16, 16});
  ASSERT_TRUE(works(expected.run(expected.plan(context), 1, 0)));
  constexpr int kPlans = 300;
  std::atomic<st_gemm*> shared{nullptr};
  std::atomic<int64_t> whole{0};
  std::atomic<bool> done{false};
  const auto call = [&] {
    GemmCase mine({16, 16, 16});
    while (!done) {
      const st_status status = mine.run(shared, 1, 0);
      EXPECT_TRUE(status == ST_OK || status == ST_BUSY || status == ST_INVALID_HANDLE) << st_last_error();
      std::this_thread::yield();
      if (status != ST_OK) continue;
      ++whole;
      EXPECT_EQ(mine.c.bytes(), expected.c.bytes());
    }
  };
  std::thread first(call), second(call);
  for (int i = 0; i < kPlans || whole == 0; ++i) {
    st_gemm* plan = nullptr;
    EXPECT_TRUE(works(st_gemm_plan_create(context, &x.problem, nullptr, &plan)));
    shared = plan;
    if (i % 4 == 0) std::this_thread::yield();
    st_status status = ST_BUSY;
    while (status == ST_BUSY) status = st_gemm_plan_destroy(plan);
    EXPECT_TRUE(works(status));
  }
  done = true;
  first.join();
  second.join();
}

TEST(SmallCalls, OfManyPlansAreEachTheirOwns) {
  const HeldContext context = one_thread();
  GemmCase x({4, 4, 4}), y({4, 5, 4});
  std::vector<HeldGemm> plans;
  for (int i = 0; i < 600; ++i) plans.push_back((i % 2 == 0 ? x : y).plan(context));
  const std::vector<st_gemm*> handles(plans.begin(), plans.end());
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_TRUE(works((i % 2 == 0 ? x : y).run(handles[i], 1, 0))) << i;
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, (i % 2 == 0 ? y : x).run(handles[i], 1, 0), {"the plan's is"})) << i;
  }
  plans.clear();
  for (size_t i = 0; i < handles.size(); ++i) plans.push_back(x.plan(context));  // in the same slots
  for (st_gemm* handle : handles) EXPECT_TRUE(fails(ST_INVALID_HANDLE, x.run(handle, 1, 0), {"st_gemm_run", "destroyed"}));
}

TEST(SmallCalls, OfAPlanOfAnotherKindAreRefused) {
  const HeldContext context = one_thread();
  GemmCase x({16, 16, 16});
  const HeldGemm gemm = x.plan(context);
  const HeldPacked packed = x.packed(gemm);
  auto* wrong = reinterpret_cast<st_gemm*>(static_cast<st_packed*>(packed));
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, x.run(wrong, 1, 0), {"different handle", "packed"}));
  EXPECT_TRUE(fails(ST_INVALID_HANDLE, x.run(nullptr, 1, 0), {"NULL"}));
}

// A destroyed plan lives on in what it packed; a new one must not be mistaken for it.
TEST(SmallCalls, APlanWithoutAHandleIsNoOtherPlan) {
  Inside inside;
  const auto context = hold<HeldContext>(st_context_create, inside.options());
  GemmCase x({200, 200, 200});
  HeldGemm gone = x.plan(context);
  const HeldPacked packed = x.packed(gone);
  gone.reset();
  const HeldGemm gemm = x.plan(context);
  const st_view b = x.b.view();
  bool asked = false;
  inside.then(0, [&] {
    asked = true;
    EXPECT_TRUE(works(st_gemm_repack(packed, &b)));
  });
  ASSERT_TRUE(works(x.run(gemm, 1, 0)));
  EXPECT_TRUE(asked) << "the host was never asked for threads";
}

TEST(SmallCalls, MayTouchAtEveryEdgeAndShareNoElement) {
  const HeldContext context = one_thread();
  constexpr int64_t kN = 16, kElements = kN * kN;
  GemmCase x({kN, kN, kN});
  const HeldGemm gemm = x.plan(context);
  const HeldPacked packed = x.packed(gemm);
  std::vector<float> room(5 * kElements, 1.0F), apart(kElements, 1.0F);
  const int64_t dims[] = {kN, kN};
  const auto at = [&](float* first) { return st_view{ST_F32, 2, dims, nullptr, first, kElements * 4}; };
  float* const middle = room.data() + 2 * kElements;
  const st_view c = at(middle), other = at(apart.data());
  for (const int64_t gap : {-kElements, -kElements + 1, int64_t{-1}, int64_t{0}, int64_t{1}, kElements - 1, kElements}) {
    SCOPED_TRACE(gap);
    const st_view near = at(middle + gap);
    const bool apart_from_c = std::abs(gap) >= kElements;
    const st_status as_a = st_gemm_run(gemm, 1, &near, &other, 0, &c, nullptr);
    EXPECT_TRUE(apart_from_c ? works(as_a) : fails(ST_INVALID_ARGUMENT, as_a, {"\"c\" and \"a\" share memory"}));
    const st_status as_b = st_gemm_run(gemm, 1, &other, &near, 0, &c, nullptr);
    EXPECT_TRUE(apart_from_c ? works(as_b) : fails(ST_INVALID_ARGUMENT, as_b, {"\"c\" and \"b\" share memory"}));
    const st_status of_packed = st_gemm_run_packed(gemm, 1, &near, packed, 0, &c, nullptr);
    EXPECT_TRUE(apart_from_c ? works(of_packed) : fails(ST_INVALID_ARGUMENT, of_packed, {"\"c\" and \"a\" share memory"}));
    EXPECT_TRUE(works(st_gemm_run(gemm, 1, &near, &near, 0, &other, nullptr))) << "A and B are only read";
  }
  st_view none = other;
  none.data = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &none, &other, 0, &c, nullptr), {"\"a\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &other, nullptr, 0, &c, nullptr), {"\"b\""}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &other, &other, 0, nullptr, nullptr), {"\"c\""}));
}

#if defined(__x86_64__)
TEST(SmallCalls, FlushDenormalsAndGiveTheHostsFloatingPointStateBack) {
  const HeldContext context = one_thread();
  constexpr int64_t kN = 16;
  GemmCase x({kN, kN, kN});
  const HeldGemm gemm = x.plan(context);
  const HeldPacked packed = x.packed(gemm);
  std::vector<float> tiny(kN * kN, 0x1p-70F), denormal(kN * kN, 0x1p-130F), c(kN * kN, 1.0F);
  const int64_t dims[] = {kN, kN};
  const auto view = [&](std::vector<float>& of) { return st_view{ST_F32, 2, dims, nullptr, of.data(), kN * kN * 4}; };
  const st_view of_tiny = view(tiny), of_denormal = view(denormal), of_c = view(c);
  const uint32_t usual = _mm_getcsr();
  for (const uint32_t hosts : {0x1F80U, 0x1F80U | 0x6000U, 0x1F80U & ~0x0680U, 0x1F80U | 0x8040U, 0x1F80U | 0x3FU}) {
    SCOPED_TRACE(hosts);
    for (const st_view* a : {&of_tiny, &of_denormal})
      for (const bool of_packed : {false, true}) {
        std::fill(c.begin(), c.end(), 1.0F);
        EXPECT_TRUE(works(st_gemm_repack(packed, a)));
        _mm_setcsr(hosts);
        const st_status status =
            of_packed ? st_gemm_run_packed(gemm, 1, a, packed, 0, &of_c, nullptr) : st_gemm_run(gemm, 1, a, a, 0, &of_c, nullptr);
        const uint32_t after = _mm_getcsr();
        const st_status refused = st_gemm_run(gemm, 1, a, a, 0, a, nullptr);
        const uint32_t after_an_error = _mm_getcsr();
        _mm_setcsr(usual);
        EXPECT_TRUE(works(status));
        EXPECT_EQ(refused, ST_INVALID_ARGUMENT);
        EXPECT_EQ(after, hosts);
        EXPECT_EQ(after_an_error, hosts);
        for (const float each : c) EXPECT_EQ(each, 0.0F);
      }
  }
}
#endif

}  // namespace
