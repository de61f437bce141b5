// Facts of the device: properties, bytes that a context and libraries take, latencies, copy rates. One JSON line a fact.
#include <cublasLt.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe.h"

using namespace probe;

namespace {

__global__ void nothing() {}

struct Arguments {
  void* pointers[20];
};
__global__ void takes_160_bytes(Arguments) {}

/// Four vectors of 16 bytes a thread and round in flight; with bytes / 32 KiB blocks each thread has one round, with 4 times as many one
/// vector.
__global__ void __launch_bounds__(512) copy_kernel(const float4* from, float4* to, int64_t n) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    float4 v[4];
    for (int u = 0; u < 4; ++u) v[u] = from[i + u * step];
    for (int u = 0; u < 4; ++u) to[i + u * step] = v[u];
  }
  for (; i < n; i += step) to[i] = from[i];
}

__global__ void __launch_bounds__(512) read_kernel(const float4* from, float* out, int64_t n) {
  float sum = 0;
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * step < n; i += 4 * step) {
    float4 v[4];
    for (int u = 0; u < 4; ++u) v[u] = from[i + u * step];
    for (int u = 0; u < 4; ++u) sum += v[u].x + v[u].y + v[u].z + v[u].w;
  }
  if (sum == 1.2345f) *out = sum;
}

/// AdamW's traffic, 28 bytes a parameter. With `arithmetic` also its formula: IEEE division and square root, explicit fma.
template <bool arithmetic>
__global__ void __launch_bounds__(512) adamw_kernel(const float4* gradient, float4* weight, float4* first, float4* second, int64_t n) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
    float4 g = gradient[i], w = weight[i], m = first[i], v = second[i];
    auto update = [](float g, float& w, float& m, float& v) {
      if constexpr (arithmetic) {
        m = __fmaf_rn(0.1f, g - m, m);
        v = __fmaf_rn(0.05f, __fmaf_rn(g, g, -v), v);
        float step = __fdiv_rn(m * 1.1f, __fsqrt_rn(v * 1.05f) + 1e-8f);
        w = __fmaf_rn(-1e-3f, __fmaf_rn(0.1f, w, step), w);
      } else {
        m += g, v += g, w += g;
      }
    };
    update(g.x, w.x, m.x, v.x), update(g.y, w.y, m.y, v.y), update(g.z, w.z, m.z, v.z), update(g.w, w.w, m.w, v.w);
    weight[i] = w, first[i] = m, second[i] = v;
  }
}

__global__ void fill(uint32_t* to, int64_t n) {  // positive floats of 2^-3 to 2
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
    uint32_t h = uint32_t(i) * 2654435761u ^ uint32_t(i >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    to[i] = (h & 0x01ffffffu) ^ 0x3e000000u;
  }
}

/// NVML's view of the device, without its header: used bytes from outside of any context.
struct Nvml {
  struct Memory {
    unsigned long long total, free, used;
  };
  int (*get_memory)(void*, Memory*) = nullptr;
  void* device = nullptr;
  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return;
    auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    auto handle = reinterpret_cast<int (*)(unsigned, void**)>(dlsym(library, "nvmlDeviceGetHandleByIndex_v2"));
    if (init() == 0 && handle(0, &device) == 0)
      get_memory = reinterpret_cast<decltype(get_memory)>(dlsym(library, "nvmlDeviceGetMemoryInfo"));
  }
  int64_t used() const {
    Memory memory{};
    return get_memory != nullptr && get_memory(device, &memory) == 0 ? int64_t(memory.used) : -1;
  }
};

int64_t free_bytes() {
  size_t free = 0, total = 0;
  MUST(cudaMemGetInfo(&free, &total));
  return int64_t(free);
}

int64_t resident_bytes() {
  long pages = 0, resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (file != nullptr && std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = 0;
  if (file != nullptr) std::fclose(file);
  return int64_t(resident) * sysconf(_SC_PAGESIZE);
}

void properties() {
  cudaDeviceProp p;
  MUST(cudaGetDeviceProperties(&p, 0));
  int driver = 0, runtime = 0;
  MUST(cudaDriverGetVersion(&driver));
  MUST(cudaRuntimeGetVersion(&runtime));
  auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    MUST(cudaDeviceGetAttribute(&value, which, 0));
    return value;
  };
  auto limit = [](cudaLimit which) {
    size_t value = 0;
    MUST(cudaDeviceGetLimit(&value, which));
    return value;
  };
  Line("fact", "properties")("name", p.name)("capability", std::vector<int>{p.major, p.minor})("driver", driver)("runtime", runtime)(
      "multiprocessors", p.multiProcessorCount)("clock_khz", attribute(cudaDevAttrClockRate))(
      "memory_clock_khz", attribute(cudaDevAttrMemoryClockRate))("memory_bus_bits", p.memoryBusWidth)("l2_bytes", p.l2CacheSize)(
      "l2_persisting_max", p.persistingL2CacheMaxSize)("shared_per_block", p.sharedMemPerBlock)(
      "shared_per_block_optin", p.sharedMemPerBlockOptin)("shared_per_multiprocessor", p.sharedMemPerMultiprocessor)(
      "shared_reserved_per_block", p.reservedSharedMemPerBlock)("registers_per_block", p.regsPerBlock)(
      "registers_per_multiprocessor", p.regsPerMultiprocessor)("threads_per_multiprocessor", p.maxThreadsPerMultiProcessor)(
      "blocks_per_multiprocessor", p.maxBlocksPerMultiProcessor)("copy_engines", p.asyncEngineCount)("total_bytes", p.totalGlobalMem)(
      "ecc", p.ECCEnabled)("pageable_access", p.pageableMemoryAccess)("memory_pools", attribute(cudaDevAttrMemoryPoolsSupported))(
      "stack_limit", limit(cudaLimitStackSize))("printf_limit", limit(cudaLimitPrintfFifoSize))(
      "heap_limit", limit(cudaLimitMallocHeapSize))("pitch_alignment", p.texturePitchAlignment)("cooperative", p.cooperativeLaunch);
}

void library_versions() {
  auto version = [](const char* file, const char* function) -> long {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void* entry = library != nullptr ? dlsym(library, function) : nullptr;
    if (entry == nullptr) return -1;
    if (std::string(function) == "ncclGetVersion") {
      int v = 0;
      return reinterpret_cast<int (*)(int*)>(entry)(&v) == 0 ? v : -1;
    }
    return long(reinterpret_cast<size_t (*)()>(entry)());
  };
  Line("fact", "libraries")("cublasLt", version("libcublasLt.so.13", "cublasLtGetVersion"))(
      "cudnn", version("libcudnn.so.9", "cudnnGetVersion"))("nccl", version("libnccl.so.2", "ncclGetVersion"));
}

/// Starts a context in a child process, so that this process, which has one already, sees what a second one takes.
struct SecondContext {
  int go[2], ready[2];
  pid_t child = 0;
  SecondContext() {  // before this process touches CUDA
    if (pipe(go) != 0 || pipe(ready) != 0) std::exit(1);
    child = fork();
    if (child == 0) {
      char byte = 0;
      close(go[1]);  // so that it ends if its parent does
      if (read(go[0], &byte, 1) != 1) _exit(1);
      MUST(cudaFree(nullptr));
      if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(1);
      _exit(0);
    }
  }
  int64_t bytes() const {
    char byte = 1;
    int64_t before = free_bytes();
    if (write(go[1], &byte, 1) != 1 || read(ready[0], &byte, 1) != 1) return -1;
    int64_t taken = before - free_bytes();
    int status = 0;
    if (write(go[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child || status != 0) return -1;
    return taken;
  }
};

void memory(const Nvml& nvml, const SecondContext& second) {
  int64_t used0 = nvml.used(), resident0 = resident_bytes();
  double begin = seconds();
  MUST(cudaFree(nullptr));
  double started = seconds() - begin;
  size_t free = 0, total = 0;
  MUST(cudaMemGetInfo(&free, &total));
  int64_t used1 = nvml.used();
  Line("fact", "context")("seconds", started)("nvml_used_before", used0)("nvml_used_after", used1)("nvml_bytes", used1 - used0)(
      "total", total)("free", free)("total_minus_free", total - free)("host_resident", resident_bytes() - resident0)("second_process_bytes",
                                                                                                                     second.bytes());
  cudaStream_t stream = new_stream();
  auto cost = [&, last = int64_t(free)](const char* what, auto act) mutable {
    last = free_bytes();
    int64_t host = resident_bytes();
    double begin = seconds();
    act();
    MUST(cudaStreamSynchronize(stream));
    double took = seconds() - begin;
    Line("bytes", what)("device", last - free_bytes())("host_resident", resident_bytes() - host)("seconds", took);
  };
  cost("first launch (module of this program)", [&] { nothing<<<1, 32, 0, stream>>>(); });
  cost("16 streams", [] {
    for (int i = 0; i < 16; ++i) new_stream();
  });
  cost("1000 events", [] {
    for (int i = 0; i < 1000; ++i) {
      cudaEvent_t event;
      MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
  });
  for (size_t bytes : {size_t(1), size_t(1) << 20, size_t(3) << 20, size_t(1) << 30})
    cost(("cudaMalloc of " + std::to_string(bytes)).c_str(), [&] { on_device(bytes); });
  for (int nodes : {100, 1000, 10000}) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cost(("graph of " + std::to_string(nodes) + " kernels").c_str(), [&] {
      MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < nodes; ++i) takes_160_bytes<<<1, 32, 0, stream>>>(Arguments{});
      MUST(cudaStreamEndCapture(stream, &graph));
      MUST(cudaGraphInstantiate(&executable, graph, 0));
      MUST(cudaGraphUpload(executable, stream));
    });
  }
  void* library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return;
  cost("cublasLtCreate", [&] {
    cublasLtHandle_t handle;
    MUST(reinterpret_cast<decltype(&::cublasLtCreate)>(dlsym(library, "cublasLtCreate"))(&handle));
  });
}

void latencies() {
  cudaStream_t stream = new_stream(), other = new_stream();
  cudaEvent_t timed, untimed;
  MUST(cudaEventCreate(&timed));
  MUST(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
  auto host = [&](const char* what, int calls, auto body) { Line("host_us", what)("us", spread(host_us(stream, 100, calls, body))); };
  host("launch, no arguments", 500, [&] { nothing<<<1, 32, 0, stream>>>(); });
  host("launch, 160 bytes of arguments", 500, [&] { takes_160_bytes<<<1, 32, 0, stream>>>(Arguments{}); });
  host("launch, then wait for the stream", 10, [&] {
    nothing<<<1, 32, 0, stream>>>();
    MUST(cudaStreamSynchronize(stream));
  });
  host("wait for an idle stream", 100, [&] { MUST(cudaStreamSynchronize(stream)); });
  host("record an event with time", 500, [&] { MUST(cudaEventRecord(timed, stream)); });
  host("record an event without time", 500, [&] { MUST(cudaEventRecord(untimed, stream)); });
  host("record, and a second stream waits", 500, [&] {
    MUST(cudaEventRecord(untimed, stream));
    MUST(cudaStreamWaitEvent(other, untimed, 0));
  });
  host("query an event that is done", 500, [&] { MUST(cudaEventQuery(timed)); });
  char *small = on_device(4096), *pinned = nullptr;
  MUST(cudaMallocHost(&pinned, 4096));
  host("copy 4 bytes to the host, then wait", 10, [&] {
    MUST(cudaMemcpyAsync(pinned, small, 4, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
  });
  auto device = [&](const char* what, int calls, double per, auto body) {
    auto ms = device_ms(stream, 50, calls, body);
    for (double& v : ms) v *= 1e3 / per;
    Line("device_us", what)("us", spread(ms));
  };
  device("empty kernels one after another, each", 500, 1, [&](int) { nothing<<<1, 32, 0, stream>>>(); });
  device("event pair around nothing", 1, 1, [](int) {});
  device("event pair around an empty kernel", 1, 1, [&](int) { nothing<<<1, 32, 0, stream>>>(); });
  device("memset of 4 bytes, each", 500, 1, [&](int) { MUST(cudaMemsetAsync(small, 0, 4, stream)); });
  for (int nodes : {1, 10, 100, 1000}) {
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < nodes; ++i) nothing<<<1, 32, 0, stream>>>();
    MUST(cudaStreamEndCapture(stream, &graph));
    double begin = seconds();
    MUST(cudaGraphInstantiate(&executable, graph, 0));
    double instantiate = seconds() - begin;
    auto ms = device_ms(stream, 50, 5, [&](int) { MUST(cudaGraphLaunch(executable, stream)); });
    for (double& v : ms) v *= 1e3;
    Line("graph_nodes", std::to_string(nodes))("device_us", spread(ms))("instantiate_us", instantiate * 1e6)(
        "host_us", spread(host_us(stream, 50, 5, [&] { MUST(cudaGraphLaunch(executable, stream)); })));
  }
}

void host_copies() {
  cudaStream_t stream = new_stream(), other = new_stream();
  size_t most = size_t(256) << 20;
  char *device = on_device(most), *second = on_device(most), *pinned = nullptr, *pinned2 = nullptr;
  double begin = seconds();
  MUST(cudaMallocHost(&pinned, most));
  Line("host_s", "cudaMallocHost of 256 MiB")("s", seconds() - begin);
  MUST(cudaMallocHost(&pinned2, most));
  std::vector<char> pageable(most, 1), registered(most, 1);
  begin = seconds();
  MUST(cudaHostRegister(registered.data(), most, cudaHostRegisterDefault));
  Line("host_s", "cudaHostRegister of 256 MiB, touched")("s", seconds() - begin);
  MUST(cudaHostUnregister(registered.data()));
  for (size_t bytes : {size_t(4096), size_t(65536), size_t(1) << 20, size_t(16) << 20, most})
    for (bool up : {true, false})
      for (bool fast : {true, false}) {
        char* host = fast ? pinned : pageable.data();
        auto us = host_us(stream, bytes == most ? 20 : 100, 1, [&] {
          MUST(
              cudaMemcpyAsync(up ? device : host, up ? host : device, bytes, up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, stream));
          MUST(cudaStreamSynchronize(stream));
        });
        Line("host_copy", up ? "to device" : "to host")("memory", fast ? "pinned" : "pageable")("bytes", bytes)("us", spread(us))(
            "gb_s", double(bytes) / spread(us)[0] / 1e3);
      }
  auto both = host_us(stream, 20, 1, [&] {
    MUST(cudaMemcpyAsync(device, pinned, most, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemcpyAsync(pinned2, second, most, cudaMemcpyDeviceToHost, other));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamSynchronize(other));
  });
  Line("host_copy", "both ways at once")("memory", "pinned")("bytes", most)("us", spread(both))("gb_s_each",
                                                                                                double(most) / spread(both)[0] / 1e3);
}

void bandwidth() {
  cudaStream_t stream = new_stream();
  int64_t pool = int64_t(4) << 30;
  char *from = on_device(size_t(pool)), *to = on_device(size_t(pool));
  for (char* p : {from, to}) fill<<<1056, 512, 0, stream>>>(reinterpret_cast<uint32_t*>(p), pool / 4);
  auto rate = [&](const char* what, int64_t bytes, int64_t moved, int blocks, int calls, auto body) {
    auto ms = device_ms(stream, 30, calls, body);
    for (double& v : ms) v = double(moved) / v / 1e6;
    Line("bandwidth", what)("bytes", bytes)("blocks", blocks)("gb_s", spread(ms));
  };
  auto vectors = [](char* p) { return reinterpret_cast<float4*>(p); };
  for (int64_t mib : {1, 4, 16, 64, 256, 1024, 4096}) {
    int64_t bytes = mib << 20, sets = pool / bytes;
    int calls = int(std::clamp<int64_t>(256 / mib, 1, 50));
    rate("copy by cudaMemcpyAsync", bytes, 2 * bytes, 0, calls, [&](int i) {
      MUST(cudaMemcpyAsync(to + i % sets * bytes, from + i % sets * bytes, size_t(bytes), cudaMemcpyDeviceToDevice, stream));
    });
    for (int blocks : {132, 264, 528, int(bytes / 16 / 512 / 4), int(bytes / 16 / 512)})
      rate("copy by a kernel", bytes, 2 * bytes, blocks, calls, [&](int i) {
        copy_kernel<<<blocks, 512, 0, stream>>>(vectors(from + i % sets * bytes), vectors(to + i % sets * bytes), bytes / 16);
      });
  }
  for (int64_t mib : {8, 16})  // the same buffers each time: what L2 gives
    rate("copy by a kernel, in L2", mib << 20, mib << 21, 264, 50,
         [&](int) { copy_kernel<<<264, 512, 0, stream>>>(vectors(from), vectors(to), (mib << 20) / 16); });
  rate("memset", pool, pool, 0, 1, [&](int) { MUST(cudaMemsetAsync(to, 0, size_t(pool), stream)); });
  fill<<<1056, 512, 0, stream>>>(reinterpret_cast<uint32_t*>(to), pool / 4);
  rate("read", pool, pool, 528, 1, [&](int) { read_kernel<<<528, 512, 0, stream>>>(vectors(from), nullptr, pool / 16); });
  int64_t parameters = 124439808, each = parameters * 4;  // GPT-2 124M
  auto state = [&](int i) { return vectors((i < 8 ? from : to) + i % 8 * each); };
  for (int blocks : {132, 264, 528, 1056, int(parameters / 4 / 512)}) {
    rate("4 reads and 3 writes, 124M parameters", parameters, parameters * 28, blocks, 1,
         [&](int) { adamw_kernel<false><<<blocks, 512, 0, stream>>>(state(0), state(8), state(9), state(10), parameters / 4); });
    rate("AdamW with IEEE division, root and explicit fma", parameters, parameters * 28, blocks, 1,
         [&](int) { adamw_kernel<true><<<blocks, 512, 0, stream>>>(state(0), state(8), state(9), state(10), parameters / 4); });
  }
}

}  // namespace

int main() {
  SecondContext second;  // forks: must come before CUDA starts
  Nvml nvml;
  memory(nvml, second);
  properties();
  library_versions();
  latencies();
  host_copies();
  bandwidth();
}
