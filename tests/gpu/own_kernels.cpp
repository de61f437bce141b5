// Our kernels on a device: their bits against the cpu's, and their rates. One JSON line a fact; without a device one line that says why.
// Built by CMake (target own_kernels), with the plug-in's own code and CUDA's runtime linked statically.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/cuda_device.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/enqueue.h"
#include "backend/kernel_side.h"
#include "base/combine.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "base/workers.h"
#include "probe.h"

namespace {

using namespace st;
using namespace st::cuda;

constexpr DType kFloats[] = {DType::f32, DType::bf16, DType::f16};

/// All 16-bit patterns; of fp32 64 for each upper half.
std::vector<uint8_t> patterns(DType dtype) {
  std::mt19937 random(3);
  std::vector<uint32_t> words;
  std::vector<uint16_t> halves;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    halves.push_back(static_cast<uint16_t>(upper));
    for (const uint32_t lower : {0x0000U, 0x0FFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      words.push_back(upper << 16 | lower);
    for (int i = 9; i < 64; ++i) words.push_back(upper << 16 | (random() & 0xFFFF));
  }
  const auto* const from =
      dtype == DType::f32 ? reinterpret_cast<const uint8_t*>(words.data()) : reinterpret_cast<const uint8_t*>(halves.data());
  return {from, from + (dtype == DType::f32 ? words.size() * 4 : halves.size() * 2)};
}

/// Random numbers of any sign around 1, and below the normal range.
std::vector<uint8_t> finite(DType dtype, int64_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> bytes(static_cast<size_t>(elements * bytes_of(dtype)));
  for (int64_t i = 0; i < elements; ++i) {
    const uint64_t small = random() % 4 == 0 ? 0 : 1;
    uint64_t bits = random();
    if (dtype == DType::f64) bits = (bits & 0x800FFFFFFFFFFFFF) | small * (1000 + random() % 40) << 52;
    if (dtype == DType::f32) bits = (bits & 0x807FFFFF) | small * (120 + random() % 20) << 23;
    if (dtype == DType::bf16) bits = (bits & 0x807F) | small * (120 + random() % 20) << 7;
    if (dtype == DType::f16) bits = (bits & 0x83FF) | (random() % 20) << 10;
    std::memcpy(bytes.data() + i * bytes_of(dtype), &bits, static_cast<size_t>(bytes_of(dtype)));
  }
  return bytes;
}

class Facts {
 public:
  explicit Facts(int index) : index_(index), device_(index, std::make_shared<MemorySource>()), stream_(device_.make_stream()) {}

  void casts() {
    for (const DType from : kFloats)
      for (const DType to : kFloats)
        if (from != to) cast(from, to);
  }

  void fills() {
    const struct {
      DType dtype;
      uint64_t bits;
    } kFills[] = {{DType::u8, 200}, {DType::bf16, 0x3FC0}, {DType::f32, 0x3FC00000}, {DType::i64, 0xFFFFFFFFFFFFFFF9}};
    for (const auto& [dtype, bits] : kFills) {
      int64_t different = 0;
      for (const int64_t elements : {1, 15, 16, 17, 4095, 1000003}) {
        const int64_t size = bytes_of(dtype), bytes = elements * size;
        const auto y = device_.allocate(bytes + 64, MemoryRole::other);
        give([&] { enqueue_fill(stream_->handle(), dtype, pointer_to(y->data()), bits, elements); });
        std::vector<uint8_t> made(static_cast<size_t>(bytes + 64));
        device_.to_host(made.data(), y->data(), bytes + 64);
        for (int64_t i = 0; i < elements; ++i) different += std::memcmp(made.data() + i * size, &bits, static_cast<size_t>(size)) != 0;
        for (int64_t i = bytes; i < bytes + 64; ++i) different += made[static_cast<size_t>(i)] != 0;
      }
      probe::Line("own", "fill bits")("dtype", std::string(name_of(dtype)))("different", different);
    }
  }

  /// Sums of ranks against the cpu's; no operand is NaN or infinite.
  void folds() {
    constexpr int64_t kElements = 1000003;
    constexpr int kTerms = 5;
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64, DType::u8}) {
      const int64_t bytes = kElements * bytes_of(dtype), sum_bytes = kElements * sum_bytes_of(dtype);
      std::vector<std::vector<uint8_t>> terms;
      std::vector<std::unique_ptr<Buffer>> buffers;
      std::vector<Address> here, there;
      for (int i = 0; i < kTerms; ++i) {
        terms.push_back(finite(dtype, kElements, static_cast<uint64_t>(i)));
        buffers.push_back(device_.allocate(bytes, MemoryRole::other));
        device_.to_device(buffers.back()->data(), terms.back().data(), bytes);
        here.push_back(address_of(terms.back().data()));
        there.push_back(buffers.back()->data());
      }
      const auto sums = device_.allocate(sum_bytes, MemoryRole::other);
      std::vector<uint8_t> made(static_cast<size_t>(sum_bytes)), wanted(made.size());
      give([&] { enqueue_fold(stream_->handle(), {.terms = there, .sums = sums->data(), .dtype = dtype, .elements = kElements}); });
      device_.to_host(made.data(), sums->data(), sum_bytes);
      {
        const FloatMode mode;
        run_fold({.terms = here, .sums = address_of(wanted.data()), .dtype = dtype, .elements = kElements});
      }
      int64_t different = 0;
      for (size_t i = 0; i < made.size(); ++i) different += made[i] != wanted[i];
      probe::Line("own", "fold bits")("dtype", std::string(name_of(dtype)))("of", sum_bytes)("different", different);
    }
  }

  void rates() {
    constexpr int64_t kElements = int64_t{1} << 28;
    const auto x = device_.allocate(kElements * 4, MemoryRole::other), y = device_.allocate(kElements * 4, MemoryRole::other);
    const auto rate = [&](const char* what, int64_t bytes, const auto& body) {
      const CurrentDevice current(index_);
      std::vector<double> gb_s;
      for (const double ms : probe::device_ms(stream_->handle(), 20, 4, [&](int) { body(); }))
        gb_s.push_back(static_cast<double>(bytes) / ms / 1e6);
      probe::Line("own", what)("bytes", bytes)("gb_s", probe::spread(gb_s));
    };
    rate("copy by the runtime", 8 * kElements, [&] { stream_->copy(y->data(), x->data(), kElements * 4); });
    rate("fill f32", 4 * kElements, [&] { enqueue_fill(stream_->handle(), DType::f32, pointer_to(y->data()), 0x3FC00000, kElements); });
    const auto cast_rate = [&](const char* what, DType to, DType from, int64_t bytes) {
      rate(what, bytes, [&] { enqueue_cast(stream_->handle(), to, pointer_to(y->data()), from, pointer_to(x->data()), kElements); });
    };
    cast_rate("cast f32 to bf16", DType::bf16, DType::f32, 6 * kElements);
    cast_rate("cast f32 to f16", DType::f16, DType::f32, 6 * kElements);
    cast_rate("cast bf16 to f32", DType::f32, DType::bf16, 6 * kElements);
    cast_rate("cast f16 to f32", DType::f32, DType::f16, 6 * kElements);
    constexpr int64_t kSums = kElements / 8;
    std::vector<Address> terms;
    for (int64_t i = 0; i < 8; ++i) terms.push_back(x->data() + i * kSums * 2);
    rate("fold 8 of bf16", (8 * 2 + 4) * kSums,
         [&] { enqueue_fold(stream_->handle(), {.terms = terms, .sums = y->data(), .dtype = DType::bf16, .elements = kSums}); });
  }

 private:
  template <class Give>
  void give(const Give& body) {
    const CurrentDevice current(index_);
    body();
    stream_->finish();
  }

  void cast(DType from, DType to) {
    const std::vector<uint8_t> given = patterns(from);
    const auto bytes = static_cast<int64_t>(given.size());
    const int64_t elements = bytes / bytes_of(from), made_bytes = elements * bytes_of(to);
    const auto x = device_.allocate(bytes, MemoryRole::other), y = device_.allocate(made_bytes, MemoryRole::other);
    device_.to_device(x->data(), given.data(), bytes);
    give([&] { enqueue_cast(stream_->handle(), to, pointer_to(y->data()), from, pointer_to(x->data()), elements); });
    std::vector<uint8_t> made(static_cast<size_t>(made_bytes)), wanted(made.size());
    device_.to_host(made.data(), y->data(), made_bytes);
    by_cpu(from, to, given.data(), wanted.data(), elements);
    int64_t different = 0;
    for (int64_t i = 0; i < elements; ++i)
      different += std::memcmp(made.data() + i * bytes_of(to), wanted.data() + i * bytes_of(to), static_cast<size_t>(bytes_of(to))) != 0;
    probe::Line("own", "cast bits")("from", std::string(name_of(from)))("to", std::string(name_of(to)))("of", elements)("different",
                                                                                                                        different);
  }

  void by_cpu(DType from, DType to, const uint8_t* x, uint8_t* y, int64_t elements) {
    const Operand in = {address_of(x), from, Shape({elements})}, out = {address_of(y), to, Shape({elements})};
    const Attrs none;
    Call call;
    call.in = {&in, 1};
    call.out = {&out, 1};
    call.attrs = &none;
    call.workers = &workers_;
    cpu_->kernels()[static_cast<size_t>(Op::cast)].run(call);
  }

  int index_;
  CudaDevice device_;
  std::unique_ptr<CudaStream> stream_;
  std::unique_ptr<Backend> cpu_ = make_cpu_backend();
  Workers workers_{1};
};

}  // namespace

int main() {
  try {
    const std::vector<DeviceProfile> devices = device_profiles(load_driver());
    require(!devices.empty(), Code::unavailable, "the driver lists no device");
    check_usable(devices.front());
    probe::Line("own", "device")("profile", devices.front().text())("machine", devices.front().machine().kernel_class);
    Facts facts(0);
    facts.casts();
    facts.fills();
    facts.folds();
    facts.rates();
  } catch (const Error& why) {
    if (why.code() != Code::unavailable) throw;
    std::string words = why.message();
    std::ranges::replace(words, '"', '\'');
    probe::Line("skipped", words);
  }
}
